"""Meshes: OBJ, OFF, PLY and STL, packed ones, catalogs, with faces of vertices that are not there,
counts that are not true, and vertices at no place."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import proxlearn as px
from fuzzing._spoiled import (
    ODD_WORDS,
    bytes_spoiled,
    json_spoiled,
    npy_of,
    npy_spoiled,
    pick,
    words_spoiled,
)
from fuzzing.frame import Act, command, finite, quiet
from proxlearn.meshes.folder import Meshes

WHAT = "meshes (obj, off, ply, stl, packed, catalogs)"
CASES = 400
STARTS = 16
CORNERS = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 2.0) for z in (0.0, 3.0)])
SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
TRIANGLES = np.array([t for a, b, c, d in SIDES for t in ((a, b, c), (a, c, d))])
PLY = (  # headers that promise what is not there
    "element vertex 1000000000", "element vertex -1", "element face 4000000000", "element face -3",
    "property list char int vertex_indices", "element vertex 8\nelement x",
    "property list int double vertex_indices", "property float x", "format binary_little_endian",
)  # fmt: skip
ODD_LINES = {
    "obj": ("f 1 2 1000000000", "f -9 1 2", "f 0 0 0", "f 1", "v 1 2", "v nan 0 0", "v 1e200 0 0"),
    "off": ("1000000000 6 0", "-1 6 0", "8 1000000000 0", "OFF", "4 0 1 3", "1000000000 0 1 2"),
    "stl": ("vertex 1e39 0 0", "facet", "endsolid", "vertex 1 2", "endfacet", "vertex nan 0 0"),
    "ply": PLY,
}
KINDS = ("obj", "off", "stl", "ply", "binary.stl", "binary.stl", "binary.ply", "binary.ply")
KINDS += ("npz", "npz", "txt", "split")


def prepare(folder: Path) -> Any:
    texts = {"obj": "".join(_obj()), "off": "".join(_off()), "stl": "".join(_stl())}
    texts["ply"] = _ply_header("ascii") + "".join(_off())[10:]
    operator = px.pretrained("symmetry", "cpu")
    (folder / "box.obj").write_text(texts["obj"])
    with quiet():
        command("symmetry", str(folder / "box.obj"), "--out", str(folder / "out"))  # imports all
    return texts, operator


def _obj() -> Iterator[str]:
    yield from (f"v {x} {y} {z}\n" for x, y, z in CORNERS)
    yield from ("f " + " ".join(str(k + 1) for k in side) + "\n" for side in SIDES)


def _off() -> Iterator[str]:
    yield "OFF\n8 6 0\n"
    yield from (f"{x} {y} {z}\n" for x, y, z in CORNERS)
    yield from ("4 " + " ".join(map(str, side)) + "\n" for side in SIDES)


def _stl() -> Iterator[str]:
    yield "solid box\n"
    for triangle in CORNERS[TRIANGLES]:
        yield " facet normal 0 0 0\n  outer loop\n"
        yield from (f"   vertex {x} {y} {z}\n" for x, y, z in triangle)
        yield "  endloop\n endfacet\n"
    yield "endsolid box\n"


def _ply_header(kind: str) -> str:
    said = f"ply\nformat {kind} 1.0\nelement vertex 8\nproperty float x\nproperty float y\n"
    said += "property float z\nelement face 6\nproperty list uchar int vertex_indices\n"
    return said + "end_header\n"


def _binary(kind: str) -> tuple[bytes, bytes]:
    """A header, and what comes after it."""
    if kind == "binary.stl":
        triangles = CORNERS[TRIANGLES].astype("<f4")
        rows = b"".join(bytes(12) + each.tobytes() + bytes(2) for each in triangles)
        return bytes(80) + len(triangles).to_bytes(4, "little"), rows
    sides = b"".join(b"\x04" + np.array(side, "<i4").tobytes() for side in SIDES)
    return _ply_header("binary_little_endian").encode(), CORNERS.astype("<f4").tobytes() + sides


def case(draw: np.random.Generator, prepared: Any, folder: Path) -> tuple[str, Act]:
    texts, operator = prepared
    kind = pick(draw, KINDS)
    if kind in texts:
        content = _text(texts[kind], ODD_LINES[kind], draw)
    elif kind.startswith("binary"):
        content = _spoiled_binary(*_binary(kind), draw)
    elif kind == "txt":
        content = _catalog(folder, texts, draw)
    else:
        content = _packed(draw)
    file = folder / f"mesh.{kind.replace('split', 'npz')}"
    file.write_bytes(content)
    about = f"{file.name}: {content[:300]!r}"
    if not draw.integers(10):
        typed = ("symmetry", file.name, "--starts", str(STARTS), "--out", "out")
        return f"{' '.join(typed)}: {about}", lambda: command(*typed)
    if kind == "split":
        index = json_spoiled([{"split": "train"}, {"split": "test"}], draw)
        (folder / "index.json").write_text(index, errors="replace")
        return f"{index[:300]} beside {about}", lambda: _every(file, "train")
    if kind in ("npz", "txt"):
        return about, lambda: _every(file)
    return about, lambda: symmetric(file, operator)


def _text(text: str, odd: tuple[str, ...], draw: np.random.Generator) -> bytes:
    how = draw.integers(4)
    if how == 0:
        return bytes_spoiled(text.encode(), draw)
    if how == 1:
        return words_spoiled(text, draw).encode(errors="replace")
    lines = text.splitlines()
    for _ in range(draw.integers(1, 3)):
        k = int(draw.integers(len(lines)))
        lines[k : k + int(draw.integers(2))] = [pick(draw, odd)]
    return "\n".join(lines).encode()


def _spoiled_binary(header: bytes, body: bytes, draw: np.random.Generator) -> bytes:
    """The header spoiled, or what comes after it, or a number of single precision in that."""
    how = draw.integers(4)
    if how == 0 and header[:3] == b"ply":
        return _text(header.decode(), PLY, draw) + b"\n" + body
    if how == 0:
        return header[:80] + int(pick(draw, (0, 2**32 - 1, 1, 10**7))).to_bytes(4, "little") + body
    if how == 1:
        return bytes_spoiled(header + body, draw)
    at = 4 * int(draw.integers(len(body) // 4))
    number = pick(draw, (np.nan, np.inf, -3e38, 1e-45, 1e30, 0.0, 5.0))
    spoiled = body[:at] + np.float32(number).tobytes() + body[at + 4 :]
    return header + (spoiled if how == 2 else bytes_spoiled(spoiled, draw))


def _packed(draw: np.random.Generator) -> bytes:
    """Two meshes, with one of the arrays spoiled, or the whole file."""
    two = np.concatenate([CORNERS, CORNERS]), np.concatenate([TRIANGLES, TRIANGLES])
    offsets = np.array([0, 8, 16]), np.array([0, 12, 24])
    names = ("vertices", "faces", "vertex_offset", "face_offset")
    arrays = dict(zip(names, (*two, *offsets)))
    if draw.integers(2):
        file = BytesIO()
        (np.savez_compressed if draw.integers(2) else np.savez)(file, **arrays)  # pyright: ignore
        return bytes_spoiled(file.getvalue(), draw)
    spoiled, parts = pick(draw, names), {}
    for name, array in arrays.items():
        if name != spoiled:
            parts[name] = npy_of(array)
        elif draw.integers(2):
            parts[name] = npy_spoiled(array, draw)
        else:
            odd = array.astype(float)
            odd.flat[draw.integers(odd.size)] = pick(draw, (-1, 10**9, 1e300, np.nan, 3))
            parts[name] = npy_of(odd if draw.integers(2) else odd.astype(np.int64))
    return zipped(parts)


def zipped(parts: dict[str, bytes]) -> bytes:
    """Files of arrays in one."""
    from zipfile import ZipFile

    file = BytesIO()
    with ZipFile(file, "w") as whole:
        for name, content in parts.items():
            whole.writestr(f"{name}.npy", content)
    return file.getvalue()


def _catalog(folder: Path, texts: dict[str, str], draw: np.random.Generator) -> bytes:
    """Lines of a catalog, some of which lead to no mesh."""
    for kind, text in texts.items():
        (folder / f"box.{kind}").write_text(text)
    lines = [f"box.{kind}" for kind in texts]
    for _ in range(draw.integers(1, 4)):
        odd = (*ODD_WORDS, "../../etc/passwd", "/dev/zero", ".", "x" * 300 + ".obj", "\0.obj")
        lines[int(draw.integers(len(lines)))] = pick(draw, odd)
    return "\n".join(lines).encode(errors="replace")


def _every(file: Path, split: str | None = None) -> None:
    meshes = Meshes(file, split)
    for _, mesh in meshes:
        finite(mesh.vertices)
    assert meshes.report()


def symmetric(file: Path, operator: px.Operator) -> None:
    """The symmetries of the shape in a file, all of whose numbers have to be finite."""
    found = px.symmetries(file, operator, starts=STARTS)
    finite(*_numbers(found.to_json()))


def _numbers(said: Any) -> Iterator[float]:
    if isinstance(said, dict | list):
        for each in said.values() if isinstance(said, dict) else said:
            yield from _numbers(each)
    elif isinstance(said, float):
        yield said
