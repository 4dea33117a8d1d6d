"""Sections of docs/results.md: maximum cuts."""

from proxlearn.common.files import read_rows
from proxlearn.experiments._shared import published
from sections._section import RESULTS, rows_of, section


def maxcut() -> str:
    rows = rows_of("maxcut")
    witnessed = [each for each in rows if each.get("threshold") == 0.995]
    found = {
        each["label"]: each["found_share"]
        for each in rows
        if each.get("graphs") == "weights 0 and 1"
    }
    lines = []
    for each in witnessed:
        label, theirs = each["label"], published("maxcut", each["label"], 0.995)
        ours = f"{each['wp@0.1']:.3f} | {each['wp@0.3714']:.3f} | {each['wd']:.3f}"
        share = found.get(label, found.get(label.split(",")[0]))
        numbers = (
            f"{theirs['WP'][0]:.3f}, {theirs['WP'][7]:.3f}, {theirs['WD']:.3f}" if theirs else ""
        )
        lines.append(f"| {label} | {ours} | {share:.1%} | {numbers} |")
    first, longest = witnessed[0], max(each.get("trained_seconds") or 0 for each in witnessed)
    old, new, best = read_rows(RESULTS / "maxcut" / "before.jsonl")
    told = [f"{each['wp@0.1']:.3f} and {each['wd']:.3f}" for each in (old, new, best)]
    return section(
        f"**Maximum cuts** of graphs with 8 vertices ({first['instances']:,} test graphs, "
        f"{first['starts']} solutions, {first['witnesses']} witnesses, {first['trials']} trials, "
        f"t = {first['threshold']} of particle descent's best, {first['applications']} "
        f"applications; trained for {first['trained_seconds']:.0f} s, and for {longest:.0f} s "
        f"where it is for any size, on one {first['machine']}). Maximum cuts found: the share of "
        "all maximum cuts of graphs with weights 0 and 1. The shipped operator is for any size, "
        f"trained anew since. On {old['instances']} graphs, with L-BFGS as the truth, its WP at "
        "0.1 and WD are "
        f"{told[1]}; those of the operator shipped before were {told[0]}, and L-BFGS measured "
        f"against itself has {told[2]}.",
        "| method | WP at 0.1 | WP at 0.371 | WD | maximum cuts found | published WP, WP, WD |\n"
        "|---|---:|---:|---:|---:|---|",
        lines,
        "maxcut",
    )


def gset() -> str:
    shares: dict[tuple[str, int], dict[str, float]] = {}
    for each in (rows := rows_of("gset")):
        name = each["graph"], each["vertices"]
        shares.setdefault(name, {})[each["label"]] = each["of_known"]
    methods = list(dict.fromkeys(each["label"] for each in rows))
    lines = [
        f"| {graph} | {vertices:,} | {' | '.join(f'{share[m]:.1%}' for m in methods)} |"
        for (graph, vertices), share in sorted(shares.items(), key=lambda each: each[0][1])
    ]
    first, longest = rows[0], max(each["seconds"] for each in rows)
    return section(
        "**Graphs of the Gset**: the best cut found, as a share of the best one known, by the "
        f"operator, which was trained on graphs of 8 to 32 vertices, from {first['starts']} "
        "starts, and by other methods in the same time, at most "
        f"{longest:.1f} s on one {first['machine']}. The best cuts known are from specialised "
        "solvers that ran far longer.",
        f"| graph | vertices | {' | '.join(methods)} |\n|---|---:{'|---:' * len(methods)}|",
        lines,
        "gset",
    )
