"""The effect of the proximal term (paper, D.3): 121 wells, four values of lam, and a swarm."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.answers import metrics
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.experiments._look import DESCENT, INK, PROXIMAL, bare
from proxlearn.experiments._shared import SEED, Folder, check_same, markdown, trained_for
from proxlearn.gpu.devices import pick_device
from proxlearn.problems.base import Problem
from proxlearn.problems.cosine import Cosine
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


@dataclass(frozen=True)
class Sizes:
    training: dict[str, Any]
    swarm: dict[str, Any]
    starts: int = 4096
    swarm_runs: int = 256  # of a population of 4 each
    lams: tuple[float, ...] = (0.0, 1.0, 10.0, 400.0)


# Sinusoids for the many narrow wells; random weights to begin with, as in the paper, since an
# operator that begins as the identity holds on to its points even without a proximal term.
NETWORK = {"gated": False, "sinusoids": 64, "start_at_identity": False}
FULL = Sizes(training={"steps": 2_500, "architecture": NETWORK}, swarm={"steps": 400})
QUICK = Sizes(training={"seconds": 35.0, "architecture": NETWORK}, swarm={"steps": 150})
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


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train with each lam, train the swarm, and count the minima found: rows and a table.
    Starts are uniform, or normal as for the paper's swarm; lam = 400 and the swarm have both."""
    cosine, device, rows, found = Cosine(), pick_device(folder.device), [], []
    uniform = starting_points(cosine.space, sizes.starts, 1, SEED, device)
    normal = normal_starts(sizes.swarm_runs * POPULATION).to(device)
    both = {"uniform": uniform, "normal": normal}

    def count(problem: Problem, about: Row, trained: Any, begun: str) -> None:
        settings = {about["method"]: trained, "steps": APPLICATIONS}
        solutions = folder.solve(problem, None, about["method"], both[begun], **settings)
        about = {"problem": problem.name} | about | trained_for(trained.provenance)
        rows.append(folder.row(**about, begun=begun, **counted(solutions)))
        found.append(solutions)

    for lam in sizes.lams:
        operator = folder.train(f"lam{lam:g}", cosine, sizes.training | {"lam": lam})
        for begun in both if lam == max(sizes.lams) else ("uniform",):
            count(cosine, {"method": "operator", "lam": lam}, operator, begun)
    swarm = trained_swarm(sizes, folder)
    for begun in both:
        count(Penalized(), {"method": "swarm", "lam": None}, swarm, begun)
    across = min(4, len(rows))
    down = -(-len(rows) // across)
    with folder.figure("minima.png", 3.2 * across, 3.6 * down) as figure:
        draw_grids(figure.subplots(down, across, squeeze=False).ravel(), rows, found)
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
        check_same(file, made, sizes.swarm)
        return swarm
    swarm = learn_swarm(Penalized(), device=folder.device, progress=folder.progress, **sizes.swarm)
    swarm.save(file)
    return swarm


def counted(solutions: Solutions) -> Row:
    """How many of the minima have a solution near them."""
    space, starts = solutions.space, solutions.starts
    known = Cosine().truth(starts.new_zeros(1, 0))
    hits, total = metrics.recall(solutions, known, TOLERANCE)
    return {
        "applications": APPLICATIONS,
        "starts": starts.shape[1],
        "begun_in": len(space.pairwise(known[0], starts[0]).argmin(0).unique()),
        "tolerance": TOLERANCE,
        "found": hits,
        "known": total,
        "inside": solutions.inside.float().mean().item(),
    }


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


def draw_grids(every: np.ndarray, rows: list[Row], found: list[Solutions]) -> None:
    """A panel for each row: the minima are grey rings, solutions blue dots, a swarm's red."""
    rings = Cosine().truth(torch.zeros(1, 0))[0]
    for axes, each, solutions in zip(every, rows, found):
        points = solutions.points[solutions.inside].cpu()
        color = DESCENT if each["method"] == "swarm" else PROXIMAL
        axes.plot(*rings.T, "o", markersize=7, markerfacecolor="none", color="0.8", zorder=0)
        axes.scatter(*points.T, s=6, color=color, alpha=0.7, linewidths=0)
        bare(axes, 5.5)
        axes.set_title(f"{label(each)},  {each['begun']} starts", fontsize="medium")
        axes.set_xlabel(f"{each['found']} of {each['known']} minima", color=INK)
    for axes in every[len(rows) :]:
        axes.set_axis_off()
