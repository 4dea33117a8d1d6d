"""Take the picture of a report that these pages show: the conics of `results/`, in Chromium.

python docs/make_screenshot.py
"""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from proxlearn.show.report import report

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
WIDTH, HEIGHT = 1180, 1110  # of the screen, in pixels


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("Chromium takes the picture, and is not installed.")
    with TemporaryDirectory() as folder:
        page, image = Path(folder) / "report.html", DOCS / "images" / "report.png"
        report(RESULTS / "conic", page, "Conics", "proxlearn report results/conic -o report.html")
        look = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        look += [f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={image}"]
        subprocess.run([chromium, *look, page.as_uri()], check=True, capture_output=True)
    print(image)


if __name__ == "__main__":
    main()
