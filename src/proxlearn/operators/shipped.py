"""The operators of built-in problems: those shipped with the package, at most one for a problem,
and those that `bring` copied into the user's own folder, whose hash is checked."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from proxlearn.common.contents import MOST, brief, content_of
from proxlearn.common.files import usual_folder, write_atomically
from proxlearn.errors import FileError, InputError, UnknownNameError
from proxlearn.operators.load import load
from proxlearn.operators.operator import Operator
from proxlearn.problems import names, problem

WEIGHTS = Path(str(files("proxlearn.operators"))) / "weights"
HOME = "PROXLEARN_HOME"  # the environment's name for the user's folder; ~/.proxlearn without it
ENDING = ".safetensors"
PATIENCE = 30.0  # seconds without an answer


def shipped() -> dict[str, Path]:
    """The file of each shipped operator, by problem name."""
    return {path.stem: path for path in sorted(WEIGHTS.glob(f"*{ENDING}"))}


def available() -> dict[str, Path]:
    """The same with those that were brought in."""
    brought = {path.stem: path for path in sorted(own_folder().glob(f"*{ENDING}"))}
    return brought | shipped()


def own_folder() -> Path:
    """Where operators are kept that were brought in."""
    return Path(os.environ.get(HOME) or Path.home() / ".proxlearn") / "operators"


def pretrained(name: str, device: str = "auto") -> Operator:
    """The operator shipped for a built-in problem, or brought in by `proxlearn bring`, with the
    problem at hand for values."""
    file = available().get(name) if isinstance(name, str) else None
    if file is None:
        if isinstance(name, str) and name in names():
            raise InputError(how_to_have_one(name))
        raise UnknownNameError("shipped operator for", name, available())
    if file.parent != WEIGHTS:
        _check_hash(file)
    operator = load(file, device)
    operator.problem = problem(name)
    return operator


def how_to_have_one(name: str, train: str = "") -> str:
    """What to do where a problem has no operator; `train`: the command that trains one, by default
    the usual one."""
    folder = usual_folder(name)
    typed = shlex.quote(str(folder))
    train = train or f"proxlearn train {name} --out {typed}"
    bring = ", or bring in a file of one, `proxlearn bring FILE`" if name in names() else ""
    return (
        f"No operator is shipped for {brief(name)!r}: train one with `{train}` and give it "
        f"(operator=px.load('{folder}'), --operator {typed}){bring}."
    )


def bring(source: str | Path, digest: str | None = None) -> tuple[str, Path, str]:
    """Copy an operator's file for a built-in problem, from a path or an https address, into the
    user's folder, for `pretrained` and the commands to find; the problem, the copy and its SHA-256.

    `digest`: the SHA-256 that it must have, which is asked for where it comes from the web. It is
    kept beside the file and checked whenever the operator is loaded.
    """
    with _at_hand(source, digest) as file:
        content = content_of(file, what="operator file")
        found = sha256(content).hexdigest()
        if digest is not None and digest.strip().lower() != found:
            raise FileError(
                f"{source} has the SHA-256 {found}, not {digest}: it is damaged or another file. "
                "Nothing was brought in."
            )
        name = _problem_of(file)
    target = own_folder() / f"{name}{ENDING}"
    write_atomically(_hash_beside(target), f"{found}\n")
    return name, write_atomically(target, content), found


@contextmanager
def _at_hand(source: str | Path, digest: str | None) -> Iterator[Path]:
    """A path of what is at a path, or at an address of the web."""
    if not (address := str(source)):
        raise InputError("No file is named: give the path of an operator's file, or its address.")
    if not address.startswith(("https://", "http://")):
        path = Path(source)
        yield path / f"operator{ENDING}" if path.is_dir() else path
        return
    if digest is None:
        raise InputError(
            f"{address} is on the web: give the SHA-256 that its file must have, --hash, as who "
            "offers it says."
        )
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(address, timeout=PATIENCE) as answer:
            content = answer.read(MOST + 1)
    except (OSError, HTTPException, ValueError) as error:
        raise FileError(f"{address} cannot be brought in: {error}.") from None
    if len(content) > MOST:
        raise FileError(f"{address} has more than the {MOST:,} bytes that are read of a file.")
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"operator{ENDING}"
        file.write_bytes(content)
        yield file


def _problem_of(file: Path) -> str:
    """The built-in problem that an operator's file is of; an error where it fits none."""
    operator = load(file, "cpu")
    name = operator.provenance.get("problem")
    if name not in names():
        raise InputError(
            f"{file} is of {name!r}, which is no built-in problem: use it with px.load(path) or "
            "--operator."
        )
    if name in shipped():
        raise InputError(
            f"An operator is shipped for {name!r}, and stays the one: use this file with "
            "px.load(path) or --operator."
        )
    operator.check_fits(problem(name))
    return name


def _hash_beside(file: Path) -> Path:
    return file.with_suffix(".sha256")


def _check_hash(file: Path) -> None:
    """An error where a file that was brought in is not what it was then."""
    kept = content_of(_hash_beside(file), 1 << 10, "hash").decode(errors="replace").strip()
    if sha256(content_of(file, what="operator file")).hexdigest() != kept:
        raise FileError(
            f"{file} is not the file that was brought in: its SHA-256 is not the one kept beside "
            "it. Bring it in again with `proxlearn bring`."
        )
