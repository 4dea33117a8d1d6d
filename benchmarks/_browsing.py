"""A headless Chromium of the distribution's packages, for tests, benchmarks and screenshots."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Of the playground: all is computed and shown.
SETTLED = "() => App.state.answer && App.state.live === null && !App.state.playing"


class NoBrowserError(Exception):
    """What is missing, and how it is installed."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of playwright's."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowserError("needs playwright: pip install -e '.[browser]'") from None
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise NoBrowserError("needs Chromium: apt-get install chromium")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()
