"""Reading the files that users give: only regular files, and none that is too large."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proxlearn.common.memory import afford
from proxlearn.errors import FileError

MOST = 1 << 30  # bytes of a file that is read at once
LONGEST = 200  # characters of a path, or of what is wrong, that an error repeats
AS_OBJECTS = 20  # times the bytes of a text: the memory of its words and numbers as objects
DEEPEST = 40  # levels of lists and objects inside each other, in JSON


def content_of(path: str | Path, most: int = MOST, what: str = "file") -> bytes:
    """The bytes of a regular file that is not too large."""
    check_file(path, most, what)
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{brief(path)} cannot be read: {error.strerror}.") from None


def check_file(path: str | Path, most: int = MOST, what: str = "file") -> None:
    """An error where there is no file, where it is a folder, a pipe or a device (which may have no
    end), or where it has too many bytes."""
    try:
        about = Path(path).stat()
    except (OSError, ValueError):  # a name that is too long, or has a zero byte, is of no file
        raise FileError(f"There is no {what} at {brief(path)}: check the path.") from None
    if stat.S_ISDIR(about.st_mode):
        raise FileError(f"{brief(path)} is a folder: give the path of a {what}.")
    if not stat.S_ISREG(about.st_mode):
        raise FileError(f"{brief(path)} is a pipe or a device: save what comes from it as a file.")
    if about.st_size > most:
        raise FileError(
            f"{brief(path)} has {about.st_size:,} bytes, more than the {most:,} that are read of a "
            f"{what}: give a smaller one."
        )


def text_of(path: str | Path, what: str = "file") -> str:
    """The text of a file, if there is memory for its words and numbers as objects; bytes that are
    not UTF-8 are replaced."""
    check_file(path, what=what)
    needed = AS_OBJECTS * Path(path).stat().st_size
    afford(needed, f"Reading the {what} {brief(path)}", "give a smaller one")
    return content_of(path, what=what).decode(errors="replace")


def json_of(content: bytes, name: str | Path) -> Any:
    """The value that a file's JSON stands for; an error if it is no JSON, or is nested deeper than
    any file of ours."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{brief(name)} cannot be read as JSON: {brief(error)}.") from None
    if not shallow(said):
        raise FileError(f"{brief(name)} has lists or objects more than {DEEPEST} deep.")
    return said


def shallow(said: Any) -> bool:
    """Whether a value of JSON has at most so many levels as we read."""
    inside = [said]
    for _ in range(DEEPEST):
        inside = [each for some in inside for each in _parts(some)]
        if not inside:
            return True
    return False


def _parts(said: Any) -> Iterator[Any]:
    """The lists and objects directly inside, which alone have further levels."""
    every = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    return (each for each in every if isinstance(each, list | dict))


def brief(said: Any, longest: int = LONGEST) -> str:
    """A path or the words of an error, no longer than can be read, and without what a screen or a
    file could not show."""
    text = "".join(each if each.isprintable() else "?" for each in str(said))
    return text if len(text) <= longest else f"{text[: longest // 2]}...{text[-longest // 2 :]}"
