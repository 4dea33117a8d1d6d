"""Draw the page of speed, docs/speed.md and its pictures, from the rows in results/speed:

    python benchmarks/page.py

Every number and every bar comes from a row.
"""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from proxlearn.common.files import read_rows, write_atomically
from proxlearn.common.provenance import Row
from proxlearn.experiments._look import INK, PROXIMAL, tidy
from proxlearn.experiments._shared import grouped, markdown
from proxlearn.figures.draw import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- speed: begin -->\n", "<!-- speed: end -->\n"
OTHER = "0.55"  # the colour of what this library is measured against
THEIRS = {"published loop", "particle descent", "batched L-BFGS", "SciPy multistart"}
THEIRS |= {"one witness at a time"}
AXES = {
    "points": ("a training step", "points in the step"),
    "width": ("a training step", "width of the network"),
    "instances": ("a training step", "instances, as many points"),
    "taus": ("solving", "taus"),
}


class Rows:
    """The rows of a folder, by benchmark and kind of device."""

    def __init__(self, folder: Path):
        self.every = [row for path in sorted(folder.glob("*.jsonl")) for row in read_rows(path)]

    def of(self, benchmark: str, ran_on: str) -> list[Row]:
        found = (row for row in self.every if row["benchmark"] == benchmark)
        return [row for row in found if row["ran_on"] == ran_on]

    def drawn(self, benchmark: str) -> list[Row]:
        """Those that are drawn: of the GPU if there are any."""
        return self.of(benchmark, "cuda") or self.of(benchmark, "cpu")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=Path, default=ROOT / "results/speed")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/speed.md")
    asked = parser.parse_args(arguments)
    rows, images = Rows(asked.rows), asked.page.parent / "images"
    if not rows.every:
        raise SystemExit(f"There are no rows in {asked.rows}.")
    before, rest = asked.page.read_text().split(BEGIN)
    _, after = rest.split(END)
    print(draw_speed(rows, images / "speed.png"))
    print(draw_growth(rows, images / "growth.png"))
    print(write_atomically(asked.page, before + BEGIN + section(rows) + END + after))


def section(rows: Rows) -> str:
    """The generated part of the page: pictures, then a table for every benchmark and device."""
    if not rows.every:
        return ""
    parts = [
        "\nThe rows are in [results/speed](../results/speed).\n",
        "![Speed](images/speed.png)\n\n![Growth](images/growth.png)\n",
    ]
    for name, (title, about, table) in TABLES.items():
        by_device = [rows.of(name, "cuda"), rows.of(name, "cpu")]
        tables = [table(each) + _source(each) for each in by_device if each]
        said = [f"{about}\n"] if about else []
        parts += [f"## {title}\n", *said, *tables] if tables else []
    return "\n".join(parts)


def _source(rows: list[Row]) -> str:
    first = rows[0]
    versions = f"proxlearn {first['proxlearn']}, torch {first['torch']}"
    return f"\n{first['machine']}, {versions}; by `{first['command']}`.\n"


def step(rows: list[Row]) -> str:
    lines = [
        (_named(r, "variant"), f"{r['points']:,}", _between(r, 1e3), _count(r["points_per_second"]))
        + (_times(r["times_the_points"]), round(r["peak_mib"]))
        for r in rows
    ]
    header = ("training step", "points", "ms (quartiles)", "points/s", "times published", "MiB")
    return markdown(header, lines)


BEFORE = "none, version 0.1"  # rows that do not say


def quality(rows: list[Row]) -> str:
    lines: list[tuple[object, ...]] = [
        (f"trained for {r['budget']:g} s, seed {r['seed']}, kernels: {r.get('kernels', BEFORE)}",)
        + (f"{r['steps']:,}", f"{r['wp']:.3f}", f"{r['seconds']:.1f}", None)
        for r in _where(rows, "variant", "training")
    ]
    (loop,) = _where(rows, "variant", "published loop")
    theirs = f"{loop['hours']:.2f} hours at {1e3 * loop['step_seconds']:.3g} ms a step"
    lines.append(("published loop", f"{loop['steps']:,}", None, theirs, 1))
    for ours in _where(rows, "variant", "time to quality"):
        result = f"{ours['seconds']:.1f}", _times(ours["times_faster"])
        said = f"**to a WP of {ours['goal']:g}**, kernels: {ours.get('kernels', BEFORE)}"
        lines.append((said, None, None, *result))
    header = ("training", "steps", "WP at 0.05", "seconds, all in", "times faster")
    said = (
        "\nKernels are compiled by a process beside the training, which goes on without them; they "
        "are kept for the next one.\n"
    )
    return markdown(header, lines) + said


def solving(rows: list[Row]) -> str:
    lines = [
        (_named(r, "method"), r["steps"], f"{r['value']:.1e}", f"{r['solutions']:,}")
        + (_count(r["solutions_per_second"]), _times(r["operator_is_faster"]))
        + (round(r["peak_mib"]),)
        for r in rows
    ]
    header = ("method", "steps", "median value", "solutions", "solutions/s")
    return markdown((*header, "operator is faster", "MiB"), lines)


def solving_cpu(rows: list[Row]) -> str:
    lines = [
        (f"{r['problem']}, {r['variant']}", r["steps"], f"{r['instances'] * r['starts']:,}")
        + (_between(r, 1), _count(r["solutions_per_second"]), _times(r["times_as_written"]))
        + (f"{r['quality']:.3f}",)
        for r in rows
    ]
    header = ("network", "steps", "solutions", "seconds (quartiles)", "solutions/s")
    return markdown((*header, "times as written", "quality"), lines)


def metrics(rows: list[Row]) -> str:
    lines = [
        (_named(r, "variant"), r["instances"], _between(r, 1e3))
        + (_count(r["instances_per_second"]), _times(r["times_literal"]))
        for r in rows
    ]
    header = ("witnessed metrics", "conics", "ms (quartiles)", "conics/s", "times literal")
    return markdown(header, lines)


def growth(rows: list[Row]) -> str:
    lines = [
        (f"{AXES[r['axis']][0]}: {AXES[r['axis']][1]}", f"{r['size']:,}", f"{r['points']:,}")
        + (_between(r, 1e3), round(r["peak_mib"]))
        for r in rows
    ]
    header = ("growth of", "size", "points", "ms (quartiles)", "MiB")
    return markdown(header, lines)


def precision(rows: list[Row]) -> str:
    lines = [
        (r["trained_in"], r["solved_in"], f"{r['seconds']:.0f}", f"{r['wp']:.3f}", f"{r['wd']:.3f}")
        for r in rows
    ]
    return markdown(("trained in", "solved in", "seconds of training", "WP at 0.05", "WD"), lines)


def minute(rows: list[Row]) -> str:
    lines = [
        (r["variant"], f"{r['training_steps']:,}", r["minima"])
        + (f"{r['found_after_5']:.1%}", f"{r['found_after_20']:.1%}")
        for r in rows
    ]
    header = ("settings", "steps of training", "minima", "found, 5 applications")
    return markdown((*header, "found, 20 applications"), lines)


def imports(rows: list[Row]) -> str:
    lines = [(f"`import {r['module']}`", _between(r, 1), _times(r["times_torch"])) for r in rows]
    return markdown(("fresh process", "seconds (quartiles)", "times torch"), lines)


def install(rows: list[Row]) -> str:
    lines = [
        (("first", "second", "third")[r["run"] - 1], f"{r['seconds']:.1f}")
        + (f"{r['processor_seconds']:.1f}", f"{r['wheel_megabytes']:.1f}")
        for r in rows
    ]
    header = ("`proxlearn solve conic --plot`", "seconds", "of them computing", "MB of the wheel")
    waited = any(r["seconds"] > 2 * r["processor_seconds"] for r in rows)
    busy = "\nThe machine was busy with other work, and each run waited for most of its time.\n"
    return markdown(header, lines) + busy * waited


def playground(rows: list[Row]) -> str:
    lines = [
        (r["problem"], r["points"], f"{r['answer_ms']:.0f}", f"{r['answer_ms_slowest_tenth']:.0f}")
        + (f"{r['starts']:,}", f"{r['whole_s']:.1f}")
        for r in rows
    ]
    header = ("problem", "points that follow", "ms", "ms, slowest tenth", "starts", "seconds")
    return markdown(header, lines)


def encoding(rows: list[Row]) -> str:
    lines = [(r["encodes"], f"{r['steps']:,}", f"{r['found']:.1%}") for r in rows]
    header = ("instances encoded in a step of 96", "steps in as many seconds", "dots found")
    return markdown(header, lines)


def versions(rows: list[Row]) -> str:
    lines = [
        (r["training"], f"{r['before']:,.0f}", f"{r['after']:,.0f}", _times(r["ratio"]))
        for r in rows
    ]
    return markdown(("training", "steps/s before", "steps/s after", "ratio"), lines)


def shipped(rows: list[Row]) -> str:
    lines = [(r["operator"], r["figure"], f"{r['value']:.3f}") for r in rows]
    return markdown(("operator", "figure", "value"), lines)


def ship(rows: list[Row]) -> str:
    lines = [
        (r["operator"], f"{r['trained_steps']:,}", f"{r['trained_seconds']:.0f}")
        + (r["trained_machine"],)
        + (", ".join(f"{name} {value:.3f}" for name, value in json.loads(r["figures"]).items()),)
        for r in rows
    ]
    return markdown(("operator", "steps", "seconds", "trained on", "figures"), lines)


def processes(rows: list[Row]) -> str:
    lines = [
        (f"{r['points']:,}", r["processes"], f"{r['ms']:.1f}", _times(r["speedup"])) for r in rows
    ]
    return markdown(("points of a step", "processes", "ms", "times one process"), lines)


def listing(rows: list[Row]) -> str:
    lines = [
        (f"{r['given']}: {r['stage']}", r["parts"], r["threads"], _between(r, 1))
        + (f"{r['slowest']:.3f}",)
        for r in rows
    ]
    header = ("one part", "parts", "threads", "seconds (quartiles)", "the slowest")
    return markdown(header, lines)


def distance(rows: list[Row]) -> str:
    lines = [
        (r["way"], _count(r["queries_per_second"]), f"{r['mean_error']:.1e}")
        + (f"{r['largest_error']:.1e}", f"{r['mean_on_surface']:.1e}")
        + (
            (f"{1e3 * r['build_seconds']:.1f}", r["mesh_bytes"])
            if r["mesh_bytes"]
            else (None, None)
        )
        for r in rows
    ]
    header = ("distances by", "queries/s", "mean error", "largest", "of points on it")
    said = f"{rows[0]['meshes']} meshes of {rows[0]['triangles']:,} triangles together.\n\n"
    return said + markdown((*header, "ms to build for a mesh", "bytes of it"), lines)


def optimizers(rows: list[Row]) -> str:
    ways = list(dict.fromkeys(r["optimizer"] for r in rows))
    lines = [
        (f"{family}: {figure}", *(f"{r['value']:.3f}" for r in rows if r["family"] == family))
        for family, figure in dict.fromkeys((r["family"], r["figure"]) for r in rows)
    ]
    best = {
        name: max(some, key=lambda r: r["value"] * (-1 if "MSE" in r["figure"] else 1))
        for name, some in grouped(rows, "family").items()
    }
    behind = [f"{name} ({r['optimizer']})" for name, r in best.items() if r["optimizer"] != "ours"]
    said = f"Few seconds each and one seed: a ranking. Another is ahead on {', '.join(behind)}.\n\n"
    return said + markdown(("family", *ways), lines)


def launches(rows: list[Row]) -> str:
    every = ("all of it", sum(r["operations"] for r in rows))
    lines = [*((r["part"], r["operations"]) for r in rows), every]
    return markdown(("part of a step", "operations"), lines)


TABLES = {
    "step": (
        "A training step",
        "A step of this library, against a plain loop that follows the published procedure to the "
        "letter: 32 taus, 256 points each, five unfolded applications, the loss read back at each "
        "step.",
        step,
    ),
    "launches": (
        "What a training step consists of",
        "Operations on conics but for views. On a GPU each is a kernel, which takes its time, "
        "however little it does; those that are done beside others hide behind them. What the "
        "network's fused kernels do there is not counted.",
        launches,
    ),
    "quality": (
        "Time to the published quality",
        "A fresh process, from its start to a saved operator whose WP at 0.05 (t = 0.05) reaches "
        "what is asked for; on a GPU, the published 0.73. The published procedure's time is its "
        "200,000 steps at the measured time of one.",
        quality,
    ),
    "solving": (
        "Solving at equal objective value",
        "The shipped operator for conics, which sees neither objective nor gradient, against "
        "methods that use both, and that make just as many steps as they need to be as good in the "
        "median. A conic costs a dozen multiplications, which is the best case for them: the "
        "operator costs the same for any objective.",
        solving,
    ),
    "solving_cpu": (
        "Solving on a CPU",
        "`operator.solve` against the networks as they are written. It splits points into pieces "
        "for each core, leaves settled points out and, if the processor has instructions for it, "
        "uses 16-bit products up to the last application. Quality is the share of maximum cuts "
        "found, or WP at 0.05.",
        solving_cpu,
    ),
    "metrics": (
        "Metrics",
        "The witnessed metrics against loops that read like their definition; the numbers are the "
        "same.",
        metrics,
    ),
    "growth": ("Growth", "Time and memory as sizes grow.", growth),
    "listing": (
        "The symmetries of a part",
        "`px.symmetries` from 256 starts, after loading: of planes alone, and of everything. What "
        "of the planes' time is of each stage is measured in calls of their own. On a CPU, seconds "
        "are those that it computes, of all threads together.",
        listing,
    ),
    "distance": (
        "Distances to meshes",
        "Points near surfaces, with the gradient of their distance, in sizes of the mesh; 'all "
        "triangles' is the reference without a tree or a kernel. Errors are those against the "
        "first way, which is exact.",
        distance,
    ),
    "processes": ("Training in two processes", "", processes),
    "optimizers": ("Optimizers at equal time", "", optimizers),
    "precision": (
        "Precision",
        "What the precision of the network's matrix products does to quality, after as many steps "
        "of training in each.",
        precision,
    ),
    "minute": (
        "A minute on a CPU",
        "The family of the README's ten lines, trained for a minute: the share of the minima that "
        "are found.",
        minute,
    ),
    "imports": ("Importing", "", imports),
    "install": (
        "After an install",
        "The wheel in a new environment, whose dependencies are there already: from the command to "
        "a picture.",
        install,
    ),
    "playground": (
        "The playground",
        "In Chromium, the median time from a move of a slider to the points that follow it, as "
        "drawn: as many points as there is time for. Then the seconds until all starts are solved "
        "for the last tau, and the list is made.",
        playground,
    ),
    "encoding": (
        "Codes that are kept",
        "With `encodes=`, only some of the instances of a step are encoded anew. What that does to "
        "the result after the same time, for pictures of dots.",
        encoding,
    ),
    "versions": ("Training, version 0.1 and 0.2", "Both versions in turns.", versions),
    "ship": (
        "The shipped operators",
        "How long and on what each was trained, and how good it is (`benchmarks/ship.py` says how "
        "that is measured).",
        ship,
    ),
    "shipped": ("The shipped operators, on test instances", "", shipped),
}


def _named(row: Row, key: str) -> str:
    """The row's name, and the device if it is not the one that the benchmark ran on."""
    elsewhere = row["ran_on"] == "cuda" and "CPU" in row["machine"]
    return row[key] + " (on the CPU)" * elsewhere


def _between(row: Row, unit: float) -> str:
    """The median, and the quartiles in brackets."""
    median, low, high = (unit * row[f"seconds{end}"] for end in ("", "_low", "_high"))
    return f"{median:.3g} ({low:.3g} to {high:.3g})"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _where(rows: list[Row], key: str, value: object) -> list[Row]:
    return [row for row in rows if row[key] == value]


def draw_speed(rows: Rows, path: Path) -> Path:
    """What is done in a second, and the quality against the time it took."""
    figure = new_figure(11.5, 5.6)
    (steps, good), (solved, measured) = figure.subplots(2, 2)
    draw_rates(steps, rows.drawn("step"), "variant", "points_per_second", "points trained / s")
    draw_quality(good, rows.drawn("quality"))
    draw_rates(solved, rows.drawn("solving"), "method", "solutions_per_second", "solutions / s")
    draw_rates(
        measured, rows.drawn("metrics"), "variant", "instances_per_second", "conics measured / s"
    )
    return save(figure, path)


def draw_rates(axes: "Axes", rows: list[Row], name: str, rate: str, label: str) -> None:
    """A dot for each row, on a log scale (where the length of a bar would mean nothing)."""
    tidy(axes, xlabel=label, xscale="log", ylim=(max(1, len(rows)) - 0.5, -0.5))
    for line, row in enumerate(rows):
        color = OTHER if row[name] in THEIRS else PROXIMAL
        axes.plot(row[rate], line, "o", color=color, markersize=9)
        place = {"xytext": (9, -3.5), "textcoords": "offset points"}
        axes.annotate(_short(row[rate]), (row[rate], line), **place, color=INK, fontsize="small")
    axes.set_yticks(range(len(rows)), [_named(row, name) for row in rows])
    axes.margins(x=0.2)
    axes.minorticks_off()


def _short(number: float, digits: int = 3) -> str:
    """A few digits and a unit."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.{digits if number < 100 * size else 3}g}{unit}"
    return f"{number:.3g}"


def draw_quality(axes: "Axes", rows: list[Row]) -> None:
    """WP against the seconds of the whole process, and where the published training is."""
    tidy(axes, xlabel="seconds in all", ylabel="WP at 0.05", xscale="log", ylim=(0, 1.02))
    if not rows:
        return
    trained = _where(rows, "variant", "training")
    (loop,) = _where(rows, "variant", "published loop")
    goal = trained[0]["goal"]
    axes.axhline(goal, color="0.75", linestyle=(0, (3, 3)), linewidth=1.2, zorder=1)
    seconds, precision = [row["seconds"] for row in trained], [row["wp"] for row in trained]
    axes.plot(seconds, precision, "o", color=PROXIMAL, markersize=7, label="a fresh process")
    said = f"published loop, {loop['hours']:.2g} hours"
    axes.plot(loop["seconds"], goal, "o", color=OTHER, markersize=9, label=said)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    axes.minorticks_off()


def draw_growth(rows: Rows, path: Path) -> Path:
    """Time above, memory below; a column for each axis. Grey is growth in proportion."""
    figure = new_figure(11.5, 5.4)
    grid, drawn = figure.subplots(2, len(AXES), sharex="col", sharey="row"), rows.drawn("growth")
    for (time, memory), (axis, (what, label)) in zip(grid.T, AXES.items()):
        found = _where(drawn, "axis", axis)
        tidy(time, xscale="log", yscale="log")
        time.set_title(what, fontsize="medium")
        tidy(memory, xlabel=label, xscale="log", yscale="log")
        draw_line(time, found, "seconds", 1e3)
        draw_line(memory, found, "peak_mib", 1.0)
    grid[0, 0].set_ylabel("milliseconds", color=INK)
    grid[1, 0].set_ylabel("peak memory, MiB", color=INK)
    return save(figure, path)


def draw_line(axes: "Axes", rows: list[Row], key: str, unit: float) -> None:
    """A measured curve, and growth in proportion through its last point, as far as fits."""
    sizes, values = [row["size"] for row in rows], [unit * row[key] for row in rows]
    straight = [(n, values[-1] * n / sizes[-1]) for n in sizes]
    near = [(n, value) for n, value in straight if value > min(values) / 5]
    axes.plot(*zip(*near), color="0.8", linewidth=1, zorder=1)
    axes.plot(sizes, values, "o-", color=PROXIMAL, markersize=4)
    axes.set_xticks(sizes, [_short(size, 2) for size in sizes])
    axes.minorticks_off()


if __name__ == "__main__":
    main()
