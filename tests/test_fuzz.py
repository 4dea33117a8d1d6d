"""The fuzzer: every ending is told from every other, and no kind of fault provokes a bad one."""

import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fuzz
import pytest
from fuzzing import frame

from proxlearn.common.files import read_rows
from proxlearn.errors import InputError, RangeWarning

ROOT = Path(__file__).parent.parent


def sentence():
    raise InputError("tau is 'abc'; expected numbers.")


def long_sentence():
    raise InputError("abc" * 1_000)


def warned(error: Exception | None = None):
    warnings.warn("tau is outside the trained range", RangeWarning, stacklevel=1)
    if error:
        raise error


def raw():
    raise KeyError("abc")


def wrong():
    frame.finite([1.0, float("nan")])


def hang():
    time.sleep(60)


def large():
    assert len(bytearray(3 * 2**30))


def large_program():
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    ran = [sys.executable, "-c", f"bytearray({limit})"]
    if b"MemoryError" in subprocess.run(ran, capture_output=True).stderr:
        raise MemoryError


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def left(status: Any) -> Callable[[], None]:
    def act():
        print("Error: there is no problem 'abc'.")
        raise SystemExit(status)

    return act


ENDINGS = [
    ("fine", lambda: None),
    ("fine", lambda: frame.finite([1.0], 2.0)),
    ("fine", left(0)),
    ("sentence", sentence),
    ("sentence", left(2)),
    ("sentence", lambda: frame.command("solve", "no such problem")),
    ("warned", warned),
    ("warned", lambda: frame.command("solve", "conic", "--tau", "9,0,0,0,0,0", "--starts", "8")),
    ("warned", lambda: warned(frame.WrongAnswerError("not finite"))),
    ("raw", long_sentence),
    ("raw", lambda: warned(KeyError("abc"))),
    ("raw", raw),
    ("wrong", wrong),
    ("hang", hang),
    ("memory", large),
    ("memory", large_program),
    ("killed", killed),
]


def made_up(*acts: Callable[[], None], **more: Any) -> Any:
    """A kind of fault of one case, drawn among these acts by no chance at all."""
    calls = iter(acts)
    acts_of = SimpleNamespace(WHAT="made up", CASES=len(acts), prepare=lambda folder: None)
    acts_of.case = lambda draw, prepared, folder: ("made up", next(calls))
    return SimpleNamespace(**vars(acts_of) | more)


def ended(kind: Any, folder: Path) -> frame.Outcome:
    (only,) = frame.outcomes(kind, range(1), 0, folder, jobs=1)
    return only


@pytest.mark.parametrize(("expected", "act"), ENDINGS)
def test_how_a_case_ends(expected: str, act: Callable[[], None], tmp_path: Path):
    outcome = ended(made_up(act, SECONDS=1.0 if act is hang else 30.0), tmp_path)
    assert outcome.kind == expected
    assert (outcome.kind in frame.BAD) == (expected not in frame.GOOD)
    assert outcome.about == "made up"


def test_what_was_said_is_kept(tmp_path: Path):
    assert ended(made_up(sentence), tmp_path).said == "tau is 'abc'; expected numbers."
    assert "KeyError" in ended(made_up(raw), tmp_path).said
    assert "no problem 'abc'" in ended(made_up(left(2)), tmp_path).said
    assert ended(made_up(lambda: "SIGTERM, judging"), tmp_path).said == "SIGTERM, judging"


def test_a_case_ends_with_all_that_it_began(tmp_path: Path):
    """Programs that it started, in groups of their own or not, and its files."""

    def case(draw: Any, prepared: None, folder: Path) -> tuple[str, Callable[[], None]]:
        def act():
            (folder / "file").write_text("abc")
            sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
            begun = [subprocess.Popen(sleeping, process_group=own).pid for own in (None, 0)]
            (tmp_path / "pids").write_text(" ".join(map(str, begun)))

        return "made up", act

    began = time.monotonic()
    assert ended(made_up(case=case), tmp_path).kind == "fine"
    assert time.monotonic() - began < 10
    assert [each.name for each in tmp_path.iterdir()] == ["pids"]
    for pid in (tmp_path / "pids").read_text().split():
        status = Path(f"/proc/{pid}/stat")
        while status.is_file() and status.read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() - began < 10, "a program outlived its case"
            time.sleep(0.01)


def test_cases_that_end_while_others_begin(tmp_path: Path):
    """Python reaps processes that have ended whenever it starts another."""
    every = list(frame.outcomes(made_up(lambda: None), range(30), 0, tmp_path, jobs=3))
    assert sorted(each.case for each in every) == list(range(30))
    assert {each.kind for each in every} == {"fine"}


def test_cases_are_drawn_alike(tmp_path: Path):
    """The same case is the same whatever ran before it, beside it, or how many there are."""

    def case(draw: Any, prepared: None, folder: Path) -> tuple[str, Callable[[], None]]:
        return str(draw.integers(2**32)), lambda: None

    def drawn(cases: list[int], jobs: int, seed: int = 0) -> dict[int, str]:
        every = frame.outcomes(made_up(case=case), cases, seed, tmp_path, jobs)
        return {each.case: each.about for each in every}

    assert drawn([0, 1, 2, 3], 2).items() >= drawn([3, 1], 1).items()
    assert drawn([3], 1) != drawn([3], 1, seed=1)


def test_a_case_that_cannot_be_made_is_no_outcome(tmp_path: Path):
    with pytest.raises(RuntimeError, match="case 0 cannot be made"):
        ended(made_up(case=lambda draw, prepared, folder: 1 / 0), tmp_path)


def test_the_classes_are_counted(tmp_path: Path):
    one = ended(made_up(raw), tmp_path)
    counts = frame.counts([one, one, replace(one, kind="fine")])
    assert list(counts) == [*frame.GOOD, *frame.BAD]
    assert {name: n for name, n in counts.items() if n} == {"raw": 2, "fine": 1}


@pytest.fixture(scope="module")
def provoked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few cases of every kind, run as a user would: nothing checks the types of arguments."""
    out = tmp_path_factory.mktemp("fuzz")
    script = [sys.executable, "benchmarks/fuzz.py", "--quick", "--out", str(out)]
    ran = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return out


@pytest.mark.parametrize("kind", fuzz.kinds())
def test_nothing_broken_gets_through(kind: str, provoked: Path):
    (row,) = [each for each in read_rows(provoked / "rows.jsonl") if each["kind"] == kind]
    assert sum(row[ending] for ending in frame.GOOD + frame.BAD) == row["cases"] > 0
    assert not (provoked / f"faults-{kind}.jsonl").exists()
    assert not any(row[ending] for ending in frame.BAD)
