"""A folder that one process at a time writes to."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from proxlearn.common.files import TEMPORARY, writable_folder
from proxlearn.errors import FileError

NAME = ".lock"
LEFT_OVER = re.compile(rf"\..+\.\d+{re.escape(TEMPORARY)}")  # as `whole_or_nothing` names them


@contextmanager
def locked(folder: str | Path) -> Iterator[Path]:
    """The folder, made where missing, for this process alone; an error where another one has it.
    Files that a killed process left half written are removed. The lock ends with the process,
    however that ends; on a file system without locks there is none."""
    folder = writable_folder(folder)
    with _taken(folder / NAME):
        for path in folder.iterdir():
            if LEFT_OVER.fullmatch(path.name):
                with suppress(OSError):
                    path.unlink()
        try:
            yield folder
        finally:
            (folder / NAME).unlink(missing_ok=True)


def _taken(path: Path) -> IO[str]:
    """The lock's file, open and locked, with the number of this process in it."""
    while True:
        try:
            file = path.open("a+")
        except OSError as error:
            raise FileError(f"Cannot write {path}: {error.strerror}.") from None
        if not _lock(file):
            file.seek(0)
            who = file.read(20).strip()
            file.close()
            raise FileError(
                f"Another training is writing to {path.parent}{f' (process {who})' * bool(who)}: "
                "wait until it has ended, or choose another folder."
            )
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                break
        file.close()  # the process that had it has removed it meanwhile
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def _lock(file: IO[str]) -> bool:
    """Whether it could be locked, or there are no locks here."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # not on every system, not on every file system
        pass
    return True
