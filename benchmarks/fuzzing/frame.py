"""One case in a process of its own, with limits of time and memory, and the class it ends in."""

import contextlib
import io
import os
import resource
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from proxlearn.cli.main import main as command_line
from proxlearn.errors import ProxlearnError

SECONDS = 10.0  # the longest that a case may take
MEMORY = 2 * 2**30  # bytes, the most that a case may take beyond what the process began with
SENTENCE = 1_000  # characters, the longest error that is still read

Act = Callable[[], None]


class WrongAnswerError(Exception):
    """Of an answer that is wrong or not finite: a fault, unless a warning was given with it."""


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
    """Every case of a kind of fault, several at a time, as they end."""
    fork = get_context("fork")  # what is imported and prepared is there at once
    prepared = row.prepare(folder)
    waiting, under_way = list(reversed(cases)), {}
    while waiting or under_way:
        while waiting and len(under_way) < jobs:
            case = waiting.pop()
            ours, theirs = fork.Pipe(duplex=False)
            child = fork.Process(target=_child, args=(row, case, seed, prepared, theirs))
            child.start()
            theirs.close()
            under_way[case] = child, ours, time.monotonic()
        wait([child.sentinel for child, *_ in under_way.values()], timeout=0.5)
        for case, (child, ours, began) in list(under_way.items()):
            seconds = time.monotonic() - began
            if child.is_alive() and seconds < SECONDS:
                continue
            late = child.is_alive()
            child.kill()
            child.join()
            yield _outcome(case, ours, seconds, late)
            del under_way[case]


def _outcome(case: int, messages: Connection, seconds: float, late: bool) -> Outcome:
    """What the child said of itself, if it came to that."""
    told = []
    with contextlib.suppress(EOFError):
        while messages.poll():
            told.append(messages.recv())
    about = told[0] if told else "before it began"
    kind, said = told[1] if len(told) > 1 else ("hang" if late else "killed", "")
    return Outcome(case, about, kind, said, round(seconds, 3))


def _child(row: ModuleType, case: int, seed: int, prepared: Any, messages: Connection) -> None:
    """Draw one case, do it, and say how it ended. Nothing that it prints is shown."""
    with tempfile.TemporaryDirectory(prefix="fuzz") as folder:
        os.chdir(folder)
        about, act = row.case(np.random.default_rng([seed, case]), prepared, Path(folder))
        messages.send(about)
        began = _memory()
        resource.setrlimit(resource.RLIMIT_AS, (_addresses() + MEMORY, resource.RLIM_INFINITY))
        kind, said = _done(act)
        if _memory() - began > MEMORY:
            kind, said = "memory", f"{_memory() - began:,} bytes"
        messages.send((kind, said))


def _done(act: Act) -> tuple[str, str]:
    """The class that an act ends in, and what was said."""
    with warnings.catch_warnings(record=True) as noted, quiet() as printed:
        warnings.simplefilter("always")
        try:
            act()
        except ProxlearnError as error:
            return _told(str(error))
        except SystemExit as left:
            if left.code:
                return _told(printed.getvalue())
        except WrongAnswerError as wrong:
            return "warned" if _ours(noted) else "wrong", str(wrong)
        except BaseException:  # every other error is what is looked for
            return "raw", traceback.format_exc()[-2_000:]
    ours = _ours(noted)
    return ("warned", ours[0]) if ours else ("fine", "")


def _ours(noted: list[warnings.WarningMessage]) -> list[str]:
    """What proxlearn warned of."""
    return [str(w.message) for w in noted if w.category.__module__.startswith("proxlearn")]


def _told(sentence: str) -> tuple[str, str]:
    """A sentence, if it is one that a person would read."""
    raw = "Traceback" in sentence or len(sentence) > SENTENCE or not sentence.strip()
    return "raw" if raw else "sentence", sentence[:2_000]


@contextlib.contextmanager
def quiet() -> Iterator[io.StringIO]:
    """Within, what is printed goes here."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        yield printed


def command(*arguments: str) -> None:
    """Run `proxlearn ...` as a user would; a status other than 0 is a SystemExit."""
    try:
        command_line(arguments)
    except SystemExit as left:
        if left.code:
            raise


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
    """The most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _addresses() -> int:
    """The bytes of addresses that this process has now, used or not."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
