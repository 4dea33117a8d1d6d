"""Many meshes, one after the other: of a folder, of a catalog, or packed into one file."""

from collections.abc import Callable, Iterator
from pathlib import Path

from proxlearn.common.contents import content_of, json_of, text_of
from proxlearn.errors import FileError, ProxlearnError
from proxlearn.meshes.mesh import Mesh, cleaned
from proxlearn.meshes.read import FORMATS, read_mesh, read_packed

Source = tuple[str, Callable[[], Mesh]]  # a mesh's name, and how to get it


class Meshes:
    """The cleaned meshes at a path, with their names, read as they are asked for. The path is

    * a folder: its mesh files, also those of folders inside;
    * a catalog (.txt): a path in each line, relative to the catalog's folder;
    * packed meshes (.npz).

    With a `split` ("train" or "test"), those of the folder's `train_catalog.txt` or
    `test_catalog.txt`, or those that `index.json` beside packed meshes puts there. Meshes that
    cannot be used are left out, and `skipped` then says why, by name.
    """

    def __init__(self, path: str | Path, split: str | None = None):
        self.sources = _sources(Path(path), split)
        self.skipped: dict[str, str] = {}
        if not self.sources:
            raise FileError(f"There are no meshes at {path}: give files of {', '.join(FORMATS)}.")

    def __len__(self) -> int:
        """How many there are, before any is skipped."""
        return len(self.sources)

    def __iter__(self) -> Iterator[tuple[str, Mesh]]:
        self.skipped = {}
        for name, get in self.sources:
            try:
                mesh = cleaned(get())
            except ProxlearnError as error:
                self.skipped[name] = str(error).removeprefix(f"{name} ")
            else:
                yield name, mesh

    def report(self) -> str:
        """A sentence on what was skipped in the last round, and for which reasons."""
        if not self.skipped:
            return f"All {len(self)} meshes can be used."
        alike: dict[str, list[str]] = {}
        for name, reason in self.skipped.items():
            alike.setdefault(reason.replace(name, ""), []).append(f"{name}: {reason}")
        listed = " ".join(f"{len(each)} such as {each[0]}" for each in alike.values())
        return f"{len(self.skipped)} of {len(self)} meshes were skipped. {listed}"


def _sources(path: Path, split: str | None) -> list[Source]:
    if path.suffix.lower() == ".npz":
        return _packed(path, split)
    if split is not None:
        path = path / f"{split}_catalog.txt"
    if path.is_file():
        files = [path.parent / line for line in _lines(path)]
    elif path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix.lower() in FORMATS)
    else:
        raise FileError(f"There is nothing at {path}: give a folder, a catalog (.txt) or .npz.")
    return [(str(file), lambda file=file: read_mesh(file)) for file in files]


def _lines(catalog: Path) -> list[str]:
    if catalog.suffix.lower() != ".txt":
        raise FileError(f"{catalog} is no catalog: give a folder, a catalog (.txt) or .npz.")
    lines = text_of(catalog, "catalog").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _packed(path: Path, split: str | None) -> list[Source]:
    meshes = read_packed(path)
    kept = range(len(meshes)) if split is None else _of_split(path, len(meshes), split)
    return [(f"{path}:{k}", lambda mesh=meshes[k]: mesh) for k in kept]


def _of_split(path: Path, count: int, split: str) -> list[int]:
    """The packed meshes that `index.json` puts into the split."""
    index = path.with_name("index.json")
    try:
        splits = [each["split"] for each in json_of(content_of(index), index)]
    except (LookupError, TypeError) as error:
        raise FileError(f"{index} does not say the split of every mesh: {error!r}.") from None
    if len(splits) != count:
        raise FileError(f"{index} has {len(splits)} entries, but {path} has {count} meshes.")
    return [k for k, each in enumerate(splits) if each == split]
