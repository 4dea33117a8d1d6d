"""Ever more applications on conics: where the plain operator collapses, and what holds it.

Solutions of a conic are a whole curve. Applied again and again, a learned operator's small errors
let points drift along it until they gather in a few places (paper, section 6). With the objective
at hand, the safeguard takes no step that does not pay, and polish moves every point straight onto
the curve; without it, an operator that was trained to know when a point has arrived stops there.
"""

import math
from dataclasses import replace
from functools import partial

from proxlearn.answers.solutions import Solutions
from proxlearn.common.provenance import Row
from proxlearn.common.seeds import generator_for
from proxlearn.experiments import conic
from proxlearn.experiments._look import DESCENT, GRADIENT, INK, PROXIMAL, Axes, tidy
from proxlearn.experiments._shared import SEED, Folder, columns, grouped, markdown
from proxlearn.experiments.conic import Sizes
from proxlearn.measure.evaluate import over_trials
from proxlearn.problems import problem
from proxlearn.problems.base import held_out
from proxlearn.solvers.solve import curve

THRESHOLD, DELTA, WP = 0.05, 0.05, "wp@0.05"
CEILING = "descent, other starts"
VARIANTS = {  # ways to apply an operator so many times: the method, and the color in the figure
    "plain": ("operator", DESCENT),
    "arrival": ("arriving", "#7b5ea7"),  # the only one of these without the objective
    "safeguard": ("safeguarded", PROXIMAL),
    "polish": ("operator", GRADIENT),
    "safeguard + polish": ("safeguarded", "#b08d2e"),
}
APPLICATIONS = (0, 1, 3, 5, 10, 20, 50, 100)
FULL = replace(conic.FULL, curve=APPLICATIONS)
QUICK = replace(conic.QUICK, curve=APPLICATIONS, instances=16, starts=256, witnesses=256)
LEFT_OUT = (
    "It trains a small network for 50 seconds, with a larger lam, instead of 170 on a GPU, and "
    "evaluates on 16 conics instead of 256 with a shorter particle descent and fewer starts."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    conics = problem("conic")
    operator = folder.train("pol", conics, sizes.training | {"lam": sizes.lam})
    tau, generator = held_out(conics, sizes.instances, SEED), generator_for(SEED, "witnesses")
    witnesses = conics.space.sample(sizes.trials, sizes.witnesses, generator=generator)
    how = {"starts": sizes.starts, "device": folder.device, "operator": operator}
    methods = ["operator", "safeguarded", *(["arriving"] if operator.arrival else [])]
    traced = {each: curve(conics, tau, each, sizes.curve, seed=SEED, **how) for each in methods}
    descent = partial(folder.solve, conics, tau, "descent", sizes.starts, **sizes.descent)
    truth = descent(seed=SEED + 1)

    def row_of(label: str, applied: int | None, found: Solutions) -> Row:
        """The witnessed metrics of one variant after so many applications (at most)."""
        used = None if found.applications is None else found.applications.float().mean().item()
        about = {"problem": "conic", "label": label, "applications": applied, "used": used}
        seen = over_trials(found, truth, witnesses, THRESHOLD, (DELTA,))
        return folder.row(**about, threshold=THRESHOLD, **seen, **sizes.counts)

    rows = [
        row_of(name, k, found.polished() if "polish" in name else found)
        for name, (method, _) in VARIANTS.items()
        for k, found in zip(sizes.curve, traced.get(method, ()))
    ]
    rows.append(row_of(CEILING, None, descent(seed=SEED)))
    with folder.figure("collapse.png", 6.6, 4.2) as figure:
        draw(figure.subplots(), rows)
    return rows, table(rows)


def table(rows: list[Row]) -> str:
    """WP and WD of every variant, a column for each number of applications."""
    variants = grouped(rows, "label")
    (ceiling,) = variants.pop(CEILING)
    counts = [each["applications"] for each in next(iter(variants.values()))]
    lines = [
        (f"{name}, {words}", *(f"{each[key]:.3f}" for each in own))
        for name, own in variants.items()
        for words, key in (("WP", WP), ("WD", "wd"))
    ]
    said = (
        f"WP^{DELTA} and WD at t = {THRESHOLD} after so many applications. Particle descent "
        f"against itself from other starts has {ceiling[WP]:.3f} and {ceiling['wd']:.3f}.\n\n"
    )
    return said + markdown(("variant", *map(str, counts)), lines)


def draw(axes: Axes, rows: list[Row]) -> None:
    """WP against applications, a line for each variant; descent against itself is dashed."""
    least = min(each[WP] for each in rows if each["applications"] != 0)  # the starts are far below
    tidy(axes, xlabel="applications, at most", ylim=(math.floor(10 * least) / 10, 1.0))
    variants = grouped(rows, "label")
    (ceiling,) = variants.pop(CEILING)
    for name, own in variants.items():
        look = {"color": VARIANTS[name][1], "marker": "o", "markersize": 4, "label": name}
        axes.plot(*columns(own, "applications", WP), **look)
    axes.axhline(ceiling[WP], color="0.5", linewidth=0.9, linestyle="dashed", label=CEILING)
    axes.set_xscale("symlog", linthresh=5)
    ticks = [each["applications"] for each in variants["plain"]]
    axes.set_xticks(ticks, map(str, ticks))
    axes.set_xlim(0, ticks[-1])
    axes.set_ylabel(f"witnessed precision at {DELTA}", color=INK)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
