"""Ever more applications on conics: where the plain operator collapses, and what holds it.

Solutions of a conic are a whole curve. Applied again and again, a learned operator's small errors
let points drift along it until they gather in a few places (paper, section 6). With the objective
at hand, the safeguard takes no step that does not pay, and polish moves every point straight onto
the curve; without it, an operator that was trained to know when a point has arrived stops there.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from proxlearn.answers.solutions import Solutions
from proxlearn.common.devices import pick_device
from proxlearn.common.provenance import Row, row
from proxlearn.common.seeds import generator_for
from proxlearn.experiments._shared import DESCENT, GRADIENT, INK, PROXIMAL, Folder, markdown, tidy
from proxlearn.experiments.conic import FULL as CONIC
from proxlearn.experiments.conic import QUICK as CONIC_QUICK
from proxlearn.figures.draw import new_figure, save
from proxlearn.measure.evaluate import over_trials
from proxlearn.problems import problem
from proxlearn.problems.base import held_out
from proxlearn.solvers.solve import solve, trace

THRESHOLD, DELTA = 0.05, 0.05
CEILING = "descent, other starts"
SEED = 0


class Variant(NamedTuple):
    """A way to apply an operator so many times."""

    method: str
    color: str
    polished: bool = False


VARIANTS = {
    "plain": Variant("operator", DESCENT),
    "arrival": Variant("arriving", "#7b5ea7"),  # the only one of these without the objective
    "safeguard": Variant("safeguarded", PROXIMAL),
    "polish": Variant("operator", GRADIENT, polished=True),
    "safeguard + polish": Variant("safeguarded", "#b08d2e", polished=True),
}


@dataclass(frozen=True)
class Sizes:
    """Every number the experiment depends on."""

    training: dict[str, Any]
    descent: dict[str, Any]  # the reference
    instances: int = 256
    starts: int = 1024
    witnesses: int = 1024
    trials: int = 10
    applications: tuple[int, ...] = (0, 1, 3, 5, 10, 20, 50, 100)


FULL = Sizes(CONIC.training, CONIC.descent)
QUICK = Sizes(
    CONIC_QUICK.training | {"lam": CONIC_QUICK.lam},
    CONIC_QUICK.descent,
    instances=16,
    starts=256,
    witnesses=256,
    trials=3,
)
LEFT_OUT = (
    "It trains a small network for 50 seconds, with a larger lam, instead of 120 on a GPU, and "
    "evaluates on 16 conics instead of 256 with a shorter particle descent and fewer starts."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train, apply ever more often, draw: rows and a table."""
    conic = problem("conic")
    operator = folder.train("pol", conic, sizes.training)
    tau = held_out(conic, sizes.instances, SEED)

    def descent(seed: int) -> Solutions:
        return solve(conic, tau, "descent", sizes.starts, seed, folder.device, **sizes.descent)

    def row_of(label: str, applied: int | None, found: Solutions) -> Row:
        return _row(label, applied, found, truth, sizes, folder.device)

    how = {"starts": sizes.starts, "seed": SEED, "device": folder.device, "operator": operator}
    methods = ["operator", "safeguarded", *(["arriving"] if operator.arrival else [])]
    traced = {each: trace(conic, tau, each, sizes.applications, **how) for each in methods}
    truth, rows = descent(SEED + 1), []
    for name, variant in VARIANTS.items():
        for k, found in zip(sizes.applications, traced.get(variant.method, ())):
            rows.append(row_of(name, k, found.polished() if variant.polished else found))
    rows.append(row_of(CEILING, None, descent(SEED)))
    draw(rows, folder)
    return rows, table(rows)


def _row(
    label: str, applied: int | None, found: Solutions, truth: Solutions, sizes: Sizes, device: str
) -> Row:
    """The witnessed metrics of one variant after so many applications (at most)."""
    shape, generator = (sizes.trials, sizes.witnesses), generator_for(SEED, "witnesses")
    witnesses = found.space.sample(*shape, generator=generator)
    seen = over_trials(found, truth, witnesses, THRESHOLD, (DELTA,))
    used = found.applications
    return row(
        pick_device(device),
        problem="conic",
        label=label,
        applications=applied,
        used=None if used is None else used.float().mean().item(),
        threshold=THRESHOLD,
        **seen,
        instances=sizes.instances,
        starts=sizes.starts,
        witnesses=sizes.witnesses,
        trials=sizes.trials,
        seed=SEED,
    )


def table(rows: list[Row]) -> str:
    """WP and WD of every variant, a column for each number of applications."""
    (ceiling,) = (each for each in rows if each["label"] == CEILING)
    counts = list(dict.fromkeys(r["applications"] for r in rows if r["label"] != CEILING))
    lines = []
    for name in dict.fromkeys(r["label"] for r in rows if r["label"] != CEILING):
        own = {r["applications"]: r for r in rows if r["label"] == name}
        for words, key in (("WP", f"wp@{DELTA:.4g}"), ("WD", "wd")):
            lines.append((f"{name}, {words}", *(f"{own[k][key]:.3f}" for k in counts)))
    said = (
        f"WP^{DELTA} and WD at t = {THRESHOLD} after so many applications. Particle descent "
        f"against itself from other starts has {ceiling[f'wp@{DELTA:.4g}']:.3f} and "
        f"{ceiling['wd']:.3f}.\n\n"
    )
    return said + markdown(("variant", *map(str, counts)), lines)


def draw(rows: list[Row], folder: Folder) -> None:
    """WP against applications, a line for each variant; descent against itself is dashed."""
    figure = new_figure(6.6, 4.2)
    axes = figure.subplots()
    tidy(axes, xlabel="applications, at most", ylim=(0, 1.02))
    key = f"wp@{DELTA:.4g}"
    for name in dict.fromkeys(r["label"] for r in rows if r["label"] != CEILING):
        own = [each for each in rows if each["label"] == name]
        k, precision = [r["applications"] for r in own], [r[key] for r in own]
        axes.plot(k, precision, color=VARIANTS[name].color, marker="o", markersize=4, label=name)
    (ceiling,) = (each[key] for each in rows if each["label"] == CEILING)
    axes.axhline(ceiling, color="0.5", linewidth=0.9, linestyle="dashed", label=CEILING)
    axes.set_xscale("symlog", linthresh=5)
    ticks = sorted({r["applications"] for r in rows if r["applications"] is not None})
    axes.set_xticks(ticks, map(str, ticks))
    axes.set_xlim(0, ticks[-1])
    axes.set_ylabel(f"witnessed precision at {DELTA}", color=INK)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    save(figure, folder.path / "collapse.png")
