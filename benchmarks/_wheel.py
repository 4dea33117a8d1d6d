"""The package as users get it: built, and put into an environment of its own."""

import os
import subprocess
import sys
import venv
from pathlib import Path
from sysconfig import get_path

ROOT = Path(__file__).parent.parent


def built(folder: Path, root: Path = ROOT, address: str | None = None) -> tuple[Path, Path]:
    """The sdist and the wheel of a source tree, written to a folder; `address`: of a repository."""
    own = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}  # where hatchling may be
    own |= {} if address is None else {"PROXLEARN_REPOSITORY": address}
    run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=root, **own)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def installed(wheel: Path, folder: Path) -> Path:
    """The programs of a new environment with the wheel in it. What the package depends on comes
    from this environment, by its path: nothing is downloaded."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    run([str(programs / "pip"), "install", "--quiet", "--no-deps", "--no-index", str(wheel)])
    (own,) = folder.glob("lib/python*/site-packages")
    (own / "shared.pth").write_text(get_path("purelib"))
    return programs


def run(command: list[str], cwd: Path | None = None, **own: str) -> str:
    """What a command prints, away from this source tree; an error with all it says if it fails."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PROXLEARN_REPOSITORY")}
    done = subprocess.run(command, cwd=cwd, env=kept | own, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
