"""Sections of docs/results.md: level sets, and what ever more or growing applications do."""

import proxlearn as px
from proxlearn.common.files import read_rows
from proxlearn.common.provenance import Row
from proxlearn.experiments._shared import published
from sections._section import RESULTS, applications, rows_of, section


def conics() -> str:
    rows = [each for each in rows_of("conic") if each.get("threshold") == 0.05]
    shipped, first = px.pretrained("conic", "cpu"), rows[0]
    ours = [each for each in read_rows(RESULTS / "conic" / "shipped.jsonl") if _is_plain(each)]
    lines = [_line(f"shipped operator, {each['applications']} applications", each) for each in ours]
    lines += [_line(each["label"], each) for each in rows]
    return section(
        f"**Conics** ({first['instances']} test conics, {first['starts']} solutions, "
        f"{first['witnesses']} witnesses, {first['trials']} trials, t = 0.05, particle descent as "
        "the truth). PD is particle descent from other starts, measured against that truth: what "
        f"the truth itself would score. POL and GOL were trained by version {first['proxlearn']} "
        f"of this library, for {first['trained_seconds']:.0f} s on one {first['machine']}, by Adam "
        "and with lam = 0.2, as in the paper. The shipped operator was trained later, for "
        f"{shipped.provenance['seconds']:.0f} s, by Muon and with lam = {shipped.lam:g}.",
        "| method | WP at 0.05 | published | WD | published |\n|---|---:|---:|---:|---:|",
        lines,
        "conic",
    )


def _is_plain(row: Row) -> bool:
    """Whether it is of an operator alone, after one of the shown numbers of applications."""
    return row["label"] == "plain" and row["applications"] in (3, 5, 10, 20)


def _line(label: str, row: Row) -> str:
    wp, wd = _published(row)
    return f"| {label} | {row['wp@0.05']:.3f} | {wp} | {row['wd']:.3f} | {wd} |"


def _published(row: Row) -> tuple[str, str]:
    """The authors' WP and WD, for POL after 5 and GOL after 100 applications as in the paper."""
    name, _, applied = row["label"].partition(", ")
    if (name, applied) not in (("POL", "5 applications"), ("GOL", "100 applications")):
        return "", ""
    at = published("conic", name, row["threshold"])
    return f"{at['WP'][0]:.3f}", f"{at['WD']:.3f}"


def collapse() -> str:
    rows, shown = rows_of("collapse"), (3, 5, 10, 20, 50, 100)
    lines = []
    for label in dict.fromkeys(each["label"] for each in rows):
        wp = {each["applications"]: each["wp@0.05"] for each in rows if each["label"] == label}
        numbers = [f"{wp[k]:.3f}" for k in shown] if 3 in wp else [f"{wp[None]:.3f}", *[""] * 5]
        lines.append(f"| {label} | {' | '.join(numbers)} |")
    return section(
        "**Ever more applications** of the shipped operator, on the same conics: WP at 0.05 after "
        "at most this many. *Plain* and *arrival* need no objective: plain applies the operator "
        "just so often; with arrival, it predicts when a point is at an optimum, and stops there. "
        "The *safeguard* takes only steps that lower the proximal objective; *polish* adds a few "
        "Newton steps at the end.",
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
