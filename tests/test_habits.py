"""Answers in the tools that people use: NumPy, pandas, SciPy's results, notebooks."""

import logging
import pickle
import sys
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import torch

import proxlearn as px
from proxlearn.answers.table import SHOWN
from proxlearn.figures.draw import new_figure

WELLS = torch.tensor([[1.0, 0.7], [0.8, 1.2]])


@pytest.fixture
def solved(wells: px.Problem) -> px.Solutions:
    return px.solve(wells, WELLS, "lbfgs", starts=64)


# NumPy and pandas


def test_solutions_and_optima_are_arrays(solved: px.Solutions):
    assert np.asarray(solved).shape == (2, 64, 2)
    optima = solved[0].unique()
    points = np.asarray(optima, dtype=np.float64)
    assert points.dtype == np.float64
    np.testing.assert_allclose(np.abs(points), np.tile([[1.0, 0.7]], (4, 1)), atol=1e-4)
    copied = np.array(optima)
    copied[:] = 0
    assert optima.points.abs().min() > 0.5


def test_solutions_are_one_instance_after_the_other(solved: px.Solutions):
    ones = list(solved)
    assert [len(one) for one in ones] == [1, 1]
    assert torch.equal(ones[1].points[0], solved.points[1])


def test_a_frame_of_optima(solved: px.Solutions):
    pytest.importorskip("pandas")
    optima = solved[1].polished().unique()
    frame = optima.to_frame()
    assert list(frame.columns[:5]) == ["x1", "x2", "value", "share", "hits"]
    assert frame["certificate"].tolist() == ["minimum"] * 4
    assert frame["hits"].sum() == 64
    np.testing.assert_array_equal(frame[["x1", "x2"]].to_numpy(), np.asarray(optima))
    unknown = replace(optima, values=None, certificates=None).to_frame()
    assert "value" not in unknown
    assert "certificate" not in unknown


def test_a_frame_of_solutions(solved: px.Solutions):
    pytest.importorskip("pandas")
    frame = solved.to_frame()
    assert len(frame) == 2 * 64
    row = frame[(frame["instance"] == 1) & (frame["start"] == 5)].iloc[0]
    assert row["x2"] == solved.points[1, 5, 1]
    assert row["start_x1"] == solved.starts[1, 5, 0]
    assert row["value"] == solved.values[1, 5]  # pyright: ignore[reportOptionalSubscript]
    assert "certificate" not in frame
    assert set(solved.polished().to_frame()["certificate"]) == {"minimum"}


def test_without_pandas_a_sentence(solved: px.Solutions, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        px.ProxlearnError, match=r"needs pandas.*pip install 'proxlearn\[notebook\]"
    ):
        solved.to_frame()


def test_printed_optima_are_a_table(solved: px.Solutions):
    heading, *lines = str(solved[0].polished().unique()).splitlines()
    assert heading.split()[:3] == ["x1", "x2", "value"]
    assert len(lines) == 4
    assert all("minimum" in line for line in lines)


def test_a_problem_says_what_it_is(wells: px.Problem):
    assert repr(wells).startswith("Problem('wells', space=Box(low=(-2.0, -2.0), ")
    assert "parameters=Box(" in repr(wells)
    single = px.Problem.from_function(lambda x: x.square().sum(-1), px.Sphere(3))
    assert repr(single) == "Problem('unnamed', space=Sphere(dim=3))"


# SciPy's results


def test_the_best_is_a_result_of_scipy(solved: px.Solutions):
    found = solved[0].best
    assert found.success
    assert found.status == 0
    assert found.x.shape == (2,)
    assert found.x.dtype == np.float64
    assert found.fun == pytest.approx(0.0, abs=1e-6)
    assert "best of 4 distinct optima found from 64 starts" in found.message
    assert "leads to a certified optimum" in found.message
    certified = solved[0].polished().best
    assert certified.certificate == "minimum"
    assert certified.message.endswith("certified: minimum.")


def test_the_best_of_several_instances_is_refused(solved: px.Solutions):
    with pytest.raises(px.InputError, match=r"not of 2: use solutions\[0\]\.best"):
        _ = solved.best


def test_the_best_claims_no_more_than_is_known(solved: px.Solutions):
    one = solved[0]
    blind = replace(one, values=None, gradient_norms=None, problem=None, tau=None).unique().best
    assert not blind.success
    assert blind.status == 1
    assert np.isnan(blind.fun)
    assert "most reached" in blind.message
    doubted = replace(one, doubts=torch.tensor([1], dtype=torch.int8)).best
    assert not doubted.success
    assert doubted.status == 2
    assert "not to be trusted: outside the trained range" in doubted.message
    nothing = replace(one, inside=torch.zeros_like(one.inside)).unique().best
    assert not nothing.success
    assert nothing.status == 3
    assert np.isnan(nothing.x).all()
    assert nothing.message == "No optimum was found from 64 starts."


def test_the_best_of_a_relaxation_is_what_it_stands_for():
    square = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0.0]])
    best = px.solve(px.problem("maxcut"), square, starts=16).best
    assert best.x.tolist() == [1, -1, 1, -1]
    assert best.fun == -4
    assert not best.success  # that no other cut is larger is not known
    assert "nothing verified" in best.message


# Bounds


def test_bounds_are_pairs_or_an_array():
    box = px.Box([0, -2, 1], [1, 2, 3])
    pairs = [(0, 1), (-2, 2), (1, 3)]
    rows = [[0.0, -2.0, 1.0], [1.0, 2.0, 3.0]]
    assert px.Box(pairs) == px.Box(np.array(pairs)) == box
    assert px.Box(torch.tensor(rows)) == px.Box(np.array(rows)) == box
    assert px.Box(torch.tensor(rows)[:, :2]) == px.Box([0, -2], [1, 2])  # 2 x d, not pairs
    assert px.Box(pairs, open=True) == px.Box([0, -2, 1], [1, 2, 3], open=True)
    assert px.Box([(0, 1)]).dim == 1


@pytest.mark.parametrize(
    "given", [5.0, [1, 2, 3], [(0, 1, 2)], [], torch.zeros(3, 3), torch.zeros(4), "ab", [(0, "a")]]
)
@pytest.mark.usefixtures("any_type")
def test_what_are_no_bounds_is_said(given):
    with pytest.raises(px.InputError, match=r"lower and upper bounds: Box\(-5, 5, dim=2\)"):
        px.Box(given)


def test_pairs_are_checked_like_other_bounds():
    with pytest.raises(px.InputError, match="coordinate 1 has low = 2 and high = -2"):
        px.Box([(0, 1), (2, -2)])
    with pytest.raises(px.InputError, match=r"shape \(2,\) for low; .* of which it has 3"):
        px.Box([(0, 1), (-2, 2)], dim=3)


# The log


def test_the_log_is_silent_by_default(
    wells: px.Problem, tiny: dict, capfd: pytest.CaptureFixture[str]
):
    handlers = logging.getLogger("proxlearn").handlers
    assert [type(each) for each in handlers] == [logging.NullHandler]  # else Python prints warnings
    px.learn(wells, steps=2, **tiny).solve([1.0, 0.7], starts=4)
    assert capfd.readouterr() == ("", "")


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore::proxlearn.errors.PoorOperatorWarning")
def test_the_log_says_what_training_and_solving_say(
    wells: px.Problem, tiny: dict, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level(logging.DEBUG, "proxlearn"):
        operator = px.learn(wells, steps=3, **tiny)
        operator.solve([1.0, 0.7], starts=8)
        px.solve(wells, [1.0, 0.7], "lbfgs", starts=8)
    said = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert said[0] == ("INFO", "Training wells")
    assert any(level == "DEBUG" and "wells: step 3, " in text for level, text in said)
    assert any("wells, judged on held-out instances: {" in text for _, text in said)
    assert [text for level, text in said if level == "WARNING"] == [
        f"wells is poor: {operator.doubtful}"
    ]
    assert "Solved 'wells': Solutions(1 instance x 8 points in 2-D by operator" in said[-2][1]
    assert "Solved 'wells': Solutions(1 instance x 8 points in 2-D by lbfgs" in said[-1][1]
    assert {each.name for each in caplog.records} == {"proxlearn"}


# Notebooks


def test_a_notebook_shows_tables(solved: px.Solutions):
    page = solved._repr_html_()
    assert page.count("<tr>") == 1 + 2
    assert "<td>64</td><td>100.0%</td>" in page
    optima = solved[0].unique()
    page = optima._repr_html_()
    assert page.count("<tr>") == 1 + 4
    assert "<th>x1</th><th>x2</th><th>value</th>" in page
    many = solved[[0] * (SHOWN + 3)]
    assert "... and 3 more" in many._repr_html_()


def test_a_notebook_escapes_what_is_written(solved: px.Solutions):
    class Wild(px.Problem):
        name, space = "wild", solved.space

        def written(self, point: list[float], value: float | None) -> dict[str, str]:
            return {"<b>": "<script>"}

    optima = solved[0].unique()
    page = replace(optima, solutions=replace(solved[0], problem=Wild()))._repr_html_()
    assert "&lt;script&gt;" in page
    assert "<script>" not in page


def test_a_figure_shows_itself():
    pytest.importorskip("matplotlib")
    figure = new_figure(1, 1)
    assert figure._repr_png_()[:4] == b"\x89PNG"  # pyright: ignore[reportAttributeAccessIssue]
    figure = pickle.load(BytesIO(pickle.dumps(figure)))
    assert figure.get_size_inches().tolist() == [1, 1]


def test_optima_draw_themselves(solved: px.Solutions, tmp_path):
    optima = solved[0].unique()
    assert optima[:2].plot(tmp_path / "two.png").read_bytes()[:4] == b"\x89PNG"  # pyright: ignore
    with pytest.raises(px.InputError, match=r"solutions\.unique"):
        replace(optima, solutions=None).plot()
