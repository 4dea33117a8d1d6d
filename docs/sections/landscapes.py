"""Sections of docs/results.md: functions with many minima, found and counted."""

from proxlearn.common.files import read_rows
from proxlearn.experiments import counting, trust
from sections._section import RESULTS, rows_of, section

METHODS = {
    "descent": "descent",
    "lbfgs": "L-BFGS",
    "multistart": "SciPy multistart",
    "operator": "operator",
    "safeguarded": "operator + safeguard",
    "swarm": "learned swarm",
}


def cosine() -> str:
    lines = []
    for each in rows_of("cosine"):
        label = "learned swarm" if each["lam"] is None else f"lam = {each['lam']:g}"
        starts = f"{each['starts']:,} {each['begun']}"
        lines.append(f"| {label} | {starts} | {each['found']} of {each['known']} |")
    return section(
        "**Cosine grid**: minima found after 10 applications; the theorem asks for lam > 40 pi^2.",
        "| method | starts | minima found |\n|---|---:|---:|",
        lines,
        "cosine",
    )


def counted() -> str:
    rows, lines = rows_of("counting"), []
    for (problem, method, asked), some in counting.kinds(rows).items():
        right, known, found, _, minima, boundary = counting.totals(some)
        starts = f"auto: {some[0]['starts']:,}" if asked == "auto" else f"{int(asked):,}"
        lines.append(
            f"| {problem} | {counting.METHODS[method]} | {starts} | {right:,} of {known:,} "
            f"| {found:,} | {minima + boundary:,} |"
        )
    return section(
        "**Counting**: distinct optima by `solutions.polished()` and `unique(smallest_share=0)`, "
        "compared with those that are known.",
        "| problem | method | starts | known ones found | found | certified |\n"
        "|---|---|---:|---:|---:|---:|",
        lines,
        "counting",
    )


def peaks() -> str:
    rows, lines = rows_of("peaks"), []
    before = read_rows(RESULTS / "peaks" / "before.jsonl")
    for each in rows:
        starts = f"auto: {each['mean_starts']:.0f}" if each["starts"] == "auto" else each["starts"]
        lines.append(
            f"| {each['label']} | {starts} | {each['peak_ratio']:.1%} | {each['false_optima']:.2f} "
            f"| {each['covered']:.1%} |"
        )
    first = rows[0]
    plain = next(each for each in before if each["label"] == "operator" and each["starts"] == "256")
    return section(
        f"**Random landscapes** ({first['landscapes']} of them, {first['known']} optima in all, "
        f"known exactly; operator trained for {first['trained_seconds']:.0f} s): optima found, "
        "false optima per landscape, and how often the 95% interval for their number contains the "
        "true number. The operator treats tau as the set of peaks that it is; as a plain vector "
        f"(version 0.1), {plain['peak_ratio']:.1%} were found from 256 starts, with "
        f"{plain['false_optima']:.1f} false ones.",
        "| method | starts | found | false | interval right |\n|---|---:|---:|---:|---:|",
        lines,
        "peaks",
    )


def multimodal() -> str:
    rows = rows_of("multimodal")
    shares = [each["found"] / each["known"] for each in rows]
    lines = [f"| {each['function']} | {each['found']} of {each['known']} |" for each in rows]
    threads = rows[0]["threads"]
    return section(
        "**The ten lines on functions from the literature**: trained for "
        f"{rows[0]['training_seconds']:.0f} s on {threads} CPU thread{'s' * (threads > 1)} with "
        f"default settings, {rows[0]['starts']:,} starts; {sum(shares) / len(shares):.1%} of the "
        "global minima on average.",
        "| function | global minima found |\n|---|---:|",
        lines,
        "multimodal",
    )


def trusted() -> str:
    rows, before = rows_of("trust"), read_rows(RESULTS / "trust" / "before.jsonl")
    header, rule, *lines = trust.summary(rows).splitlines()
    earlier = sum(row["too_much"] for row in before)
    return section(
        f"**What is claimed, and what is true**: an operator for each of {len(rows)} families (the "
        "literature's, random landscapes, arms, minima on edges, and some that are too hard on "
        f"purpose), trained for {rows[0]['trained_seconds']:.0f} s on a CPU. It claims too much if "
        "it lists a certified optimum that is none; or if, without a warning, its 95% interval "
        "misses the number of optima that it leads to, or it is poor. An earlier version, whose "
        f"interval was for all optima, claimed too much in {earlier} of {len(before)}.",
        f"{header}\n{rule}",
        lines,
        "trust",
    )


def arm() -> str:
    rows = rows_of("arm")
    lines = [
        f"| {r['label']} | {r['found']} of {r['minima']} ({r['share']:.1%}) | {r['false']} "
        f"| {r['unconverged']:.1%} |"
        for r in rows
    ]
    first = rows[0]
    return section(
        f"**An arm of three links** that reaches for {first['targets']} targets: its isolated "
        f"minima, as L-BFGS finds them from {first['truth_starts']:,} starts, that are found from "
        f"{first['starts']} starts and certified, after polish; the operator was trained for "
        f"{first['training_seconds']:.0f} s on a CPU.",
        "| method | minima found | false | starts not converged |\n|---|---:|---:|---:|",
        lines,
        "arm",
    )


def branches() -> str:
    rows = read_rows(RESULTS / "branches" / "branches.jsonl")
    lines = [
        f"| {r['label']} | {r['reached']} of {r['far']} | {r['deaths_reported']} of {r['deaths']} "
        f"| {r['births_reported']} of {r['births']} | {r['false']} | {r['cpu_seconds']:.1f} s |"
        for r in rows
    ]
    first = rows[0]
    return section(
        f"**Branches over tau**: {first['paths']} paths between random landscapes of `peaks`, "
        f"solved at {first['samples']} taus from {first['starts']} starts and "
        "[followed](branches.md) in between. How many of the summits at the far end are reached, "
        "from the near end or from where they come out; how many of the events are reported "
        "within 2% of the path; how many are reported that are none; and the time of the median "
        "path, on one core.",
        "| solved by | far end | deaths | births | false | a path |\n"
        "|---|---:|---:|---:|---:|---:|",
        lines,
        "branches",
    )


def bounded() -> str:
    rows = read_rows(RESULTS / "bounded" / "bounded.jsonl")
    functions = len({row["function"] for row in rows})
    seconds = max(row["trained_seconds"] for row in rows if row["method"] == "operator")
    lines = []
    for method, name in METHODS.items():
        some = [row for row in rows if row["method"] == method]
        counts = " | ".join(
            f"{sum(row[each] for row in some)} of {len(some)}" for each in ("found", "as_boundary")
        )
        lines.append(f"| {name} | {some[0]['starts']:,} | {counts} |")
    return section(
        f"**Minima on the edge**: {functions} functions of the literature in a box that puts their "
        "lowest point on an edge or in a corner. How many of these points are found without "
        "polish, and how many are listed as minima on the boundary after it. The operators were "
        f"trained for {seconds:.0f} s each on a CPU.",
        "| method | starts | found | listed, after polish |\n|---|---:|---:|---:|",
        lines,
        "bounded",
        "python benchmarks/bounded.py --device cpu",
    )
