"""Sections of docs/results.md: level sets, and what ever more or growing applications do."""

import proxlearn as px
from proxlearn.common.files import read_rows
from proxlearn.common.provenance import Row
from proxlearn.experiments._shared import published
from sections._section import RESULTS, applications, rows_of, section


def conics() -> str:
    rows = [each for each in rows_of("conic") if each.get("threshold") == 0.05]
    before = {each["label"]: each for each in read_rows(RESULTS / "conic" / "before.jsonl")}
    lines = []
    for each in rows:
        earlier = before.get(each["label"])
        numbers = _wp_wd(each), _wp_wd(earlier) if earlier else "", _published(each)
        lines.append(f"| {each['label']} | {' | '.join(numbers)} |")
    first, every = rows[0], read_rows(RESULTS / "conic" / "shipped.jsonl")
    shipped = {each["applications"]: each for each in every if each["label"] == "plain"}
    said = "; ".join(f"{_wp_wd(shipped[k])} after {k}" for k in (3, 5, 10, 20))
    operator = px.pretrained("conic", "cpu")
    return section(
        f"**Conics** ({first['instances']} test conics, {first['starts']} solutions, "
        f"{first['witnesses']} witnesses, {first['trials']} trials, t = 0.05, particle descent as "
        f"the truth; trained for {first['trained_seconds']:.0f} s on one {first['machine']}). PD "
        "is particle descent from other starts, measured against that truth: what the truth itself "
        'would score. The column "before" is of an earlier version of this library, which trained '
        "POL with lam = 0.5; now lam is 0.2. All of these were trained by Adam. The operator that "
        f"is shipped was trained since, for {operator.provenance['seconds']:.0f} s, with "
        f"orthogonalised steps, gradients of equal length and lam = {operator.lam:g}: by the same "
        f"protocol its WP and WD are {said} applications.",
        "| method | WP at 0.05, WD | before | published |\n|---|---|---|---|",
        lines,
        "conic",
    )


def _wp_wd(row: Row) -> str:
    return f"{row['wp@0.05']:.3f}, {row['wd']:.3f}"


def _published(row: Row) -> str:
    """The authors' numbers, for POL after 5 and GOL after 100 applications as in the paper."""
    name, _, applied = row["label"].partition(", ")
    if (name, applied) not in (("POL", "5 applications"), ("GOL", "100 applications")):
        return ""
    at = published("conic", name, row["threshold"])
    return f"{at['WP'][0]:.3f}, {at['WD']:.3f}"


def collapse() -> str:
    rows, shown = rows_of("collapse"), (3, 5, 10, 20, 50, 100)
    lines = []
    for label in dict.fromkeys(each["label"] for each in rows):
        wp = {each["applications"]: each["wp@0.05"] for each in rows if each["label"] == label}
        numbers = [f"{wp[k]:.3f}" for k in shown] if 3 in wp else [f"{wp[None]:.3f}", *[""] * 5]
        lines.append(f"| {label} | {' | '.join(numbers)} |")
    return section(
        "**Ever more applications** on the same conics: WP at 0.05 after at most this many. Plain "
        "and arrival need no objective; with arrival, the operator predicts when a point is at an "
        "optimum and stops there. The safeguard takes only steps that lower the proximal "
        "objective; polish adds a few Newton steps at the end.",
        applications("variant", shown),
        lines,
        "collapse",
    )


def growing() -> str:
    rows, shown = rows_of("growing"), (1, 2, 3, 5, 10, 20)
    lines = []
    for lam in dict.fromkeys(each["lam"] for each in rows):
        error = {each["applications"]: each["error"] for each in rows if each["lam"] == lam}
        lines.append(f"| {_lam(lam)} | {' | '.join(f'{error[k]:.3f}' for k in shown)} |")
    return section(
        "**Growing steps**: one operator for a range of lam on a family of Himmelblau's functions; "
        "mean distance from a solution to the optimum of its start's basin, by the number of "
        "applications.",
        applications("lam", shown),
        lines,
        "growing",
    )


def _lam(lam: float | str) -> str:
    return lam if isinstance(lam, str) else f"{lam:g}"


def shrinkage() -> str:
    last = {each["dim"]: each for each in rows_of("shrinkage")}
    lines = [
        f"| {dim} | {each['error']:.1e} | {_first_below(dim, 1e-4)} |" for dim, each in last.items()
    ]
    return section(
        "**Shrinkage**: distance to the closed-form proximal operator of the l1 norm.",
        "| d | MSE/d | steps until it is below 1e-4 |\n|---:|---:|---:|",
        lines,
        "shrinkage",
    )


def _first_below(dim: int, goal: float) -> str:
    steps = [
        row["step"] for row in rows_of("shrinkage") if row["dim"] == dim and row["error"] < goal
    ]
    return f"{min(steps):,}" if steps else "never"
