"""The section on speed of docs/results.md."""

from proxlearn.common.files import read_rows
from proxlearn.common.provenance import Row
from sections._section import RESULTS, section


def speed() -> str:
    rows = [row for path in sorted((RESULTS / "speed").glob("*.jsonl")) for row in read_rows(path)]
    rows = [row for row in rows if row["ran_on"] == "cuda"]
    loop, *steps = (row for row in rows if row["benchmark"] == "step")
    quickest = {
        name: min((s for s in steps if s["variant"].startswith(name)), key=lambda s: s["seconds"])
        for name in ("default network", "paper's network")
    }
    lines = [
        f"| a training step, {step['variant']} | {_step(step)} | {_step(loop)} |"
        for step in quickest.values()
    ]
    reached = {r["kernels"]: r for r in rows if r.get("variant") == "time to quality"}
    (published,) = (row for row in rows if row.get("hours"))
    for kernels, said in (("none", ""), ("kept", ", kernels compiled before")):
        lines.append(
            f"| from nothing to the published quality of conics{said} "
            f"| {reached[kernels]['seconds']:.1f} s | {published['hours']:.1f} hours |"
        )
    solved = {r["method"]: r["solutions_per_second"] for r in rows if "solutions_per_second" in r}
    for method, rate in solved.items():
        if method != "operator":
            both = f"{solved['operator']:,.0f} solutions/s | {rate:,.0f} solutions/s"
            lines.append(f"| solving conics, against {method} | {both} |")
    return section(
        f"**Speed** on one {loop['machine']}, against the published procedure, written here as the "
        "paper has it, and against other solvers at equal objective value. Its hours are its "
        f"{published['steps']:,} steps at the measured time of one. A conic costs a dozen "
        "multiplications, the best case for other solvers; the operator costs the same for any "
        "objective. [More on speed](speed.md).",
        "| what | proxlearn | the other |\n|---|---:|---:|",
        lines,
        "speed",
        "python benchmarks/step.py`, `quality.py` and `solving.py",
    )


def _step(row: Row) -> str:
    return f"{1e3 * row['seconds']:.2f} ms for {row['points']:,} points"
