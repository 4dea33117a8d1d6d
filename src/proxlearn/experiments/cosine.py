"""The effect of the proximal term (paper, D.3): 121 wells, four values of lam, and a swarm."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.common.devices import pick_device
from proxlearn.common.provenance import Row, row
from proxlearn.common.seeds import generator_for
from proxlearn.errors import InputError
from proxlearn.experiments._shared import DESCENT, INK, PROXIMAL, Folder, bare, markdown
from proxlearn.figures.draw import new_figure, save
from proxlearn.measure import metrics
from proxlearn.problems.base import Problem
from proxlearn.problems.cosine import Cosine
from proxlearn.solvers.solve import solve
from proxlearn.solvers.swarm.learn import learn_swarm
from proxlearn.solvers.swarm.network import POPULATION, Swarm, load_swarm

PUBLISHED = {  # the paper's words; it gives a picture and no numbers
    0.0: "most are missing",
    1.0: "most are missing",
    10.0: "the outer ring is missing",
    400.0: "all are found",
    None: "most are missing",  # the learned swarm, from normal starts
}
APPLICATIONS = 10
TOLERANCE = 0.05  # a minimum is found if a solution is this near; wells are 1 apart
SEED = 0


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]
    swarm: dict[str, Any]
    starts: int = 4096
    swarm_runs: int = 256  # of a population of 4 each
    lams: tuple[float, ...] = (0.0, 1.0, 10.0, 400.0)


# Sinusoids for the many narrow wells; random weights to begin with, as in the paper, since an
# operator that begins as the identity holds on to its points even without a proximal term.
NETWORK = {"gated": False, "sinusoids": 64, "start_at_identity": False}
FULL = Sizes(
    training={"steps": 2_500, "architecture": NETWORK, "seed": SEED},
    swarm={"steps": 400, "seed": SEED},
)
QUICK = Sizes(
    training={"seconds": 35.0, "architecture": NETWORK, "seed": SEED},
    swarm={"steps": 150, "seed": SEED},
)
LEFT_OUT = (
    "It trains for 35 seconds for each lam instead of 2,500 steps, and the swarm for 150 steps "
    "instead of 400, so that a few minima may still be missing at lam = 400."
)


class Penalized(Cosine):
    """The same with `0.01 |x|^2`, which keeps a swarm's particles in the box, as in the paper. It
    moves the outermost minima by 0.0003."""

    name = "cosine, penalized"

    def objective(self, x, tau):
        return super().objective(x, tau) + 0.01 * x.square().sum(-1)


class Found(NamedTuple):
    """What a method found, and the row that says so."""

    row: Row
    solutions: Solutions


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train with each lam, train the swarm, and count the minima found: rows and a table.

    Uniform starts are the library's, normal ones those of the paper's swarm; the largest lam and
    the swarm begin from both.
    """
    cosine, found = Cosine(), []
    device = pick_device(folder.device)
    uniform = starting_points(cosine.space, sizes.starts, 1, SEED, device)
    normal = normal_starts(sizes.swarm_runs * POPULATION).to(device)
    both = {"uniform": uniform, "normal": normal}
    for lam in sizes.lams:
        operator = folder.train(f"lam{lam:g}", cosine, sizes.training | {"lam": lam})
        about = {"method": "operator", "lam": lam} | length(operator.provenance)
        for begun in ("uniform", "normal") if lam == max(sizes.lams) else ("uniform",):
            found.append(count(cosine, about, begun, both[begun], operator=operator))
    swarm = trained_swarm(sizes, folder)
    about = {"method": "swarm", "lam": None} | length(swarm.provenance)
    for begun, starts in both.items():
        found.append(count(Penalized(), about, begun, starts, swarm=swarm))
    draw_grids(cosine, found, folder)
    rows = [each.row for each in found]
    return rows, table(rows)


def normal_starts(count: int) -> Float[Tensor, "1 n 2"]:
    """Starts around the middle of the box, of standard deviation 1, as in the paper."""
    return torch.randn(1, count, 2, generator=generator_for(SEED, "normal starts"))


def trained_swarm(sizes: Sizes, folder: Folder) -> Swarm:
    """A swarm trained into the folder, or the one already there."""
    file = folder.path / "swarm" / "swarm.safetensors"
    if folder.resume and file.is_file():
        swarm = load_swarm(file, folder.device)
        made = swarm.provenance["training"] | {"steps": swarm.provenance["steps"]}
        if any(made.get(name) != asked for name, asked in sizes.swarm.items()):
            raise InputError(
                f"{file} was trained with {made}, but {sizes.swarm} is asked for: run without "
                "--resume, or into another folder."
            )
        return swarm
    swarm = learn_swarm(Penalized(), device=folder.device, progress=folder.progress, **sizes.swarm)
    swarm.save(file)
    return swarm


def length(provenance: dict[str, Any]) -> Row:
    """How long a training was."""
    return {"trained_steps": provenance["steps"], "trained_seconds": provenance["seconds"]}


def count(
    problem: Problem, about: Row, begun: str, starts: Float[Tensor, "1 n 2"], **settings: Any
) -> Found:
    """How many of the minima have a solution near them."""
    device = str(starts.device)
    settings |= {"steps": APPLICATIONS}
    solutions = solve(problem, None, about["method"], starts, SEED, device, **settings)
    known = Cosine().truth(solutions.points.new_zeros(1, 0))
    hits, total = metrics.recall(solutions, known, TOLERANCE)
    fields = {
        "problem": problem.name,
        **about,
        "applications": APPLICATIONS,
        "starts": starts.shape[1],
        "begun": begun,
        "begun_in": len(problem.space.pairwise(known[0], starts[0]).argmin(0).unique()),
        "tolerance": TOLERANCE,
        "found": hits,
        "known": total,
        "inside": solutions.inside.float().mean().item(),
        "seed": SEED,
    }
    return Found(row(device, **fields), solutions)


def label(each: Row) -> str:
    """A method in words."""
    return "learned swarm" if each["lam"] is None else f"λ = {each['lam']:g}"


def table(rows: list[Row]) -> str:
    """Minima found, ours against what the paper says of its own."""
    lines = []
    for r in rows:
        as_published = (r["begun"] == "normal") == (r["lam"] is None)
        said = PUBLISHED.get(r["lam"]) if as_published else None
        found = f"{r['found']} of {r['known']}"
        lines.append((label(r), f"{r['starts']} {r['begun']}", r["begun_in"], found, said))
    said = (
        f"A minimum is found if a solution, after {APPLICATIONS} applications (or moves of the "
        f"swarm), is within {TOLERANCE} of it (wells are 1 apart). Uniform starts fill the box; "
        "normal ones, the paper's for the swarm, have a standard deviation of 1.\n\n"
    )
    header = ("method", "starts", "wells they are in", "minima found", "published")
    return said + markdown(header, lines)


def draw_grids(cosine: Cosine, found: list[Found], folder: Folder) -> None:
    """A panel for each row: the minima are grey rings, solutions blue dots, a swarm's red."""
    columns = min(4, len(found))
    lines = -(-len(found) // columns)
    figure = new_figure(3.2 * columns, 3.6 * lines)
    every = figure.subplots(lines, columns, squeeze=False).flat
    rings = cosine.truth(torch.zeros(1, 0))[0]
    for axes, (each, solutions) in zip(every, found):
        points = solutions.points[solutions.inside].cpu()
        color = DESCENT if each["method"] == "swarm" else PROXIMAL
        axes.plot(*rings.T, "o", markersize=7, markerfacecolor="none", color="0.8", zorder=0)
        axes.scatter(*points.T, s=6, color=color, alpha=0.7, linewidths=0)
        bare(axes, (-5.5, -5.5), (5.5, 5.5))
        axes.set_title(f"{label(each)},  {each['begun']} starts", fontsize="medium")
        axes.set_xlabel(f"{each['found']} of {each['known']} minima", color=INK)
    for axes in every[len(found) :]:
        axes.set_axis_off()
    save(figure, folder.path / "minima.png")
