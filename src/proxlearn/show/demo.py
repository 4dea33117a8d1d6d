"""The demo: a gallery of conics solved by the shipped operator, beside other methods."""

from collections.abc import Iterable
from pathlib import Path

import torch

from proxlearn.common.files import writable_folder, write_atomically, write_rows
from proxlearn.common.provenance import Row, row
from proxlearn.figures import draw as plots
from proxlearn.figures.plane import show_objective, show_points
from proxlearn.measure.evaluate import Candidate, Solved, solve_timed
from proxlearn.operators.operator import Operator
from proxlearn.problems import problem
from proxlearn.show.report import report

CONICS = {
    "circle": (0.25, 0, 0.25, 0, 0, -1),
    "ellipse": (0.1, 0, 0.4, 0, 0, -1),
    "tilted ellipse": (0.3, 0.4, 0.3, 0.2, 0, -0.8),
    "ellipse cut by the edge": (0.2, 0, 0.3, -0.9, 0.9, -0.5),
    "hyperbola": (0.3, 0, -0.3, 0, 0, -1),
    "tilted hyperbola": (0, 0.6, 0, 0, 0, -1),
    "narrow hyperbola": (0.8, 0.1, -0.2, 0.3, 0.2, 0.6),
    "parabola": (0.25, 0, 0, 0, -0.8, -0.6),
    "two crossing lines": (0.5, 0, -0.3, 0, 0, 0),
    "two parallel lines": (0.3, 0, 0, 0, 0, -0.9),
    "one line": (0, 0, 0, 0.5, 1, -0.5),
    "empty: nothing but a nearest point": (0.4, 0.1, 0.5, 0.2, -0.1, 0.8),
}
HERO = ("circle", "tilted ellipse", "hyperbola", "parabola", "two crossing lines", "one line")
APPLICATIONS = (0, 1, 2, 5)  # the rows of the hero picture
SOLVED = 0.01  # a solution counts as solved if its value is so near to the best known
STARTS, SCIPY_STARTS = 1024, 16  # SciPy goes one start at a time
ABOUT = f"""
Twelve conics `A x^2 + B x y + C y^2 + D x + E y + F = 0` with tau = (A, ..., F). The operator has
seen no conic of these in training and uses no objective: it is applied to random starts, and they
move onto the curve.

`solved` is the share of solutions inside the space whose value is within {SOLVED} of the best value
known for their conic; `us_per_start` is the time for one start in microseconds.
"""


def demo(
    out: str | Path, operator: Operator, device: str = "auto", command: str = ""
) -> tuple[list[Row], Path]:
    """Solve, draw and write rows and a page into the folder `out`; the rows and the page's path."""
    folder, conic = writable_folder(out), problem("conic")
    tau = torch.tensor(list(CONICS.values()), device=operator.device)
    methods = [
        (Candidate("operator", "operator", {"operator": operator}), STARTS),
        (Candidate("L-BFGS, batched", "lbfgs", {}), STARTS),
        (Candidate("Adam, 1,000 steps", "descent", {"steps": 1000}), STARTS),
        (Candidate("SciPy's L-BFGS-B", "multistart", {}), SCIPY_STARTS),
    ]
    solved = [solve_timed(conic, each, tau, starts, 0, device) for each, starts in methods]
    rows = list(_method_rows(solved, operator))
    write_atomically(folder / "about.md", ABOUT)
    write_rows(folder / "methods.jsonl", rows)
    write_rows(folder / "conics.jsonl", _conic_rows(solved[0], operator))
    plots.gallery(conic, tau, solved[0].solutions, folder / "solutions.png", list(CONICS))
    hero(operator, folder / "applications.png")
    return rows, report(folder, folder / "index.html", "proxlearn: conics", command)


def _method_rows(solved: list[Solved], operator: Operator) -> Iterable[Row]:
    """One row for each method: how long it took, and how many solutions arrived."""
    values = [each.solutions.values for each in solved if each.solutions.values is not None]
    best = torch.stack([each.amin(1) for each in values]).amin(0)[:, None]
    for each, value in zip(solved, values, strict=True):
        instances, starts = value.shape
        arrived = (value - best < SOLVED) & each.solutions.inside
        yield row(
            operator.device,
            label=each.candidate.label,
            instances=instances,
            starts=starts,
            seconds=each.seconds,
            us_per_start=1e6 * each.seconds / (instances * starts),
            value_median=value.median().item(),
            solved=arrived.float().mean().item(),
        )


def _conic_rows(solved: Solved, operator: Operator) -> Iterable[Row]:
    """One row for each conic: what the operator's solutions are worth."""
    solutions = solved.solutions
    assert solutions.values is not None
    assert solutions.applications is not None
    for k, (name, tau) in enumerate(CONICS.items()):
        yield row(
            operator.device,
            conic=name,
            tau=", ".join(f"{number:g}" for number in tau),
            inside=solutions.inside[k].float().mean().item(),
            value_best=solutions.values[k].min().item(),
            value_median=solutions.values[k].median().item(),
            applications=solutions.applications[k].float().mean().item(),
        )


def hero(operator: Operator, path: str | Path, starts: int = 400) -> Path:
    """From starts to solutions: a column for each conic, a row for each number of applications."""
    conic, width = problem("conic"), len(HERO)
    figure = plots.new_figure(2 * width, 2.05 * len(APPLICATIONS))
    grid = figure.subplots(len(APPLICATIONS), width, squeeze=False)
    tau = torch.tensor([CONICS[name] for name in HERO])
    for axes_row, steps in zip(grid, APPLICATIONS):
        solutions = operator.solve(tau, starts=starts, steps=steps)
        word = "starts" if steps == 0 else f"{steps} application{'s' * (steps > 1)}"
        axes_row[0].set_ylabel(word, fontsize="medium")
        for k, axes in enumerate(axes_row):
            show_objective(axes, conic, tau[k : k + 1], lines=False)
            show_points(axes, solutions.points[k].cpu(), s=5)
            axes.set(xticks=[], yticks=[])
    for name, axes in zip(HERO, grid[0]):
        axes.set_title(name, fontsize="medium")
    return plots.save(figure, path, dpi=80)
