"""Files of arrays that anyone may have written: a header is believed as far as the file goes."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

import proxlearn as px
from proxlearn.common import memory
from proxlearn.common.arrays import mapped_npy, read_npy, read_npz
from proxlearn.instances._graph_files import read_graph

GOOD = np.arange(12.0).reshape(3, 4)


def npy(path: Path, header: str, content: bytes = b"") -> Path:
    said = header.encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(said).to_bytes(2, "little") + said + content)
    return path


@pytest.mark.parametrize("kind", [">f8", "<f4", ">i2", "u1", "f2", "f16", "?"])
def test_every_kind_of_real_number_is_read(kind: str, tmp_path: Path):
    array = np.asfortranarray(GOOD).astype(kind)
    np.save(tmp_path / "a.npy", array)
    read = read_npy(tmp_path / "a.npy", "numbers")
    assert read.dtype.isnative
    assert read.dtype.itemsize <= 8
    np.testing.assert_array_equal(read, array.astype(read.dtype))
    assert read.flags.writeable


@pytest.mark.parametrize(
    ("shape", "kind", "said"),
    [
        ((10**9, 10**6), "<f8", "8,000,000,000,000,000 bytes, and 96 follow"),
        ((10**30,), "<f8", "which there cannot be"),
        ((-1, 3), "<f8", "which there cannot be"),
        ((0, 10**30), "<f8", "which there cannot be"),
        ((4, 4), "<f8", "128 bytes, and 96 follow"),
        ((3, 4), "|O", "holds object, not numbers"),
        ((3, 4), "<c8", "holds complex64, not real numbers"),
        ((3, 4), "<U0", "not numbers"),
        ((1.5,), "<f8", "no header"),
        (None, "<f8", "no header"),
        ("(" * 500, "<f8", "no header"),
    ],
)
def test_a_header_that_lies_is_said(shape: object, kind: str, said: str, tmp_path: Path):
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}"
    file = npy(tmp_path / "a.npy", header, GOOD.tobytes())
    with pytest.raises(px.FileError, match=rf"a\.npy cannot be read as numbers: .*{said}"):
        read_npy(file, "numbers")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as whole:
        whole.write(file, "a.npy")
    if "complex" not in said:
        with pytest.raises(px.FileError, match=f"cannot be read as numbers: .*{said}"):
            read_npz(tmp_path / "a.npz", "numbers", ["a"])
        with pytest.raises(px.FileError, match=f"cannot be read as numbers: .*{said}"):
            mapped_npy(file, "numbers")


def test_a_packed_file_gives_its_arrays_or_says_what_is_missing(tmp_path: Path):
    np.savez_compressed(tmp_path / "a.npz", good=GOOD, words=np.array(["a", "bc"]))
    read = read_npz(tmp_path / "a.npz", "arrays", ["good", "words"])
    assert (read["good"] == GOOD).all()
    assert read["words"].tolist() == ["a", "bc"]
    with pytest.raises(px.FileError, match="it has no other"):
        read_npz(tmp_path / "a.npz", "arrays", ["good", "other"])
    content = (tmp_path / "a.npz").read_bytes()
    for cut in (0, 10, len(content) // 2):
        (tmp_path / "a.npz").write_bytes(content[:cut])
        with pytest.raises(px.FileError, match="cannot be read as arrays"):
            read_npz(tmp_path / "a.npz", "arrays", ["good"])


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    import os

    os.mkfifo(tmp_path / "a.npy")
    for read in (read_npy, mapped_npy):
        with pytest.raises(px.FileError, match="a pipe or a device"):
            read(tmp_path / "a.npy", "numbers")


def test_a_graph_that_is_too_large_for_the_memory_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A matrix of 10,000 vertices takes 400 MB, and solving some such."""
    monkeypatch.setattr(memory, "free", lambda device: 2e9)
    (tmp_path / "a.txt").write_text("10000 1\n1 2 1\n")
    with pytest.raises(
        px.InputError, match=r"10,000 vertices.* about 3\.2 GB .* are 1\.6 GB: give"
    ):
        read_graph(tmp_path / "a.txt")
    (tmp_path / "b.edgelist").write_text("".join(f"{k} {k + 1}\n" for k in range(20_000)))
    with pytest.raises(px.FileError, match=r"20,001 vertices.* 20,000 vertices are the most"):
        read_graph(tmp_path / "b.edgelist")
