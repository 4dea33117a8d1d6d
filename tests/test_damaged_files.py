"""Files that are damaged, or that say what cannot be: each is a sentence, in no time and memory."""

import json
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from making import parts, untrained, write

import proxlearn as px
from proxlearn.answers.solution_files import read_arrays, write_arrays
from proxlearn.common.arrays import read_npz
from proxlearn.instances import Vectors
from proxlearn.networks.coupling import Coupling
from proxlearn.operators.load import SEALED_FROM


@pytest.fixture
def operator() -> px.Operator:
    torch.manual_seed(0)
    vectors = Vectors.over(px.Box(-1.0, 1.0, dim=3))
    return untrained(px.Box(-1.0, 1.0, dim=2), vectors, Coupling(1, 8, 8))


@pytest.fixture
def saved(operator: px.Operator, tmp_path: Path) -> Path:
    return operator.save(tmp_path / "mine.safetensors")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_file_with_weights_that_are_no_numbers(
    operator: px.Operator, tmp_path: Path, number: float
):
    with torch.no_grad():
        list(operator.parameters())[-1].view(-1)[0] = number
    path = operator.save(tmp_path / "broken.safetensors")
    with pytest.raises(px.FileError, match="weights that are NaN or infinite"):
        px.load(path)


def test_a_file_with_a_flipped_bit(operator: px.Operator, tmp_path: Path):
    """In the weights, where it would otherwise load and give other solutions."""
    path = operator.save(tmp_path / "damaged.safetensors")
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(px.FileError, match="is damaged: its checksum"):
        px.load(path)


def test_a_file_without_a_checksum_loads_if_it_is_of_an_earlier_version(saved: Path):
    weights, header = parts(saved)
    write(saved, weights, header)
    px.load(saved)
    write(saved, weights, header, version=str(SEALED_FROM))
    with pytest.raises(px.FileError, match="is damaged: it has no checksum"):
        px.load(saved)


@pytest.mark.parametrize("kind", [torch.int32, torch.float16, torch.float64], ids=str)
def test_weights_of_another_kind(saved: Path, kind: torch.dtype):
    weights, header = parts(saved)
    write(saved, {name: each.to(kind) for name, each in weights.items()}, header)
    with pytest.raises(px.FileError, match=f"not fit its header: .* of {kind}, where the header"):
        px.load(saved)


def test_a_header_of_a_huge_network_takes_no_memory_and_no_time(saved: Path):
    weights, header = parts(saved)
    for sizes in ({"width": 15_000}, {"blocks": 10**5}, {"sinusoids": 10**9}, {"shared": 10**12}):
        write(saved, weights, header | {"architecture": header["architecture"] | sizes})
        began = time.monotonic()
        with pytest.raises(px.FileError, match="header"):
            px.load(saved)
        assert time.monotonic() - began < 2
    write(saved, weights, header | {"space": {"kind": "sphere", "dim": 10**7}})
    with pytest.raises(px.FileError, match="header"):
        px.load(saved)


HUGE = 10**400  # no float is as large
CARD = {"instances": 3, "at_optimum": 1.0, "found": 1.0, "false": 0.0}


@pytest.mark.parametrize(
    "change",
    [
        *({"lam": each} for each in ("abc", float("nan"), -1, None, True, HUGE)),
        *({"lams": each} for each in (3, "x", [1], [2, 1], [0, 1], [1, HUGE])),
        *({"applications": each} for each in ("Box", 0, -3, 1.5, 10**12, None, True)),
        *({"precision": each} for each in (3, "x", None, ["fp32"])),
        *({"arrival": each} for each in (3, "patience", {"patience": "a"}, {"patience": -1})),
        *({"provenance": each} for each in (3, [1], {"training": 3}, {"problem": {}, "card": 3})),
        {"provenance": {"card": CARD | {"found": "all"}}},
        {"provenance": {"card": CARD | {"instances": None}}},
        {"provenance": {"card": CARD | {"rightly": 0.5}}},
        {"provenance": {"card": CARD | {"rightly": 7, "called_good": 0.5}}},
        {"provenance": {"card": CARD | {"doubtful": 3}}},
        {"space": {"kind": "box", "low": "ab", "high": "cd"}},
        {"space": {"kind": "box", "low": [0, 0], "high": [float("inf"), 1]}},
        {"space": {"kind": "circles", "n": 1.5}},
        {"space": "box"},
        {"instances": {"kind": "vector", "low": [1.0, 1.0], "high": [0.0, 0.0]}},
        {"architecture": {"kind": "coupling", "sinusoids": -1}},
        {"architecture": {"kind": "boxes", "weights": "/etc/hostname"}},
        {"architecture": {"kind": "coupling", "x" * 100_000: 1}},
    ],
    ids=lambda change: repr(change)[:40],
)
def test_a_header_that_says_what_cannot_be(saved: Path, change: dict):
    weights, header = parts(saved)
    write(saved, weights, header | change)
    with pytest.raises(px.FileError, match=r"The header of .* cannot be read") as error:
        px.load(saved)
    assert len(str(error.value)) < 1_000


def test_a_lam_that_is_a_whole_number_is_a_float_in_an_operator(saved: Path):
    """JSON writes whole numbers of any length; 64 bits would not hold this one."""
    weights, header = parts(saved)
    write(saved, weights, header | {"lam": 10**30})
    assert px.load(saved).solve([0.0, 0.0, 0.0], starts=4).points.isfinite().all()


def test_a_header_that_is_nested_without_end(saved: Path):
    weights, header = parts(saved)
    deep = json.dumps(header)[:-1] + ', "more": ' + 100_000 * "[" + 100_000 * "]" + "}"
    write(saved, weights, deep)
    with pytest.raises(px.FileError, match="cannot be read as JSON"):
        px.load(saved)


# solutions


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".json"])
def test_solutions_with_one_number_changed_are_damaged(tmp_path: Path, ending: str):
    path = tmp_path / f"mine{ending}"
    arrays = {"points": np.arange(6, dtype=np.float32).reshape(1, 3, 2), "inside": np.ones((1, 3))}
    write_arrays(path, arrays, {"space": 1})
    back, about = read_arrays(path)
    assert about == {"space": 1}
    assert all(np.array_equal(back[name], arrays[name]) for name in arrays)
    content = path.read_bytes()
    five = np.float32(5.0).tobytes() if ending != ".json" else b"5.0"
    four = np.float32(4.5).tobytes() if ending != ".json" else b"4.5"
    path.write_bytes(content.replace(five, four))
    assert path.read_bytes() != content
    with pytest.raises(px.FileError, match=r"damaged|not a whole file of solutions"):
        read_arrays(path)


def test_solutions_without_their_checksum_are_damaged_where_they_had_one(tmp_path: Path):
    path = write_arrays(tmp_path / "mine.json", {"points": np.ones((1, 1, 1))}, {})
    said = json.loads(path.read_text())
    del said["about"]["sha256"]
    path.write_text(json.dumps(said))
    with pytest.raises(px.FileError, match="damaged"):
        read_arrays(path)
    said["about"] = {}  # as earlier versions wrote it
    path.write_text(json.dumps(said))
    assert read_arrays(path)[0]["points"].shape == (1, 1, 1)
    said["about"] = {"version": 9, "sha256": ""}
    path.write_text(json.dumps(said))
    with pytest.raises(px.FileError, match="newer"):
        read_arrays(path)


def test_an_npz_that_announces_more_than_it_holds(tmp_path: Path):
    path = tmp_path / "huge.npz"
    said = str({"descr": "<f4", "fortran_order": False, "shape": (10**12,)}).encode() + b"\n"
    header = b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("points.npy", header)
    with pytest.raises(px.FileError, match=r"arrays: its header promises an array \(1000000000"):
        read_npz(path, "arrays")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("points.npy", bytes(1000))
    with pytest.raises(px.FileError, match="cannot be read as arrays"):
        read_npz(path, "arrays")


def test_an_npz_is_read_as_numpy_reads_it(tmp_path: Path):
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.array("text"),
        "c": np.ones((0, 3), dtype=bool),
        "d": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(3, 2)),
    }
    np.savez(tmp_path / "some.npz", **arrays)  # pyright: ignore[reportArgumentType]
    back = read_npz(tmp_path / "some.npz", "arrays")
    assert back.keys() == arrays.keys()
    assert all(np.array_equal(back[name], arrays[name]) for name in arrays)
    assert all(back[name].dtype == arrays[name].dtype for name in arrays)


def test_what_is_written_is_on_the_disk_before_it_is_renamed(tmp_path: Path, monkeypatch):
    """Else a power cut could leave an empty file under the name of a whole one."""
    done, replace = [], Path.replace
    monkeypatch.setattr("os.fsync", lambda file: done.append("synced"))
    monkeypatch.setattr(Path, "replace", lambda *to: (done.append("renamed"), replace(*to))[1])
    write_arrays(tmp_path / "a.json", {"points": np.ones(1)}, {})
    assert done == ["synced", "renamed", "synced"]
