"""Operators as graphs for other runtimes: what they compute is what the operator computes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.cli.main import main
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.parts import part
from proxlearn.operators.export import CannotExportError, MissingExportError
from proxlearn.operators.graphs import Functions, beginning
from proxlearn.problems.base import held_out
from proxlearn.problems.detection import Detection
from proxlearn.problems.rotation import Rotation
from proxlearn.problems.symmetry.symmetry import Symmetry

pytestmark = pytest.mark.whole  # a graph of any size has sizes that are no int
SHIPPED = ("conic", "cosine", "maxcut", "peaks", "springs")
Arrays = dict[str, np.ndarray]


class Sessions:
    """The graphs of an exported operator, run by onnxruntime."""

    def __init__(self, file: Path):
        runtime = pytest.importorskip("onnxruntime")
        self.about = json.loads(file.read_text())
        self.graphs = {
            name: runtime.InferenceSession(file.with_name(graph["file"]))
            for name, graph in self.about["graphs"].items()
        }

    def run(self, graph: str, known: Arrays) -> Arrays:
        session = self.graphs[graph]
        given = {each.name: known[each.name] for each in session.get_inputs()}
        names = [each.name for each in session.get_outputs()]
        assert list(given) == list(self.about["graphs"][graph]["inputs"])
        assert names == list(self.about["graphs"][graph]["outputs"])
        return dict(zip(names, session.run(None, given)))

    def agree_with(
        self, operator: px.Operator, tau: Any, points: int, share: float = 0.995
    ) -> None:
        """On other numbers of instances and points than in the example, for that share of all
        numbers: where an operator is steep, the last bit of one moves a point further."""
        functions = Functions(operator.bind(tau))
        draw = torch.Generator().manual_seed(points)
        x = functions.bound.space.sample(len(functions.bound), points, generator=draw)
        state = beginning(x)
        given = functions.tau | {"x": x}
        for name, function in functions.each():
            if name == "arrival":
                given |= state
            expected = function.compute(given)
            got = self.run(name, {k: v.numpy() for k, v in given.items()})
            for key, each in expected.items():
                scale = max(1.0, each.double().abs().max().item())
                close = np.isclose(got[key], each.numpy(), rtol=0, atol=1e-5 * scale)
                assert np.mean(close) >= share, f"{name}: {key}"
                assert got[key].shape == tuple(each.shape)
            given |= expected


@pytest.fixture(scope="module")
def conic(tmp_path_factory: pytest.TempPathFactory) -> tuple[px.Operator, Path]:
    pytest.importorskip("onnxscript")
    operator = px.pretrained("conic", "cpu")
    return operator, operator.export(tmp_path_factory.mktemp("conic") / "conic.onnx")


@torch.no_grad()
def test_every_graph_computes_what_the_operator_does(conic: tuple[px.Operator, Path]):
    operator, file = conic
    graphs = Sessions(file)
    assert list(graphs.graphs) == ["prepare", "apply", "arrival", "objective"]
    for count, points in ((1, 1), (7, 40)):
        graphs.agree_with(operator, held_out(px.problem("conic"), count), points)


def test_points_arrive_where_the_operator_takes_them(conic: tuple[px.Operator, Path]):
    operator, file = conic
    graphs, tau = Sessions(file), held_out(px.problem("conic"), 3)
    solutions = operator.solve(tau, starts=200)
    known = graphs.run("prepare", {"tau": tau.numpy()})
    state = {k: v.numpy() for k, v in beginning(solutions.starts).items()}
    for _ in range(graphs.about["most_applications"]):
        known |= graphs.run("apply", known | state)
        after = graphs.run("arrival", known | state)
        state = {name: after[f"next_{name}"] for name in state}
        if not state["goes"].any():
            break
    far = np.abs(after["found"] - solutions.points.numpy()).max(-1)
    assert (far < 1e-3).mean() > 0.99  # a rounding may decide whether a point goes on
    assert np.median(far) < 1e-5
    assert (state["goes"] == ~(solutions.arrived | ~solutions.inside).numpy()).mean() > 0.99


def test_the_example_needs_nothing_but_onnxruntime_and_numpy(conic: tuple[px.Operator, Path]):
    script = """
import runpy, sys
sys.modules |= {"torch": None, "proxlearn": None}  # importing them fails
runpy.run_path(sys.argv.pop(1))
"""
    example = Path(__file__).parent.parent / "examples/onnx_conic.py"
    command = [sys.executable, "-c", script, str(example), str(conic[1]).removesuffix(".json")]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    points, value = done.stdout.splitlines()
    assert points.startswith("1000 points after at most ")
    assert float(value.split()[2].rstrip(",")) < 1e-3


def test_a_file_says_nothing_of_the_machine_it_was_made_on(conic: tuple[px.Operator, Path]):
    for file in conic[1].parent.iterdir():
        assert b"/src/proxlearn" not in file.read_bytes()
        assert b"site-packages" not in file.read_bytes()


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_operators_can_be_exported(name: str, tmp_path: Path):
    problem, operator = px.problem(name), px.pretrained(name, "cpu")
    graphs = Sessions(operator.export(tmp_path / f"{name}.onnx"))
    assert "objective" in graphs.graphs
    for count, points in ((1, 1), (7, 40)):
        graphs.agree_with(operator, held_out(problem, count), points)
    if name == "peaks":  # of any number
        graphs.agree_with(operator, held_out(problem, 2).unflatten(1, (8, 6))[:, :3], 20)
    if name == "maxcut":
        graphs.agree_with(operator, torch.ones(2, 5, 5) - torch.eye(5), 20)


def parts(count: int) -> list[Mesh]:
    draw, kinds = torch.Generator().manual_seed(0), ("flange", "bracket", "gear")
    return [part(kinds[k % len(kinds)], draw).mesh for k in range(count)]


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize(("name", "of"), [("symmetry", Symmetry), ("rotation", Rotation)])
def test_operators_that_look_at_clouds_can_be_exported(
    name: str, of: type[Symmetry | Rotation], tmp_path: Path
):
    """A corner of the grid, or a moved point, may have two points equally near, and a rounding then
    decides: a few of the 32,768 corners and of the points that look there differ."""
    operator = px.pretrained(name, "cpu")
    operator.problem = of(parts(3))
    graphs = Sessions(operator.export(tmp_path / f"{name}.onnx"))
    for count, points in ((1, 1), (7, 40)):
        graphs.agree_with(operator, held_out(operator.problem, count), points, share=0.99)


@torch.no_grad()
def test_a_network_that_looks_at_clouds_is_of_the_number_of_points_it_was_exported_with(
    tmp_path: Path,
):
    sizes = {"kind": "matching", "reflected": 20, "side": 6, "width": 8}
    operator = px.Operator.untrained(Symmetry(parts(1)), sizes)
    for weight in operator.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    cloud = held_out(operator.problem, 2)["cloud"][:, :64]
    said = json.loads(operator.export(tmp_path / "planes.pt2", cloud).read_text())
    assert said["graphs"]["prepare"]["inputs"] == {"tau": ["instances", 64, 6]}
    prepare, apply = (
        torch.export.load(tmp_path / graph["file"]).module() for graph in said["graphs"].values()
    )
    prepared, x = prepare({"tau": cloud}), operator.space.sample(2, 9)
    expected = operator.prepare(operator.encode(cloud))
    assert (prepared["prepared_ids"] == expected["ids"]).float().mean() > 0.99
    got = apply({"x": x} | prepared)["y"]
    torch.testing.assert_close(got, operator(x, cloud), rtol=0, atol=1e-5)
    assert (got - x).abs().max() > 1e-3


@torch.no_grad()
def test_operators_that_look_at_pictures_can_be_exported(tmp_path: Path):
    sizes = {"kind": "boxes", "mixed": 8, "channels": 4, "width": 16, "blocks": 1}
    operator = px.Operator.untrained(Detection(side=48), sizes)
    for weight in (*operator.network.move.parameters(), *operator.network.rate.parameters()):
        torch.nn.init.normal_(weight, std=0.1)
    graphs = Sessions(operator.export(tmp_path / "boxes.onnx"))
    assert graphs.about["graphs"]["prepare"]["inputs"] == {"tau": ["instances", 3, 48, 48]}
    assert set(graphs.about["graphs"]["apply"]["outputs"]) == {"y", "quality"}
    for count, points in ((1, 1), (5, 40)):
        graphs.agree_with(operator, held_out(operator.problem, count)["image"], points)


def test_torch_export_of_an_operator_without_a_problem(wells: px.Problem, tmp_path: Path):
    operator = px.Operator.untrained(wells, {"kind": "coupling", "blocks": 1, "width": 16})
    for weight in operator.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    operator.problem = None
    said = json.loads(operator.export(tmp_path / "wells.pt2").read_text())
    assert list(said["graphs"]) == ["prepare", "apply"]
    assert said["graphs"]["apply"]["outputs"] == {"y": ["instances", "points", 2]}
    prepare, apply = (
        torch.export.load(tmp_path / graph["file"]).module() for graph in said["graphs"].values()
    )
    tau, x = wells.parameters.sample(4), wells.space.sample(4, 9)
    got = apply({"x": x} | prepare({"tau": tau}))["y"]
    torch.testing.assert_close(got, operator(x, tau))


class Stubborn(torch.nn.Module):
    """A part of a network that looks at numbers, or at how many instances there are."""

    def __init__(self, how: str):
        super().__init__()
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        if self.how == "numbers":
            return x + float(x.sum().tolist())
        return x + torch.zeros(len(x), 1)


@pytest.mark.parametrize(
    ("how", "says"), [("numbers", "no graph of tensor operations"), ("length", "use x.shape")]
)
def test_what_is_no_graph_is_refused_in_a_sentence(
    wells: px.Problem, tmp_path: Path, how: str, says: str
):
    operator = px.Operator.untrained(wells, {"kind": "coupling", "blocks": 1, "width": 16})
    operator.network.of_tau.append(Stubborn(how))  # pyright: ignore
    with pytest.raises(CannotExportError, match=f"prepare is .*{says}"):
        operator.export(tmp_path / "wells.pt2")
    assert list(tmp_path.iterdir()) == []


def test_an_objective_that_is_no_graph_is_left_out_with_the_reason(tmp_path: Path):
    def f(x: Tensor, tau: Tensor) -> Tensor:
        return (x - tau).square().sum(-1) * float(tau.sum().tolist())

    problem = px.Problem.from_function(f, px.Box(0, 1, dim=2), px.Box(0, 1, dim=2))
    operator = px.Operator.untrained(problem, {"kind": "coupling", "blocks": 1, "width": 16})
    said = json.loads(operator.export(tmp_path / "f.pt2").read_text())
    assert list(said["graphs"]) == ["prepare", "apply"]
    assert "no graph" in said["left_out"]["objective"]


def test_an_example_is_asked_for_where_it_is_needed(tmp_path: Path):
    operator = px.pretrained("maxcut", "cpu")
    operator.problem = None
    with pytest.raises(px.InputError, match="An example is needed"):
        operator.export(tmp_path / "maxcut.pt2")


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    with pytest.raises(SystemExit) as done:
        main(["export", "cosine", str(tmp_path / "cosine.pt2")])
    assert not done.value.code
    said = capsys.readouterr().err
    assert f"apply: {tmp_path / 'cosine.pt2'}, from x, prepared_code" in " ".join(said.split("\n"))
    with pytest.raises(SystemExit) as done:
        main(["export", "cosine", str(tmp_path / "cosine.txt")])
    assert done.value.code == 2
    assert "must be one of .onnx, .pt2" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExportError, match=r"proxlearn\[export\]"):
        px.pretrained("cosine", "cpu").export(tmp_path / "cosine.onnx")
