"""One case in a process of its own, with limits of time and memory, and the class it ends in."""

import contextlib
import gc
import io
import os
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock, patch

import numpy as np

from proxlearn.cli.main import main as command_line
from proxlearn.errors import ProxlearnError
from proxlearn.show import terminal

SECONDS = 10.0  # the longest that a case may take, where its kind says no other
MEMORY = 2 * 2**30  # bytes, the most that a case may take beyond what the process began with
SENTENCE = 1_000  # characters, the longest error that is still read
KEPT = 2_000  # characters of what was done and said
BROKEN = "broken"  # of a case that cannot be made, a fault of the fuzzer's own

Act = Callable[[], object]  # what it returns, if it is text, is said of a case that went well


class WrongAnswerError(Exception):
    """Of an answer that is wrong or not finite: a fault, unless a warning was given with it."""


class ScreenWarning(UserWarning):
    """Of what a command warned of on the screen."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended."""

    case: int
    about: str  # what was done, in words
    kind: str  # one of GOOD or BAD
    said: str  # the error, the warning or the end of the traceback
    seconds: float


GOOD = ("sentence", "fine", "warned")  # an error in words; went well; went on with a warning
BAD = ("raw", "wrong", "hang", "memory", "killed")
# A raw error or a traceback; a wrong answer, said with certainty; too long; too large; a crash.


def outcomes(
    row: ModuleType, cases: Sequence[int], seed: int, folder: Path, jobs: int
) -> Iterator[Outcome]:
    """Every case of a kind of fault, several at a time, as they end. Each has a folder of its own
    in `folder`; what it began and left behind ends with it."""
    prepared, limit = row.prepare(folder), getattr(row, "SECONDS", SECONDS)
    waiting, under_way = list(reversed(cases)), []
    gc.freeze()  # or every case would copy what is prepared as soon as it collects its garbage
    try:
        while waiting or under_way:
            while waiting and len(under_way) < jobs:
                under_way.append(_Case(row, waiting.pop(), seed, prepared, folder))
            wait([each.process.sentinel for each in under_way], timeout=0.5)
            for each in [each for each in under_way if each.ended or each.seconds > limit]:
                under_way.remove(each)
                yield each.outcome()
    finally:
        for each in under_way:
            each.outcome()
        gc.unfreeze()


class _Case:
    """A case under way."""

    def __init__(self, row: ModuleType, number: int, seed: int, prepared: Any, folder: Path):
        fork = get_context("fork")  # what is imported and prepared is there at once
        self.number, self.began = number, time.monotonic()
        self.folder = tempfile.TemporaryDirectory(prefix="case", dir=folder)
        self.messages, theirs = fork.Pipe(duplex=False)
        draw = np.random.default_rng([seed, number])
        given = (row, draw, prepared, Path(self.folder.name), theirs)
        self.process = fork.Process(target=_child, args=given)
        self.process.start()
        theirs.close()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def ended(self) -> bool:
        """Whether it has ended. It is only looked at: until it is reaped, its number is its own."""
        assert self.process.pid
        asked = os.WEXITED | os.WNOHANG | os.WNOWAIT  # only look
        try:
            return os.waitid(os.P_PID, self.process.pid, asked) is not None
        except ChildProcessError:  # it was reaped when another case began
            return True

    def outcome(self) -> Outcome:
        """How it ended, by what it said of itself, if it came to that. Everything ends here."""
        late, seconds = not self.ended, self.seconds
        _end_session(self.process)
        told = []
        with contextlib.suppress(EOFError):
            while self.messages.poll():
                told.append(self.messages.recv())
        self.messages.close()
        self.folder.cleanup()
        about = told[0] if told else "before it began"
        kind, said = told[1] if len(told) > 1 else ("hang" if late else "killed", "")
        if kind == BROKEN:
            raise RuntimeError(f"case {self.number} cannot be made:\n{said}")
        return Outcome(self.number, about, kind, said, round(seconds, 3))


def _end_session(leader: BaseProcess) -> None:
    """End a case and every process that it began."""
    leader.kill()
    for name in os.listdir("/proc"):
        with contextlib.suppress(ValueError, ProcessLookupError):
            if os.getsid(int(name)) == leader.pid:
                os.kill(int(name), signal.SIGKILL)
    leader.join()


def _child(
    row: ModuleType, draw: np.random.Generator, prepared: Any, folder: Path, messages: Connection
) -> None:
    """Make one case, do it, and say how it ended. Nothing that it prints is shown."""
    os.setsid()
    os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # also of the programs that it starts
        os.dup2(nowhere, stream)
    try:
        about, act = row.case(draw, prepared, folder)
    except BaseException:
        messages.send("a case that cannot be made")
        messages.send((BROKEN, traceback.format_exc()[-KEPT:]))
        return
    messages.send(about[:KEPT])
    began = _memory()
    with _limits():
        ended = _done(act)
    grown = _memory() - began
    messages.send(("memory", f"{grown:,} bytes") if grown > MEMORY else ended)


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    """Of memory, also for the programs that are started within; and no dumps of it."""
    most = _addresses() + MEMORY
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def _done(act: Act) -> tuple[str, str]:
    """The class that an act ends in, and what was said."""
    with warnings.catch_warnings(record=True) as noted, quiet() as printed:
        warnings.simplefilter("always")
        said = ""
        try:
            said = act()
        except ProxlearnError as error:
            return _told(str(error))
        except SystemExit as left:
            if left.code:
                return _told(printed.getvalue())
        except WrongAnswerError as wrong:
            return "warned" if _ours(noted) else "wrong", str(wrong)
        except BaseException as error:  # every other error is what is looked for
            return "memory" if _of_memory(error) else "raw", traceback.format_exc()[-KEPT:]
    ours = _ours(noted)
    return ("warned", ours[0][:KEPT]) if ours else ("fine", said if isinstance(said, str) else "")


def _of_memory(error: BaseException) -> bool:
    """Whether an error is that of the limit, in Python's words, NumPy's or PyTorch's."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _ours(noted: list[warnings.WarningMessage]) -> list[str]:
    """What proxlearn warned of."""
    ours = (w for w in noted if w.category.__module__.startswith(("proxlearn", __name__)))
    return [str(w.message) for w in ours]


def _told(sentence: str) -> tuple[str, str]:
    """A sentence, if it is one that a person would read."""
    raw = "Traceback" in sentence or len(sentence) > SENTENCE or not sentence.strip()
    return "raw" if raw else "sentence", sentence[:KEPT]


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Within, what is printed goes here."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        yield printed


def command(*arguments: str) -> None:
    """Run `proxlearn ...` as a user would; a status other than 0 is a SystemExit. What it warns of
    on the screen is a warning."""
    shown = Mock(wraps=terminal.say)
    try:
        with patch.object(terminal, "say", shown):
            command_line(arguments)
    except SystemExit as left:
        if left.code:
            raise
    for call in shown.call_args_list:
        if call.args[1:] == ("yellow",):
            warnings.warn(call.args[0], ScreenWarning, stacklevel=2)


def finite(*answers: Any) -> None:
    """WrongAnswerError where an array of numbers is not finite."""
    for answer in answers:
        if not np.isfinite(np.asarray(answer)).all():
            raise WrongAnswerError("an answer that is not finite")


def counts(ended: Sequence[Outcome]) -> dict[str, int]:
    """How many cases ended in each class."""
    found = Counter(each.kind for each in ended)
    return {kind: found[kind] for kind in GOOD + BAD}


def _memory() -> int:
    """The most bytes that this process has held, or one that it started and waited for."""
    asked = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return max(resource.getrusage(each).ru_maxrss for each in asked) * 1024


def _addresses() -> int:
    """The bytes of addresses that this process has now, used or not."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
