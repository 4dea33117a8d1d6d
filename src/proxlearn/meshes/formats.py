"""What the files look like inside: OBJ, STL, PLY, OFF, XYZ. A reader takes a file's content and
raises ValueError, with what is wrong, for content that is not whole."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

PLY_TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
    **{"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"},
}
PLY_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}


class Raw(NamedTuple):
    """What a file holds, unchecked."""

    vertices: np.ndarray  # (v, 3)
    polygons: Sequence[Sequence[int]] | np.ndarray  # rows of vertices, from 0
    normals: np.ndarray | None = None  # (v, 3), where the file has them


def obj(content: bytes) -> Raw:
    """Wavefront OBJ: only `v` and `f` lines count."""
    vertices, polygons = [], []
    for line in content.decode(errors="replace").replace("\\\n", " ").splitlines():
        words = line.partition("#")[0].split()
        if words and words[0] == "v":
            vertices.append(_point(words[1:]))
        elif words and words[0] == "f":
            corners = [_whole(word.partition("/")[0]) for word in words[1:]]
            # Counted from 1, or backwards from the last vertex so far; 0 is neither.
            polygons.append([c - 1 if c > 0 else c + (len(vertices) if c else -1) for c in corners])
    return Raw(_rows(vertices), polygons)


def off(content: bytes) -> Raw:
    """OFF: a header, the counts, vertices, then faces that begin with their number of corners."""
    text = content.decode(errors="replace")
    lines = [words for line in text.splitlines() if (words := line.partition("#")[0].split())]
    header = re.match(r"(ST)?C?N?OFF", lines[0][0]) if lines else None
    if header is None:
        raise ValueError("it does not begin with OFF")
    # The counts may stand behind the header, even without a space.
    glued = [lines[0][0][header.end() :], *lines[0][1:]]
    lines = [[word for word in glued if word], *lines[1:]] if any(glued) else lines[1:]
    if not lines or len(lines[0]) < 2:
        raise ValueError("the numbers of vertices and faces are missing")
    v, f = _whole(lines[0][0]), _whole(lines[0][1])
    if min(v, f) < 0:
        raise ValueError(f"it promises {v} vertices and {f} faces")
    if len(lines) < 1 + v + f:
        raise ValueError(f"it is cut short: {v} vertices and {f} faces are promised")
    rows = lines[1 + v :][:f]
    polygons = [[_whole(word) for word in words[: _whole(words[0]) + 1]] for words in rows]
    if any(len(each) != each[0] + 1 for each in polygons):
        raise ValueError("a face has fewer corners than it says")
    return Raw(_rows([_point(words) for words in lines[1:][:v]]), [each[1:] for each in polygons])


def stl(content: bytes) -> Raw:
    """STL, binary or text: three corners of its own for every triangle."""
    count = int.from_bytes(content[80:84], "little")
    if content.lstrip()[:5] == b"solid" and len(content) != 84 + 50 * count:
        return _stl_text(content.decode(errors="replace"))
    if len(content) < 84:
        raise ValueError(f"it is cut short: it has {len(content)} bytes, and a header alone has 84")
    if len(content) < 84 + 50 * count:
        raise ValueError(
            f"it is cut short: {count:,} triangles do not fit into {len(content):,} bytes"
        )
    triangle = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("rest", "<u2")])
    corners = np.frombuffer(content, triangle, count, offset=84)["corners"]
    return Raw(corners.reshape(-1, 3).astype(float), np.arange(3 * count).reshape(-1, 3))


def _stl_text(text: str) -> Raw:
    if "endsolid" not in text:
        raise ValueError("it is cut short: there is no `endsolid`")
    numbers = re.findall(r"^\s*vertex\s+(\S+)\s+(\S+)\s+(\S+)", text, re.MULTILINE)
    if len(numbers) != 3 * text.count("endfacet"):
        raise ValueError("not every facet has three vertices")
    vertices = [_point(each) for each in numbers]
    return Raw(_rows(vertices), np.arange(len(vertices)).reshape(-1, 3))


def ply(content: bytes) -> Raw:
    """PLY, text or binary: the elements `vertex` and `face`; without faces it is a cloud."""
    lines, body = _ply_header(content)
    kind = next((words[1] for words in lines if words[0] == "format"), "")
    if kind not in PLY_ORDERS:
        raise ValueError(f"its format is {kind!r}, which is not one of {', '.join(PLY_ORDERS)}")
    elements: list[tuple[str, int, list[list[str]]]] = []
    for words in lines:
        if words[0] == "element":
            elements.append((words[1], _whole(words[2]), []))
        elif words[0] == "property" and elements:
            elements[-1][2].append(words[1:])
    values = _PlyValues(body, PLY_ORDERS[kind])
    tables = {name: values.element(count, properties) for name, count, properties in elements}
    if "tristrips" in tables:
        raise ValueError("it holds strips of triangles: save it with faces")
    vertex, face = tables.get("vertex", {}), tables.get("face", {})
    if not {"x", "y", "z"} <= vertex.keys():
        raise ValueError("its vertices have no x, y and z")
    polygons = face.get("vertex_indices", face.get("vertex_index"))
    if face and polygons is None:
        raise ValueError("its faces have no vertex_indices")
    normals = _columns(vertex, "nx ny nz") if {"nx", "ny", "nz"} <= vertex.keys() else None
    return Raw(_columns(vertex, "x y z"), [] if polygons is None else polygons, normals)


def _columns(table: dict, names: str) -> np.ndarray:
    return np.stack([np.asarray(table[name], float) for name in names.split()], -1)


def _ply_header(content: bytes) -> tuple[list[list[str]], bytes]:
    """The lines of the header, as words, and what comes after it."""
    end = re.search(rb"^end_header[ \t]*\r?\n", content, re.MULTILINE)
    if content[:3] != b"ply" or end is None:
        raise ValueError("it has no header from `ply` to `end_header`")
    lines = content[: end.start()].decode(errors="replace").splitlines()
    return [words for line in lines if len(words := line.split()) > 1], content[end.end() :]


class _PlyValues:
    """The numbers of a PLY file, taken from its beginning to its end."""

    def __init__(self, body: bytes, order: str):
        self.text = order == ""
        self.order = order
        self.body = _numbers(body) if self.text else np.frombuffer(body, np.uint8)
        self.at = 0

    def take(self, dtype: np.dtype, count: int) -> np.ndarray:
        """The next `count` values (text has no types)."""
        length = count if self.text else count * dtype.itemsize
        if count < 0:
            raise ValueError(f"it counts {count} of something")
        if self.at + length > len(self.body):
            raise ValueError("it is cut short: the header promises more")
        part = self.body[self.at : self.at + length]
        self.at += length
        return part if self.text else np.frombuffer(part.tobytes(), dtype)

    def element(self, count: int, properties: list[list[str]]) -> dict:
        """Columns by name; that of a list is a list of lists."""
        names = [words[-1] for words in properties]
        if not 0 <= count <= len(self.body):  # each takes a byte or a word at least
            raise ValueError(f"its header promises {count} rows, which are not there")
        if not any(words[0] == "list" for words in properties):
            types = np.dtype([(words[-1], self.dtype(words[0])) for words in properties])
            if self.text:
                table = self.take(types, count * len(names)).reshape(count, len(names))
                return dict(zip(names, table.T))
            table = self.take(types, count)
            return {name: table[name] for name in names}
        rows = [[self.value(words) for words in properties] for _ in range(count)]
        return {name: [row[k] for row in rows] for k, name in enumerate(names)}

    def value(self, words: list[str]) -> Any:
        """One property of one row: a number, or a list of them."""
        if words[0] != "list":
            return self.take(self.dtype(words[0]), 1)[0]
        length = int(self.take(self.dtype(words[1]), 1)[0])
        return self.take(self.dtype(words[2]), length).tolist()

    def dtype(self, name: str) -> np.dtype:
        if name not in PLY_TYPES:
            raise ValueError(f"it has a property of the unknown type {name!r}")
        return np.dtype(self.order + PLY_TYPES[name])


def _numbers(text: bytes) -> np.ndarray:
    try:
        return np.array(text.split(), float)
    except ValueError:
        raise ValueError("some words after its header are no numbers") from None


def xyz(content: bytes) -> np.ndarray:
    """Lines of as many numbers each."""
    lines = content.decode(errors="replace").splitlines()
    words_of_lines = (line.partition("#")[0].split() for line in lines)
    rows = [[_number(word) for word in words] for words in words_of_lines if words]
    if len({len(row) for row in rows}) > 1:
        raise ValueError("its lines do not have as many numbers each")
    return np.array(rows, float)


def _point(words: Sequence[str]) -> list[float]:
    if len(words) < 3:
        raise ValueError(f"a vertex has {len(words)} coordinates, not 3")
    return [_number(word) for word in words[:3]]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ValueError(f"{word[:20]!r} is no number") from None


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"{word[:20]!r} is no whole number") from None


def _rows(points: list[list[float]]) -> np.ndarray:
    return np.array(points, float).reshape(-1, 3)
