"""Kernels that a process beside compiles, once on every machine, while work goes on without them.

It is a process and not a thread, since compiling keeps Python busy, and since one process must not
wait at its end for what the next one will be glad of.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch

from proxlearn.errors import SpeedWarning


class Compiling:
    """A call of `module.compile_for(*arguments)` by another process, whose results are kept by
    Triton; `done` from the beginning where an earlier call is known to have succeeded."""

    def __init__(self, module: str, arguments: list):
        self.done, self.failed = _known(module, arguments).exists(), False
        self.process, self.said = None, tempfile.TemporaryFile("w+")  # noqa: SIM115
        if not self.done:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps([module, arguments])],
                stdout=subprocess.DEVNULL,
                stderr=self.said,
                start_new_session=True,  # it goes on when this one ends
            )

    def just_done(self) -> bool:
        """Whether the kernels are there now and were not when this was asked before; a warning,
        once, where they will never be."""
        if self.process is None or self.process.poll() is None:
            return False
        self.done, self.process = self.process.returncode == 0, None
        self.failed = not self.done
        if self.failed:
            self.said.seek(0)
            why = self.said.read().strip().splitlines()[-1:] or ["no reason was given"]
            warnings.warn(
                "Every step is slower than it could be, since its kernels could not be compiled: "
                f"{why[0]}",
                SpeedWarning,
                stacklevel=2,
            )
        return self.done


def _known(module: str, arguments: list) -> Path:
    """The file that says that these kernels are compiled; it lies with them, and goes with them."""
    spec = find_spec(module)
    source = Path(spec.origin).read_bytes() if spec and spec.origin else b""
    told = json.dumps([arguments, torch.__version__, torch.cuda.get_device_name()]).encode()
    folder = os.environ.get("TRITON_CACHE_DIR") or Path.home() / ".triton" / "cache"
    return Path(folder) / f"proxlearn-{hashlib.sha256(source + told).hexdigest()[:16]}"


def _compile(module: str, arguments: list) -> None:
    """What the process beside does."""
    import_module(module).compile_for(*arguments)
    torch.cuda.synchronize()
    known = _known(module, arguments)
    known.parent.mkdir(parents=True, exist_ok=True)
    known.touch()


if __name__ == "__main__":
    _compile(*json.loads(sys.argv[1]))
