"""Operator files of version 0.1 (format 2, in tests/data/format-2) load and give what they gave."""

import json
from pathlib import Path

import pytest
import torch

import proxlearn as px
from proxlearn.instances.graph import Graphs
from proxlearn.networks.cut_circles import CutCircles

FOLDER = Path(__file__).parent / "data" / "format-2"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_an_older_file_gives_what_it_gave(name: str, tmp_path: Path):
    expected = EXPECTED[name]
    old = px.load(FOLDER / f"{name}.safetensors", "cpu")
    new = px.load(old.save(tmp_path / "new.safetensors"), "cpu")  # and once more in today's format
    starts = torch.tensor(expected["starts"])
    for operator in (old, new):
        found = operator.solve(expected["tau"], starts, steps=3)
        torch.testing.assert_close(found.points, torch.tensor(expected["points"]))
        assert operator.applications == 3
        assert operator.precision == "fp32"


def test_a_range_of_lam_and_provenance_come_along_and_arrival_does_not():
    expected, old = EXPECTED["vector"], px.load(FOLDER / "vector.safetensors", "cpu")
    starts = torch.tensor(expected["starts"])
    assert old.lams == (0.5, 4.0)
    assert old.provenance == {"problem": "old"}
    low = old.solve(expected["tau"], starts, steps=2, lam=0.5).points
    torch.testing.assert_close(low, torch.tensor(expected["low_lam"]))
    assert old.arrival is None  # taught by rules that no longer hold
    usual = old.solve(expected["tau"], starts, steps=old.applications)
    assert torch.equal(old.solve(expected["tau"], starts).points, usual.points)


def test_graphs_of_any_size_keep_their_network():
    old = px.load(FOLDER / "any-size.safetensors", "cpu")
    assert old.instances == Graphs(6, any_size=True)
    assert old.network.architecture == CutCircles(blocks=1, width=4, start_at_identity=False)


def test_shipped_operators_load():
    for name in ("conic", "maxcut"):
        assert px.pretrained(name, "cpu").provenance["problem"] == name
