"""How soon the points of the playground follow a slider, in a headless browser on this machine.

python benchmarks/playground.py
"""

from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

from _browsing import SETTLED, chromium
from _shared import Benchmark, options, show

from proxlearn.playground.folder import write
from proxlearn.playground.playable import Playable
from proxlearn.playground.shown import built_in

MOVES, PAUSE = 60, 0.03  # of a slider, and the seconds between them
ARROWS = ("ArrowRight", "ArrowLeft")
LEAST = 0.3  # seconds of rest, after which all begins again from random starts


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("playground", options(__doc__, on_cpu=True).parse_args(arguments))
    shown = [each for each in built_in() if each.about()["tau"]["kind"] != "none"]
    shown = shown[:1] if run.quick else shown
    with TemporaryDirectory() as folder, chromium() as browser:
        page_at = write(Path(folder), shown, print).as_uri()
        for each in shown:
            page = browser.new_page()
            page.goto(f"{page_at}#{each.name}")
            page.wait_for_function(SETTLED, timeout=120_000)
            run.add(problem=each.name, **measured(page, each, 3 if run.quick else MOVES))
            page.close()
    keys = ("problem", "points", "answer_ms", "answer_ms_slowest_tenth", "whole_s")
    show("From a move to the points", keys, [[row[key] for key in keys] for row in run.rows])
    run.save()


def measured(page: Any, shown: Playable, moves: int) -> dict[str, Any]:
    """Milliseconds from a move of the first slider to the points that follow it, drawn; and the
    seconds that all of it from random starts then takes."""
    if page.locator("summary").count():
        page.click("summary")
    slider, times = page.locator("#controls input[type=range]").first, []
    for k in range(moves):
        slider.press(ARROWS[k // 10 % 2])
        page.wait_for_function("() => App.state.seen === App.state.changed")
        times.append(page.evaluate("App.state.latency"))
        sleep(PAUSE)
    points = page.evaluate("App.state.live?.length ?? 0") // shown.space.dim
    begun = page.evaluate("App.state.changed")
    page.wait_for_function(SETTLED, timeout=120_000)
    return {
        "points": points,
        "answer_ms": median(times),
        "answer_ms_slowest_tenth": quantiles(times, n=10)[-1],
        "moves": moves,
        "whole_s": page.evaluate("performance.now()") / 1000 - begun / 1000 - LEAST,
        "starts": page.evaluate("App.state.history[0].length") // shown.space.dim,
        "workers": page.evaluate("App.workers()"),
    }


if __name__ == "__main__":
    main()
