"""Pictures: they are written whole, show what they should, and say what is missing."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.image import imread
from torch import Tensor

import proxlearn as px
from proxlearn import problems
from proxlearn.answers.solutions import Solutions
from proxlearn.cli import solve as solve_command
from proxlearn.cli.main import main
from proxlearn.figures import animation
from proxlearn.figures import draw as plots
from proxlearn.figures import line as _line
from proxlearn.figures import other as _other
from proxlearn.figures import plane as _plane
from proxlearn.figures.animation import BETWEEN, animate, check_animated
from proxlearn.problems.springs import picture as springs


def solutions_at(problem: px.Problem, points: Tensor, tau: Tensor | None = None) -> Solutions:
    """Solutions (i n d) as a solver would return them."""
    batch = problem.batch(tau)
    return Solutions.of(problem.space, points, points).valued(problem, batch)


def pixels_of(path: Path, color: str) -> np.ndarray:
    """Where a picture is nearly of this colour."""
    return np.abs(imread(path)[..., :3] - to_rgb(color)).max(-1) < 0.12


def flat(dim: int) -> px.Problem:
    return px.Problem.from_function(
        lambda x: x.square().sum(-1), px.Box(-1.0, 1.0, dim=dim), name=f"bowl{dim}"
    )


@pytest.mark.parametrize(
    ("problem", "style"),
    [(flat(1), _line), (flat(2), _plane), (flat(3), _other), (px.problem("springs"), springs)],
)
def test_a_problem_is_drawn_by_its_own_picture_or_else_its_dimension(
    problem: px.Problem, style: object
):
    assert plots.style_of(problem) is style


PICTURE = """
SIZE = (2.0, 2.0)

def panel(figure, problem, tau, solutions, optima):
    figure.subplots().set_title(f"{len(optima)} optima")
"""


def test_a_problem_with_a_dash_in_its_name_has_its_own_picture(tmp_path: Path, monkeypatch):
    folder = tmp_path / "my_thing"
    folder.mkdir()
    folder.joinpath("__init__.py").touch()
    folder.joinpath("picture.py").write_text(PICTURE)
    folder.joinpath("my_thing.py").write_text(
        "import proxlearn as px\n\n\nclass MyThing(px.Problem):\n    name = 'my-thing'\n"
        "    space = px.Box(-1.0, 1.0, dim=2)\n\n"
        "    def objective(self, x, tau):\n        return x.square().sum(-1)\n"
    )
    monkeypatch.setattr(problems, "__path__", [*problems.__path__, str(tmp_path)])
    problem = px.problem("my-thing")
    found = solutions_at(problem, torch.zeros(1, 5, 2))
    assert found.plot().subfigs[0].axes[0].get_title() == "1 optima"
    for name in [name for name in sys.modules if name.startswith("proxlearn.problems.my_thing")]:
        del sys.modules[name]


def test_solutions_are_rounded_and_clustered_once(monkeypatch: pytest.MonkeyPatch):
    """Whatever is drawn, and not at all where the optima are given."""
    maxcut = px.problem("maxcut")
    weights = torch.ones(1, 8, 8) - torch.eye(8)
    found = px.solve(maxcut, weights, "lbfgs", starts=6, device="cpu", steps=3)
    optima = found.rounded().unique()
    calls = []

    def count(name: str) -> None:
        done = getattr(Solutions, name)

        def counted(*given, **named):
            calls.append(name)
            return done(*given, **named)

        monkeypatch.setattr(Solutions, name, counted)

    for name in ("unique", "rounded", "with_values"):
        count(name)
    shown = found.plot().subfigs[0].axes
    assert sorted(calls) == ["rounded", "unique", "with_values"]  # the cuts' own values
    calls.clear()
    assert len(found.plot(optima=optima).subfigs[0].axes) == len(shown)
    assert sorted(calls) == ["rounded", "with_values"]


def test_given_optima_are_drawn(wells: px.Problem):
    tau = torch.tensor([[1.0, 0.7]])
    found = px.solve(wells, tau, "lbfgs", starts=64, device="cpu")
    optima = found.unique()
    drawn = {
        count: len(found.plot(optima=some).subfigs[0].axes[0].texts)  # a number for each ring
        for count, some in ((4, optima), (0, optima[:0]))
    }
    assert drawn == {4: 4, 0: 0}


def test_a_relaxation_is_drawn_from_bare_points_too():
    """Solutions of a file know neither problem nor values."""
    maxcut, weights = px.problem("maxcut"), torch.ones(1, 5, 5) - torch.eye(5)
    points = px.Circles(5).sample(1, 4, generator=torch.Generator().manual_seed(0))
    bare = Solutions.of(px.Circles(5), points, points)
    assert "weight that is cut" in plots.figure(maxcut, weights, bare).subfigs[0].get_supxlabel()


def test_bare_points_of_a_single_objective_are_drawn_and_checked():
    problem = flat(2)
    bare = Solutions.of(problem.space, torch.zeros(1, 4, 2), torch.zeros(1, 4, 2))
    assert plots.figure(problem, None, bare).subfigs[0].axes
    with pytest.raises(px.InputError, match=r"expected \(1, points, 3\)"):
        plots.figure(flat(3), None, bare)


def test_solutions_are_where_they_should_be(tmp_path: Path, wells: px.Problem):
    """Points in the left half of the plane colour the left half of the picture."""
    left = torch.rand(1, 300, 2, generator=torch.Generator().manual_seed(0)) - torch.tensor([2, 0])
    tau = torch.ones(2)
    file = plots.draw(wells, tau, solutions_at(wells, left, tau), tmp_path / "left.png")
    red = pixels_of(file, _plane.SOLUTION)
    middle = red.shape[1] // 2
    assert red[:, :middle].sum() > 1000
    assert red[:, middle:].sum() == 0


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_every_dimension_can_be_drawn(tmp_path: Path, dim: int):
    problem = flat(dim)
    points = 0.1 * problem.space.sample(1, 100, generator=torch.Generator().manual_seed(0))
    file = plots.draw(problem, None, solutions_at(problem, points), tmp_path / "deep/a.png")
    assert pixels_of(file, _plane.SOLUTION).sum() > 30
    assert imread(file).std() > 0.05


def test_springs_show_both_directions(tmp_path: Path):
    problem, tau = px.problem("springs"), torch.tensor([0.6, 0.9, 0.5, 0.7])
    rests = problem.truth(tau[None])
    assert rests is not None
    points = rests[0][None].repeat_interleave(3, 1)
    file = plots.draw(problem, tau, solutions_at(problem, points, tau), tmp_path / "springs.png")
    assert pixels_of(file, springs.RIGHT).sum() > 500
    assert pixels_of(file, springs.LEFT).sum() > 500


def test_gallery_and_comparison_grow_with_what_they_show(tmp_path: Path, wells: px.Problem):
    tau = torch.full((3, 2), 1.0)
    found = solutions_at(wells, wells.space.sample(3, 50), tau)
    gallery = plots.gallery(wells, tau, found, tmp_path / "g.png", titles=["one", "two", "three"])
    compared = plots.compare(wells, tau, {"a": found, "b": found}, tmp_path / "c.png")
    height, width, _ = imread(gallery).shape
    assert imread(compared).shape[:2] == (2 * height, width)


def test_rings_are_drawn_around_points_and_not_on_curves(tmp_path: Path):
    problem = flat(2)
    angle = torch.linspace(0, 2 * math.pi, 400)
    circle = 0.8 * torch.stack((angle.cos(), angle.sin()), -1)[None]
    corners = torch.tensor([[0.5, 0.5], [-0.5, 0.5], [0.5, -0.5]]).repeat(100, 1)[None]
    on_curve, on_points = (
        found.plot(tmp_path / f"{found.points.shape[1]}.png", found.unique(verify=False))
        for found in (solutions_at(problem, points) for points in (circle, corners))
    )
    text = pixels_of(on_curve, _plane.OPTIMUM).sum()  # is as dark, and much the same in both
    assert pixels_of(on_points, _plane.OPTIMUM).sum() > text + 100


def test_nothing_found_is_a_picture_too(tmp_path: Path):
    """Every solution left the space."""
    problem = flat(2)
    outside = torch.full((1, 20, 2), 7.0)
    file = plots.draw(problem, None, solutions_at(problem, outside), tmp_path / "none.png")
    assert pixels_of(file, _plane.SOLUTION).sum() == 0


def test_wrong_calls_are_explained(tmp_path: Path, wells: px.Problem):
    tau = torch.ones(2, 2)
    two = solutions_at(wells, wells.space.sample(2, 5), tau)
    with pytest.raises(px.InputError, match="use gallery"):
        plots.draw(wells, tau, two, tmp_path / "a.png")
    with pytest.raises(px.InputError, match="1 taus but solutions of 2"):
        plots.gallery(wells, tau[:1], two, tmp_path / "a.png")
    with pytest.raises(px.InputError, match="of one instance, but there are 2"):
        two.plot(optima=two[0].unique())
    with pytest.raises(px.InputError, match="png, svg, pdf"):
        plots.gallery(wells, tau, two, tmp_path / "a.gif")


def test_without_matplotlib_it_says_what_to_install(
    tmp_path: Path, wells: px.Problem, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    one = solutions_at(wells, wells.space.sample(1, 5), torch.ones(2))
    with pytest.raises(px.ProxlearnError, match=r"pip install 'proxlearn\[plots\]'"):
        plots.draw(wells, torch.ones(2), one, tmp_path / "a.png")


def frames_of(path: Path) -> list[np.ndarray]:
    """The pictures of an animation."""
    images = pytest.importorskip("PIL.Image")
    with images.open(path) as gif:
        return [
            np.asarray(gif.convert("RGB")) / 255 for k in range(gif.n_frames) if gif.seek(k) is None
        ]


def red(picture: np.ndarray) -> int:
    """How many pixels are of a solution's colour."""
    return int((np.abs(picture - to_rgb(_plane.SOLUTION)).max(-1) < 0.2).sum())


def test_an_animation_shows_the_points_on_their_way(tmp_path: Path):
    problem = flat(2)
    starts = problem.space.sample(1, 60, generator=torch.Generator().manual_seed(0))
    steps = {k: solutions_at(problem, starts / 4**k) for k in range(3)}
    path = animate(problem, None, steps, tmp_path / "bowl.gif", steps[2][0].unique())
    pictures = frames_of(path)
    assert len(pictures) == 1 + 2 * BETWEEN + 1
    assert len({picture.shape for picture in pictures}) == 1
    amounts = [red(picture) for picture in pictures]
    assert amounts[0] > amounts[-2] > 0  # they end nearly in one place
    top, bottom = slice(0, 120), slice(-120, None)  # the walls of the bowl
    for part in (top, bottom):
        assert red(pictures[0][part]) > 0 == red(pictures[-1][part])


def test_what_cannot_be_animated_is_said(tmp_path: Path):
    problem = flat(2)
    solutions = solutions_at(problem, torch.zeros(1, 5, 2))
    with pytest.raises(px.InputError, match=r"ending must be \.gif"):
        check_animated(problem, tmp_path / "out.png")
    with pytest.raises(px.InputError, match="'bowl3' has 3"):
        check_animated(flat(3), tmp_path / "out.gif")
    with pytest.raises(px.InputError, match="one instance"):
        animate(problem, None, {0: solutions}, tmp_path / "out.gif")


@pytest.mark.parametrize("method", ["operator", "descent"])
def test_the_command_line_animates(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(animation, "BETWEEN", 1)
    monkeypatch.setattr(solve_command, "MOST_SHOWN", 4)
    typed = "solve conic --tau 0.3,0,0.5,0,0,-1 --starts 100 --steps 9 --gif out.gif --method"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main([*typed.split(), method])
    assert not done.value.code
    # After 0, 1, 2, 5 and 9 steps, and the end; of frames that are alike a file has one.
    assert len(frames_of(tmp_path / "out.gif")) in (5, 6)


def test_a_method_that_cannot_be_followed_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    gif = str(tmp_path / "out.gif")
    with pytest.raises(SystemExit) as done:
        main(["solve", "cosine", "--method", "multistart", "--starts", "4", "--gif", gif])
    assert done.value.code == 2
    assert "cannot be read along the way" in " ".join(capsys.readouterr().err.split())
