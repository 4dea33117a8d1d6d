"""Many taus: a file of them solved into a file, in bounded memory, by one process or several."""

import itertools
import json
import shutil
import time
import warnings
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from jaxtyping import Num
from numpy.lib import format as npy
from rich.console import Console
from torch import Tensor

from proxlearn.answers.solution_files import Digest, sealed
from proxlearn.answers.solutions import Solutions
from proxlearn.answers.starts import starting_points
from proxlearn.common.arrays import mapped_npy
from proxlearn.common.batch import Batch
from proxlearn.common.checks import count, path_of
from proxlearn.common.contents import brief, check_file
from proxlearn.common.files import whole_or_nothing, writable_folder, write_npz
from proxlearn.common.progress import progress_bar
from proxlearn.errors import FileError, InputError, RangeWarning
from proxlearn.gpu.parallel import Process
from proxlearn.operators.applying import points_at_once
from proxlearn.operators.operator import Operator
from proxlearn.operators.stream import chunks
from proxlearn.problems.base import Problem

# What is kept of solutions, where they have it.
KEPT = ("points", "inside", "values", "certificates", "quality")
MOST_BYTES = 1 << 40  # of a file of taus
LONGEST_LINE = 1 << 20  # characters of a tau as text
CHECKED = 1 << 20  # taus that are checked at once, before the work begins


def read_taus(path: str | Path, size: int) -> Num[np.ndarray, "i p"]:
    """The taus of a file, `size` numbers each: a .npy, left on disk, or lines of a .csv or .txt."""
    path, size = path_of(path, "file of taus"), count("size", size)
    readers = {".npy": _read_npy, ".csv": _read_text, ".txt": _read_text}
    if path.suffix not in readers:
        raise InputError(f"A file of taus ends in .npy, .csv or .txt, unlike {brief(path)}.")
    check_file(path, MOST_BYTES, "file of taus")
    taus = readers[path.suffix](path, size)
    if len(taus) == 0:
        raise InputError(f"{path} holds no taus: give at least one, {size} numbers.")
    return taus


def _read_npy(path: Path, size: int) -> np.ndarray:
    taus = mapped_npy(path, "a file of taus, as numpy.save writes it")
    if taus.dtype.kind not in "iuf" or taus.ndim != 2 or taus.shape[1] != size:
        raise InputError(
            f"{path} holds an array {brief(taus.shape)} of {brief(taus.dtype)}; expected numbers "
            f"(taus, {size})."
        )
    return taus


def _read_text(path: Path, size: int) -> np.ndarray:
    numbers = array("d")
    with path.open(errors="replace") as lines:
        for count in itertools.count(1):
            line = lines.readline(LONGEST_LINE)
            if not line:
                break
            words = line.partition("#")[0].replace(",", " ").split()
            try:
                tau = [float(word) for word in words]
            except ValueError:
                tau = []
            if words and (len(tau) != size or not all(map(isfinite, tau))):
                raise InputError(
                    f"Line {count} of {path} is {line.strip()[:50]!r}; expected {size} finite "
                    "numbers with commas or spaces between them."
                )
            numbers.extend(tau)
    return np.array(numbers).reshape(-1, size)


def solve_many(
    solve: Callable[[Batch, Tensor], Solutions],
    family: Operator | Problem,
    taus: Num[np.ndarray, "i p"],
    out: str | Path,
    process: Process,
    starts: int | Tensor = 1024,
    seed: int = 0,
) -> Path:
    """Solve every tau of a family into one .npz, which `Solutions.load` reads: tau (i, p), points
    (i, n, d), inside (i, n), the starts (n, d), which are the same for every tau, and, where
    solutions have them, values, certificates and quality (i, n). `solve` takes some taus and the
    starts; each process solves its share, and the first one puts them together."""
    out = Path(out)
    points = starting_points(family.space, starts, 1, seed, "cpu")[0]
    for _ in chunks(family.instances, taus, CHECKED):
        pass  # a bad tau is found before any work is done
    some = max(1, points_at_once() // len(points))
    chunk = process.share(-(-len(taus) // some))  # whole ones: the same numbers as by one process
    first, last = chunk.start * some, chunk.stop * some
    folders = [out.with_name(f".{out.name}.{k}.parts") for k in range(process.size)]
    with _folder_of_parts(folders[process.rank]) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)  # said already, of all taus
        own = chunks(family.instances, taus[first:last], some)
        stream = (solve(each, points) for each in own)
        _write_parts(folder, first, taus[first:last], stream, process.first)
        process.wait()
        if process.first:
            about = {"space": family.space.describe()}
            _put_together(_parts(folders), len(taus), points.numpy(), about, out)
        process.wait()
    return out


@contextmanager
def _folder_of_parts(folder: Path) -> Iterator[Path]:
    """A folder for the share of a process, next to the whole file; it is removed at the end."""
    shutil.rmtree(folder, ignore_errors=True)  # left by a job that was killed
    try:
        yield writable_folder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parts(folders: list[Path]) -> list[Path]:
    """The parts of every process, in the order of the taus."""
    for folder in folders:
        if not folder.is_dir():
            raise FileError(
                f"The solutions of another process are not at {folder}: processes on several "
                "machines need a folder that all of them see."
            )
    return [path for folder in folders for path in sorted(folder.iterdir())]


def _write_parts(
    folder: Path, first: int, taus: np.ndarray, stream: Iterator[Solutions], shown: bool
) -> None:
    """A file for each chunk of solutions, named by its first tau so that they sort."""
    started, done = time.perf_counter(), 0
    with progress_bar("solving", Console(stderr=True, quiet=not shown)) as bar:
        task = bar.add_task("solving", total=len(taus), said="")
        for solutions in stream:
            arrays = {name: getattr(solutions, name) for name in KEPT}
            part = {name: each.cpu().numpy() for name, each in arrays.items() if each is not None}
            part["tau"] = taus[done : done + len(solutions)].astype(np.float32)
            write_npz(folder / f"{first + done:015}.npz", part)
            done += len(solutions)
            rate = done / (time.perf_counter() - started)
            bar.update(task, completed=done, said=f"{rate:,.0f} taus/s")


def _put_together(
    parts: list[Path], count: int, starts: np.ndarray, about: dict[str, Any], out: Path
) -> None:
    """Write one file of the starts and of all parts, of which only one at a time is in memory. What
    is said of it comes last, since it has a checksum of the rest."""
    with np.load(parts[0]) as part:
        ends = {name: (part[name].dtype, part[name].shape[1:]) for name in part.files}
    digests = {"starts": Digest(starts.dtype, starts.shape).add(starts)}
    with whole_or_nothing(out) as temporary, ZipFile(temporary, "w") as whole:
        _put(whole, "starts", starts)
        for name, (dtype, shape) in ends.items():
            digests[name] = Digest(dtype, (count, *shape))
            header = {"descr": dtype.str, "fortran_order": False, "shape": (count, *shape)}
            with whole.open(f"{name}.npy", "w", force_zip64=True) as file:
                npy.write_array_header_1_0(file, header)
                for path in parts:
                    with np.load(path) as part:
                        digests[name].add(part[name])
                        file.write(part[name].tobytes())
        _put(whole, "about", np.array(json.dumps(sealed(about, digests))))


def _put(whole: ZipFile, name: str, array: np.ndarray) -> None:
    with whole.open(f"{name}.npy", "w") as file:
        npy.write_array(file, array)
