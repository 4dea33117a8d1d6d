"""Kernels that are compiled and loaded while work goes on without them.

They are compiled once on every machine, by a process beside: not by a thread, since compiling keeps
Python busy, and since one process must not wait at its end for what the next one will be glad of.
To import Triton and load what is compiled takes a second or two, and is done by a thread.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread, main_thread

import torch

from proxlearn.errors import SpeedWarning
from proxlearn.gpu.capture import UNDISTURBED

TURN = 1e-4  # seconds: how long Python stays with the thread that loads while another one waits


class Compiling:
    """A call of `module.compile_for(*arguments)`, first by another process, whose results are kept
    by Triton, and then by a thread of this one, which loads them. Where an earlier call is known to
    have succeeded, there is only the second."""

    def __init__(self, module: str, arguments: list):
        self.module, self.arguments, self.failed = module, arguments, False
        self.process, self.said = None, tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.loading: _Loading | None = None
        if _known(module, arguments).exists():
            self._load()
        else:
            self.process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps([module, arguments])],
                stdout=subprocess.DEVNULL,
                stderr=self.said,
                start_new_session=True,  # it goes on when this one ends
            )

    def just_done(self) -> bool:
        """Whether the kernels are loaded now and were not when this was asked before; a warning,
        once, where they will never be."""
        if self.process is not None and self.process.poll() is not None:
            compiled, self.process = self.process.returncode == 0, None
            if compiled:
                self._load()
            else:
                self.said.seek(0)
                self._fail("compiled", self.said.read())
        if self.loading is None or self.loading.is_alive():
            return False
        error, self.loading = self.loading.error, None
        if error is not None:
            self._fail("loaded", f"{type(error).__name__}: {error}")
        return error is None

    def _load(self) -> None:
        self.loading = _Loading(self.module, self.arguments)
        self.loading.start()

    def _fail(self, what: str, said: str) -> None:
        self.failed = True
        why = said.strip().splitlines()[-1:] or ["no reason was given"]
        warnings.warn(
            "Every step is slower than it could be, since its kernels could not be "
            f"{what}: {why[0]}",
            SpeedWarning,
            stacklevel=3,
        )


class _Loading(Thread):
    """Uses kernels once, on a stream of its own, so that they are loaded. It is no daemon: Python
    waits for it at its end, as a thread that is cut off inside CUDA would crash it."""

    def __init__(self, module: str, arguments: list):
        super().__init__(name=f"loading {module}")
        self.module, self.arguments, self.error = module, arguments, None
        self.stream = torch.cuda.Stream() if torch.cuda.is_available() else None

    def run(self) -> None:
        before = sys.getswitchinterval()
        sys.setswitchinterval(TURN)
        try:
            made = import_module(self.module)
            with UNDISTURBED, torch.cuda.stream(self.stream) if self.stream else nullcontext():
                if main_thread().is_alive():  # nobody needs them at the end of Python
                    made.compile_for(*self.arguments)
                if self.stream:
                    self.stream.synchronize()
        except Exception as error:  # told by `just_done`
            self.error = error
        finally:
            sys.setswitchinterval(before)


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
