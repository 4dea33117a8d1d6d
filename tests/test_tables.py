"""Tables of optima on the screen: no column is squeezed, and a cut reads as a cut."""

import pytest
import torch
from rich.console import Console

import proxlearn as px
from proxlearn.answers.table import table_of_optima
from proxlearn.problems.maxcut.cuts import Cuts
from proxlearn.show import terminal


def shown(rows: list, width: int, problem: px.Problem | None = None) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(table_of_optima(rows, width, (problem or px.Problem()).written))
    return captured.get()


def row(point: list[float], value: float | None = -0.125, **more) -> dict:
    usual = {"share": 0.25, "spread": 0.01, "kind": "point", "dimension": 0, "certificate": None}
    return usual | {"point": point, "value": value} | more


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("certificate", [None, "unconverged"])
def test_nothing_is_squeezed(width: int, certificate: str | None):
    rows = [row([-1.23456] * 6, kind="continuum", certificate=certificate)] * 3
    text = shown(rows, width)
    assert "continuum, 0-D" in text
    assert "…" not in text
    assert certificate is None or certificate in text
    assert all(len(line) <= width for line in text.splitlines())


def test_coordinates_are_worth_more_than_digits():
    rows = [row([-1.23456] * 6, certificate="minimum")]
    assert shown(rows, 80).count("-1.23") == 6
    assert shown(rows, 120).count("-1.2346") == 6
    assert shown(rows, 50).count("-1.23") == 1
    assert "..." in shown(rows, 50)


def test_no_optima_are_an_empty_table():
    assert shown([], 80).strip() == ""


def test_a_cut_is_shown_as_a_cut():
    cuts = Cuts(5)
    text = shown([row([1.0, -1, -1, 1, 1], -88.0)], 80, cuts)
    assert "+--++" in text
    assert "weight" in text
    assert "88" in text
    assert "-88" not in text


def test_cuts_that_differ_in_one_vertex_look_different():
    sides = torch.ones(40)
    other = sides.clone()
    other[37] = -1
    lines = shown([row(sides.tolist()), row(other.tolist())], 80, Cuts(40)).splitlines()
    assert lines[-1].split()[2] != lines[-2].split()[2]


def test_the_cut_of_a_large_graph_is_shortened():
    text = shown([row([1.0] * 300 + [-1.0] * 100)], 120, Cuts(400))
    assert "(300 of 400 on +)" in " ".join(text.split())


def test_results_too_wide_for_the_screen_are_turned(capsys, monkeypatch):
    rows = [{"label": f"method {k}", "wd": 0.125 + k, "rho": 0.5 + k} for k in range(2)]
    monkeypatch.setattr(terminal, "_output", lambda: Console(width=80))
    terminal.rows_table(rows)
    wide = capsys.readouterr()
    assert wide.out.splitlines()[0].split() == ["label", "wd", "rho"]
    assert "wd: witnessed divergence" in wide.err
    monkeypatch.setattr(terminal, "_output", lambda: Console(width=30))
    terminal.rows_table(
        [{**row, "value": 1e-7 * k, "seconds": 0.125 + k} for k, row in enumerate(rows)]
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["label", "wd", "rho", "value", "seconds"]


@pytest.mark.parametrize("problem", [None, Cuts(2)])
def test_without_an_objective_there_are_no_values(problem: px.Problem | None):
    assert "25.0%" in shown([row([1.0, -1.0], None)], 80, problem)
