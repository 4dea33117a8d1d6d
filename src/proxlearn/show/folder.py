"""What a report finds in a folder. The folder may come from anyone: links out of it, pipes, hidden
files and files that are too large are not read, and the report says what was left out."""

import struct
from dataclasses import dataclass, field
from pathlib import Path

from proxlearn.common.checks import path_of
from proxlearn.common.contents import brief, content_of, json_of
from proxlearn.common.provenance import Row
from proxlearn.errors import FileError

MOST = {".md": 1 << 20, ".jsonl": 1 << 26, ".png": 1 << 25}  # bytes of a file, by its ending
MOST_IN_ALL = 1 << 27  # bytes
MOST_OF_TABLES = 1 << 21  # bytes of .md in all, which take seconds to set
MOST_FOLDERS, DEEPEST = 1_000, 30  # folders that are looked at, and levels of them
MOST_FIELDS = 500  # of a row
MOST_PIXELS = 100_000_000  # of a picture
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass
class Folder:
    """The files of one folder that a report shows, each with its name."""

    name: str
    """its path below the folder of the report, "" for that itself"""
    tables: list[tuple[str, str]] = field(default_factory=list)
    rows: list[tuple[str, list[Row]]] = field(default_factory=list)
    pictures: list[tuple[str, bytes]] = field(default_factory=list)


class Found:
    """The folders at and below a path, in order, and why files and folders were left out."""

    def __init__(self, path: str | Path):
        if not path_of(path, "folder").is_dir():
            raise FileError(f"There is no folder {brief(path)} to report on.")
        self.root = Path(path).resolve()
        self.left_out: list[str] = []  # a sentence each
        self.size, self.of_tables = 0, 0  # of what was read, and of its tables
        self.folders = [self._folder(each) for each in self._below()]
        self.folders = [each for each in self.folders if each.tables or each.rows or each.pictures]

    def _below(self) -> list[Path]:
        """The root and all folders below it that are not hidden. Links to folders are not
        followed: they lead either to another folder below the root, or out of it."""
        every, waiting = [], [self.root]
        while waiting and len(every) < MOST_FOLDERS:
            folder = waiting.pop()
            every.append(folder)
            inside = [each for each in self._inside(folder) if each.is_dir()]
            for each in inside:
                if each.is_symlink():
                    self._leave_out(each, "a link to a folder, which is not followed")
            inside = [each for each in inside if not each.is_symlink()]
            if inside and len(folder.relative_to(self.root).parts) == DEEPEST:
                self._leave_out(folder, f"folders inside, being more than {DEEPEST} deep")
            else:
                waiting += inside
        if waiting:
            self._leave_out(waiting[-1], f"with others, as {MOST_FOLDERS:,} folders are the most")
        return sorted(every)

    def _inside(self, folder: Path) -> list[Path]:
        """What is in a folder and not hidden, by name."""
        try:
            return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
        except OSError as error:
            self._leave_out(folder, f"it cannot be read: {error.strerror}")
            return []

    def _folder(self, path: Path) -> Folder:
        name = "" if path == self.root else brief(path.relative_to(self.root))
        folder = Folder(name)
        for file in self._inside(path):
            if file.suffix not in MOST:
                continue
            try:
                self._read(file, folder)
            except FileError as error:
                self._leave_out(file, str(error).rstrip("."))
        return folder

    def _read(self, file: Path, folder: Folder) -> None:
        """Add what a file holds to its folder."""
        content, name = self._content(file), brief(file.name)
        if file.suffix == ".md":
            self.of_tables += len(content)
            if self.of_tables > MOST_OF_TABLES:
                raise FileError(
                    f"with it, there would be more than {MOST_OF_TABLES:,} bytes of .md"
                )
            folder.tables.append((name, content.decode(errors="replace")))
        elif file.suffix == ".png":
            check_picture(content)
            folder.pictures.append((name, content))
        elif rows := self._rows(content, file):
            folder.rows.append((name, rows))

    def _content(self, file: Path) -> bytes:
        """The bytes of a file below the root, or of one below it that is linked to."""
        if file.is_symlink():
            target = file.resolve() if file.exists() else None
            if target is None:
                raise FileError("a link that leads nowhere")
            if not target.is_relative_to(self.root):
                raise FileError("a link that leads out of the folder, which is not followed")
            if any(part.startswith(".") for part in target.relative_to(self.root).parts):
                raise FileError("a link to a hidden file, which is not followed")
        try:
            content = content_of(file, MOST[file.suffix])
        except FileError as error:
            raise FileError(str(error).removeprefix(f"{brief(file)} ")) from None
        if self.size + len(content) > MOST_IN_ALL:
            raise FileError(f"with it, there would be more than {MOST_IN_ALL:,} bytes in all")
        self.size += len(content)
        return content

    def _rows(self, content: bytes, file: Path) -> list[Row]:
        """The rows of a file, without lines that are no rows, such as the half of one that a killed
        run may have left."""
        rows, none = [], []
        for number, line in enumerate(content.splitlines(), 1):
            if not line.strip():
                continue
            if (row := _row(line)) is None:
                none.append(number)
            else:
                rows.append(row)
        if none:
            lines = "1 line that is" if len(none) == 1 else f"{len(none):,} lines that are"
            self._leave_out(file, f"{lines} no row, such as line {none[0]}")
        return rows

    def _leave_out(self, path: Path, why: str) -> None:
        self.left_out.append(f"{brief(path.relative_to(self.root))}: {why}.")


def _row(line: bytes) -> Row | None:
    """A line's row; None where it is none."""
    try:
        said = json_of(line, "")
    except FileError:
        return None
    return said if isinstance(said, dict) and len(said) <= MOST_FIELDS else None


def check_picture(content: bytes) -> None:
    """An error where content is no whole PNG, or one too large to be shown."""
    if len(content) < 33 or content[:8] != SIGNATURE or content[12:16] != b"IHDR":
        raise FileError("no PNG, whatever its name says")
    width, height = struct.unpack(">II", content[16:24])
    if b"IEND" not in content[-1_000:]:
        raise FileError("a PNG that is cut short")
    if not 0 < width * height <= MOST_PIXELS:
        raise FileError(f"a picture of {width:,} x {height:,} pixels")
