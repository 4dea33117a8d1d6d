"""Solutions: what came out for each start; picking, saving, showing and drawing it."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor

import proxlearn as px
from proxlearn.answers import solutions as module
from proxlearn.answers.solutions import Solutions
from proxlearn.calculus.certify import CERTIFICATES
from proxlearn.gpu.parallel import Process
from proxlearn.operators.taus_file import solve_many

BOX = px.Box(-5.0, 5.0, dim=2)
SPACES = [BOX, px.Circles(2), px.Planes(2.0), px.Product(px.Sphere(3), px.Box([0, 1], [1, 3]))]
HEIGHT = px.Problem.from_function(lambda x: 3 * x[..., 2], px.Sphere(3))


def solutions(points: Tensor, values: Tensor | None = None) -> Solutions:
    made = Solutions.of(BOX, points[None], points[None])
    return Solutions(BOX, points[None], points[None], made.inside, values)


def full(space: px.Space, instances: int = 3, points: int = 4) -> Solutions:
    """Solutions with every field."""
    generator = torch.Generator().manual_seed(0)
    x, starts = space.sample(2, instances, points, generator=generator)
    numbers = torch.arange(instances * points).reshape(instances, points)
    return Solutions(
        space,
        x,
        starts,
        numbers % 3 > 0,
        x.sum(-1),
        x.norm(dim=-1),
        numbers.int(),
        (numbers % len(CERTIFICATES)).to(torch.int8),
        numbers % 2 > 0,
        quality=torch.rand(instances, points, generator=generator),
        tau=torch.rand(instances, 6, generator=generator),
    )


def shown(thing: object) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(thing)
    return captured.get()


def same(a: Solutions, b: Solutions) -> bool:
    names = [*module.PER_POINT, "tau"]
    pairs = [(getattr(a, name), getattr(b, name)) for name in names]
    return a.space == b.space and all(
        (x is y is None) or (x.dtype == y.dtype and torch.equal(x, y)) for x, y in pairs
    )


def test_inside_is_what_the_space_says_and_a_number():
    points = torch.tensor(
        [[0.0, 0.0], [5.004, 0.0], [6.0, 0.0], [torch.nan, 0.0], [torch.inf, 1.0]]
    )
    assert solutions(points).inside[0].tolist() == [True, True, False, False, False]


def test_values_and_gradients_are_those_of_the_objective(wells: px.Problem):
    tau, x = torch.tensor([[1.0, 0.7], [0.6, 1.3]]), wells.space.sample(2, 9)
    found = Solutions.of(wells.space, x, x, applications=3).valued(wells, tau)
    torch.testing.assert_close(found.values, wells.objective(x, tau))
    slope = 4 * x * (x.square() - tau[:, None].square())
    torch.testing.assert_close(found.gradient_norms, slope.norm(dim=-1))
    assert found.problem is wells
    assert found.applications.tolist() == [[3] * 9] * 2


def test_a_gradient_is_along_the_manifold():
    """The height of a point of the sphere grows by the sine of its angle to the pole."""
    x = HEIGHT.space.sample(1, 50, generator=torch.Generator().manual_seed(0))
    found = Solutions.of(HEIGHT.space, x, x).valued(HEIGHT, torch.zeros(1, 0))
    torch.testing.assert_close(found.gradient_norms, 3 * (1 - x[..., 2].square()).sqrt())


def test_values_come_without_gradients_and_some_points_at_a_time(
    wells: px.Problem, monkeypatch: pytest.MonkeyPatch
):
    tau, x = torch.tensor([[1.0, 0.7], [0.6, 1.3], [1.0, 1.0]]), wells.space.sample(3, 10)
    whole = Solutions.of(wells.space, x, x).valued(wells, tau)
    for most in (1, 4, 25):
        monkeypatch.setattr(module, "VALUED_AT_ONCE", most)
        with torch.no_grad():
            parts = Solutions.of(wells.space, x, x).valued(wells, tau)
        torch.testing.assert_close(parts.values, whole.values)
        torch.testing.assert_close(parts.gradient_norms, whole.gradient_norms)
        assert not parts.values.requires_grad


def test_every_solver_fills_in_what_it_knows(wells: px.Problem, tiny: dict):
    operator = px.learn(wells, steps=1, **tiny)
    by_operator = operator.solve([1.0, 0.7], starts=4, steps=2)
    assert (by_operator.applications == 2).all()
    assert by_operator.gradient_norms.shape == (1, 4)
    by_lbfgs = px.solve(wells, [1.0, 0.7], method="lbfgs", starts=4, device="cpu")
    assert by_lbfgs.gradient_norms.max() < 1e-2
    operator.problem = None
    bare = operator.solve([1.0, 0.7], starts=4)
    assert bare.values is None
    assert bare.gradient_norms is None


def test_instances_can_be_iterated_over_and_have_an_end():
    two = Solutions.of(BOX, torch.zeros(2, 3, 2), torch.zeros(2, 3, 2))
    assert [len(one) for one in two] == [1, 1]
    with pytest.raises(IndexError, match="2 instances"):
        two[2]


@pytest.mark.parametrize(
    ("index", "kept"),
    [
        (2, [2]),
        (-1, [4]),
        (np.int64(1), [1]),
        (np.array([2, 2]), [2, 2]),
        (slice(1, 3), [1, 2]),
        (torch.tensor([True, False, False, True, False]), [0, 3]),
        (torch.tensor([4, 0, -1]), [4, 0, 4]),
        (torch.tensor([], dtype=torch.long), []),
    ],
)
def test_picking_instances(index: Any, kept: list[int]):
    made = full(BOX, instances=5)
    picked = made[index]
    assert len(picked) == len(kept)
    for name in [*module.PER_POINT, "tau"]:
        assert torch.equal(getattr(picked, name), getattr(made, name)[kept])


@pytest.mark.parametrize(
    "index", [torch.tensor([True, False]), torch.tensor([5]), torch.tensor([-6]), torch.eye(5) > 0]
)
def test_instances_that_are_not_there_are_said(index: Tensor):
    with pytest.raises(IndexError, match="There are 5 instances; an index"):
        full(BOX, instances=5)[index]


@pytest.mark.parametrize(
    "index",
    [1.5, True, (0, 1), (0, slice(2)), "a", None, [0.5], torch.tensor(1.0), 2**63],
    ids=str,
)
def test_an_index_of_another_kind_is_said(index: Any):
    with pytest.raises(IndexError, match=r"There are 5 instances; an index .* whole number"):
        full(BOX, instances=5)[index]
    assert len(full(BOX, instances=5)[[]]) == 0


def test_values_are_of_the_taus_that_were_solved(wells: px.Problem):
    found = Solutions.of(wells.space, torch.zeros(2, 3, 2), torch.zeros(2, 3, 2))
    with pytest.raises(px.InputError, match=r"expected \(3, points, 2\)"):
        found.valued(wells, torch.ones(3, 2))
    with pytest.raises(px.InputError, match="tau has shape"):
        found.valued(wells, torch.ones(2, 5))
    assert found[0].valued(wells, [1.0, 0.7]).values.shape == (1, 3)


@pytest.mark.parametrize("name", ["tolerance", "value_tolerance", "smallest_share"])
def test_tolerances_are_numbers_from_0(wells: px.Problem, name: str):
    found = Solutions.of(wells.space, torch.zeros(1, 3, 2), torch.zeros(1, 3, 2))
    for given in (-1.0, torch.nan):
        with pytest.raises(px.InputError, match=f"{name}= must be a number, 0 or more, not "):
            found.valued(wells, [1.0, 0.7]).unique(**{name: given})


def test_a_file_of_many_taus_is_read_too(wells: px.Problem, tiny: dict, tmp_path: Path):
    operator, taus = px.learn(wells, steps=1, **tiny), np.array([[1.0, 0.7], [0.6, 1.2]])
    solve = partial(operator.solve, steps=2)
    solve_many(solve, operator, taus, tmp_path / "many.npz", Process(), starts=7)
    read = Solutions.load(tmp_path / "many.npz")
    (made,) = operator.stream(taus, starts=7, steps=2)
    for name in ("space", "points", "starts", "inside", "values", "tau"):
        ours, theirs = getattr(read, name), getattr(made, name)
        assert ours == theirs if name == "space" else torch.equal(ours, theirs)
    assert read[1].valued(wells, taus[1]).unique().starts == 7


@pytest.mark.parametrize("ending", ["npz", "json", "safetensors"])
@pytest.mark.parametrize("space", SPACES, ids=lambda space: type(space).__name__)
def test_saved_solutions_come_back(tmp_path: Path, ending: str, space: px.Space):
    made = full(space)
    path = made.save(tmp_path / f"deep/solutions.{ending}")
    assert same(Solutions.load(path), made)
    bare = Solutions.of(space, made.points, made.starts)
    assert same(Solutions.load(bare.save(path)), bare)


def test_a_saved_file_is_for_others_too(tmp_path: Path):
    made = full(BOX)
    arrays = np.load(made.save(tmp_path / "a.npz"))
    assert np.array_equal(arrays["points"], made.points.numpy())
    assert json.loads(str(arrays["about"]))["space"]["kind"] == "box"
    lost = solutions(torch.tensor([[1.0, 2.0], [torch.nan, torch.inf]]))
    text = lost.save(tmp_path / "a.json").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["points"] == [[[1.0, 2.0], [None, None]]]
    back = Solutions.load(tmp_path / "a.json")
    assert back.inside.tolist() == [[True, False]]
    assert back.points[0, 1].isnan().all()


def test_a_file_of_an_earlier_version_holds_more_and_is_read(tmp_path: Path):
    made = full(BOX)
    arrays = dict(np.load(made.save(tmp_path / "a.npz")))
    arrays["about"] = np.array(json.dumps({"space": BOX.describe()}))  # without a checksum
    more = {"levels": np.zeros((3, 4)), "level_errors": np.ones((3, 4))}
    np.savez(tmp_path / "earlier.npz", **arrays, **more)
    assert same(Solutions.load(tmp_path / "earlier.npz"), made)


def test_files_that_cannot_be_read_are_explained(tmp_path: Path):
    with pytest.raises(px.InputError, match=r"must end in one of \.npz, \.safetensors, \.json"):
        full(BOX).save(tmp_path / "a.csv")
    with pytest.raises(px.FileError, match="There is no file of solutions at"):
        Solutions.load(tmp_path / "a.npz")
    for ending in ("npz", "json", "safetensors"):
        path = full(BOX).save(tmp_path / f"a.{ending}")
        path.write_bytes(path.read_bytes()[:50])
        with pytest.raises(px.FileError, match=r"a whole file of solutions|cannot be read as"):
            Solutions.load(path)
    (tmp_path / "other.json").write_text('{"about": {}, "points": [1]}')
    with pytest.raises(px.FileError, match="holds no solutions"):
        Solutions.load(tmp_path / "other.json")
    np.savez(tmp_path / "other.npz", points=np.zeros(3))
    with pytest.raises(
        px.FileError, match="cannot be read as a file of solutions: it has no about"
    ):
        Solutions.load(tmp_path / "other.npz")


def test_repr_says_how_many_and_how_good():
    points = torch.tensor([[0.0, 0.0], [9.0, 0.0]])
    assert "1 instance x 2 points in 2-D, 50.0% inside" in repr(solutions(points))
    values = torch.tensor([[-3.0, -9.0]])  # the lower one is of the point outside
    assert "best value -3" in repr(solutions(points, values))


def test_the_table_has_a_line_for_each_of_the_first_instances(wells: px.Problem):
    tau = torch.rand(30, 2) + 0.5
    x = tau[:, None].expand(30, 4, 2) + 0.1
    lines = shown(Solutions.of(wells.space, x, x).valued(wells, tau)).splitlines()
    assert len(lines) == 1 + module.SHOWN
    assert lines[0].split()[:3] == ["instance", "starts", "inside"]
    best = wells.objective(x, tau)[7].min()
    assert lines[8].split()[:4] == ["7", "4", "100.0%", f"{best:.4g}"]
    assert "100.0%" in shown(Solutions.of(wells.space, x, x))  # without values too


def test_solutions_draw_themselves(wells: px.Problem, tmp_path: Path):
    found = px.solve(wells, [[1.0, 0.7], [0.6, 1.3]], method="lbfgs", starts=16, device="cpu")
    assert found.plot(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert len(found.plot().subfigs) == 2
    assert len(found[1].plot().subfigs) == 1
    bare = Solutions.of(wells.space, found.points, found.starts)
    with pytest.raises(px.InputError, match=r"first attach .* solutions\.valued\(problem, tau\)"):
        bare.plot(tmp_path / "b.png")


def test_what_stands_for_itself_is_not_valued_again():
    """Unless it stands for the same points of another problem."""
    sparse, tau, x = px.problem("sparse"), torch.tensor([[0.8, 0.25]]), torch.ones(1, 3, 8)
    found = Solutions.of(sparse.space, x, x).valued(sparse, tau)
    assert found.rounded() is found
    exact = px.Problem.from_function(lambda x: x.abs().sum(-1), BOX)

    class Smoothed(px.Problem):
        space = BOX

        def objective(self, x, tau):
            return x.square().sum(-1)

        def rounded(self, x, tau):
            return exact, x

    x = torch.full((1, 3, BOX.dim), 0.5)
    found = Solutions.of(BOX, x, x).valued(Smoothed(), None)
    torch.testing.assert_close(found.rounded().values, 2 * found.values)


def test_values_that_overflow_are_said():
    """Of a tau far beyond what 32 bits can compute with."""
    conic = px.problem("conic")
    points = torch.ones(1, 3, 2)
    found = Solutions.of(conic.space, points, points)
    with pytest.warns(px.NotFiniteWarning, match="NaN or infinite at 3 of 3"):
        found.valued(conic, [1e30] * 6)
