"""Take the pictures of the playground and of a report, for the README and these pages, into
docs/images:

python docs/make_screenshots.py                         needs Chromium and the extra `browser`
python docs/make_screenshots.py detection.safetensors   also with an operator for detection
"""

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from proxlearn.operators.load import load
from proxlearn.playground.folder import write
from proxlearn.playground.shown import built_in, own
from proxlearn.show.report import report

ROOT = Path(__file__).parent.parent
IMAGES = Path(__file__).parent / "images"
DESK, PHONE = {"width": 1180, "height": 860}, {"width": 390, "height": 844}
TALL = {"width": 1180, "height": 1110}
WAIT = 120_000  # milliseconds, on a busy machine


def main(operator: str | None = None) -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from _browsing import SETTLED, chromium

    with TemporaryDirectory() as folder, chromium() as browser:
        usual = write(Path(folder), built_in(), print).as_uri()

        def taken(
            name: str,
            problem: str,
            scheme: str,
            size: dict[str, int],
            do: Callable | None = None,
            page_at: str = usual,
        ) -> None:
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(f"{page_at}#{problem}")
            page.wait_for_function(SETTLED, timeout=WAIT)
            if do is not None:
                do(page)
            page.wait_for_timeout(300)
            path = IMAGES / f"playground-{name}.png"
            page.screenshot(path=path)
            print(path)
            page.close()

        taken("light", "peaks", "light", DESK, halfway)
        taken("dark", "conic", "dark", DESK)
        taken("springs", "springs", "light", DESK)
        taken("cuts", "maxcut", "dark", DESK)
        taken("phone", "peaks", "light", PHONE)
        taken("mirrors", "symmetry", "light", DESK)
        taken("flow", "symmetry", "dark", DESK, on_the_way)
        taken("mirrors-phone", "symmetry", "dark", PHONE)
        if operator is not None:
            shown = [own(load(operator, "cpu"), "Detection"), *built_in()]
            with_own = write(Path(folder) / "own", shown, print).as_uri()
            taken("boxes", "own", "light", DESK, the_second_picture, with_own)
        print(of_report(browser, Path(folder)))


def of_report(browser: Any, folder: Path) -> Path:
    """The top of the report on the conics of `results/`."""
    file = report(ROOT / "results" / "conic", folder / "report.html", "Conics")
    page = browser.new_page(viewport=TALL)
    page.goto(file.as_uri())
    path = IMAGES / "report.png"
    page.screenshot(path=path)
    return path


def halfway(page: Any) -> None:
    """The starts on their way to the summits."""
    page.locator("#application").fill("3")
    page.locator("#application").blur()


def on_the_way(page: Any) -> None:
    """Planes on their way to the mirrors of a gear."""
    page.select_option("#preset", "gear")
    page.wait_for_timeout(300)
    page.wait_for_function("() => App.state.answer && App.state.live === null", timeout=WAIT)
    page.locator("#application").fill("4")
    page.locator("#application").blur()


def the_second_picture(page: Any) -> None:
    """Another of the scenes that come with the page."""
    page.select_option("#preset", "scene 2")
    page.wait_for_timeout(300)
    page.wait_for_function("() => App.state.answer && App.state.live === null", timeout=WAIT)


if __name__ == "__main__":
    main(*sys.argv[1:2])
