"""Meshes: cleaning, scaling, points on the surface; their files, whole and damaged; folders."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from proxlearn.common import memory
from proxlearn.common.seeds import generator_for
from proxlearn.errors import FileError, InputError
from proxlearn.meshes.folder import Meshes
from proxlearn.meshes.mesh import Cloud, Mesh, areas, cleaned, face_normals, sampled, scaled
from proxlearn.meshes.parts import part
from proxlearn.meshes.read import read_mesh, read_packed, read_shape

CORNERS = np.array([(0, 0, 0), (2, 0, 0), (2, 1, 0), (0, 1, 0), (0, 0, 3)], float)
# A pyramid on a rectangle: one polygon of four corners, four triangles.
POLYGONS = [(0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)]
TRIANGLES = [(0, 3, 2), (0, 2, 1), *POLYGONS[1:]]
AREA = 2 + 3 + np.sqrt(13) / 2 + np.sqrt(10) + 1.5


def mesh_of(vertices, faces) -> Mesh:
    return Mesh(torch.tensor(vertices).double(), torch.tensor(faces).long().reshape(-1, 3))


PYRAMID = mesh_of(CORNERS, TRIANGLES)


def obj_text() -> str:
    vertices = "".join(f"v {x} {y} {z} # a corner\n" for x, y, z in CORNERS)
    faces = "".join(f"f {' '.join(f'{k + 1}/7/{k + 1}' for k in p)}\n" for p in POLYGONS[:3])
    backwards = "".join(f"f {' '.join(str(k - 5) for k in p)}\n" for p in POLYGONS[3:])
    return f"# a pyramid\no pyramid\n{vertices}vn 0 0 1\n{faces}usemtl steel\n{backwards}"


def off_text(header: str = "OFF\n") -> str:
    vertices = "".join(f"{x} {y} {z}\n" for x, y, z in CORNERS)
    faces = "".join(f"{len(p)} {' '.join(map(str, p))} 255 0 0\n" for p in POLYGONS)
    return f"{header}5 5 0\n\n# corners\n{vertices}{faces}"


def stl_text() -> str:
    loops = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join("vertex {} {} {}\n".format(*CORNERS[k]) for k in each)
        + "endloop\nendfacet\n"
        for each in TRIANGLES
    )
    return f"solid pyramid\n{loops}endsolid pyramid\n"


def stl_bytes(header: bytes = b"binary") -> bytes:
    facets = [struct.pack("<12fH", 0, 0, 0, *CORNERS[list(t)].ravel(), 0) for t in TRIANGLES]
    return header.ljust(80) + struct.pack("<I", len(facets)) + b"".join(facets)


def ply_bytes(kind: str = "ascii", faces: bool = True) -> bytes:
    """With a property and an element that nobody asked for."""
    order = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[kind]
    header = f"ply\nformat {kind} 1.0\ncomment a pyramid\nelement vertex 5\n"
    header += "".join(f"property {t} {n}\n" for t, n in [("float", "x"), ("double", "y")])
    header += "property float z\nproperty uchar red\nelement mark 2\nproperty short here\n"
    header += "element face 5\nproperty list uchar int vertex_indices\n" if faces else ""
    rows = [("fdfB", (*corner, 9)) for corner in CORNERS] + [("h", (-3,))] * 2
    rows += [(f"B{len(p)}i", (len(p), *p)) for p in POLYGONS] if faces else []
    if order:
        body = b"".join(struct.pack(order + code, *values) for code, values in [
            (code, [int(v) if c in "Bhi" else v for c, v in zip(_codes(code), values)])
            for code, values in rows
        ])  # fmt: skip
    else:
        body = "".join(" ".join(map(str, values)) + "\n" for _, values in rows).encode()
    return f"{header}end_header\n".encode() + body


def _codes(code: str) -> str:
    """`B4i` as `Biiii`."""
    return code if not code[1:2].isdigit() else code[0] + code[-1] * int(code[1:-1])


FILES = {
    "a.obj": obj_text().encode(),
    "a.off": off_text().encode(),
    "glued.off": off_text("OFF").encode(),
    "colours.off": off_text("COFF\n").encode(),
    "text.stl": stl_text().encode(),
    "binary.stl": stl_bytes(),
    "solid.STL": stl_bytes(b"solid in name only"),
    "text.ply": ply_bytes(),
    "little.ply": ply_bytes("binary_little_endian"),
    "big.ply": ply_bytes("binary_big_endian"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_mesh(name: str, tmp_path: Path):
    (tmp_path / name).write_bytes(FILES[name])
    mesh = read_mesh(tmp_path / name)
    assert mesh.vertices.dtype == torch.float64
    assert mesh.vertices[mesh.faces].tolist() == CORNERS[TRIANGLES].tolist()
    assert cleaned(mesh).vertices.shape == (5, 3)
    assert float(areas(mesh).sum()) == pytest.approx(AREA)


DAMAGED = {
    "no corner.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1\n", "2 coordinates"),
    "short face.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2", "fewer than three corners"),
    "far.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", "not among the 3"),
    "zero.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 0 1 2\n", "not among the 3"),
    "words.obj": (b"v 0 0 zero\n", "'zero' is no number"),
    "empty.obj": (b"", "0 vertices and no faces"),
    "cut before its faces.obj": (obj_text().partition("vn")[0].encode(), "no faces"),
    "empty.stl": (stl_bytes()[:80] + bytes(4), "no faces"),
    "other.ply": (ply_bytes().replace(b"vertex_indices", b"something"), "no vertex_indices"),
    "picture.off": (b"\x89PNG\r\n", "does not begin with OFF"),
    "short.off": (off_text().encode()[:-40], "cut short"),
    "bare.off": (b"OFF\n", "are missing"),
    "short.stl": (stl_bytes()[:-20], "cut short"),
    "tiny.stl": (b"abc", "cut short"),
    "short text.stl": (stl_text()[:-40].encode(), "endsolid"),
    "lost.stl": (stl_text().replace("vertex 0.0 0.0 3.0\n", "", 1).encode(), "three vertices"),
    "short.ply": (ply_bytes("binary_little_endian")[:-3], "cut short"),
    "short text.ply": (ply_bytes()[:-9], "cut short"),
    "headless.ply": (ply_bytes()[4:], "no header"),
    "strange.ply": (ply_bytes().replace(b"double", b"quadruple"), "unknown type 'quadruple'"),
    "format.ply": (ply_bytes().replace(b"ascii", b"morse"), "'morse'"),
    "flat.ply": (ply_bytes().replace(b"float z", b"float w"), "no x, y and z"),
    "many.ply": (ply_bytes().replace(b"face 5", b"face 4000000000"), "which are not there"),
    "less.ply": (ply_bytes().replace(b"face 5", b"face -5"), "which are not there"),
    "words.ply": (ply_bytes()[:-4] + b"a\n", "are no numbers"),
    "back.ply": (
        ply_bytes("binary_big_endian").replace(b"list uchar int", b"list char int")[:-17]
        + b"\xff" * 17,
        "it counts -1",
    ),
    "half.ply": (ply_bytes()[:-2] + b"0.5\n", "not whole"),
    "less.off": (off_text().replace("5 5", "-5 5").encode(), "promises -5 vertices"),
    "far beyond.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 1000000000\n", "not among the 3"),
    "wide.xyz": (b"0 0 0 1\n", "not \\(1, 4\\)"),
    "empty.xyz": (b"# no points", "not \\(0,\\)"),
    "short.xyz": (b"0 0 0\n0 0", "as many numbers each"),
    "nan.xyz": (b"0 0 nan\n", "not numbers"),
    "text.npy": (b"0 0 0\n", "no header of a .npy"),
    "part.step": (b"ISO-10303-21;", "of no kind that can be read"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_told_in_a_sentence_with_its_name(name: str, tmp_path: Path):
    content, reason = DAMAGED[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=reason) as caught:
        read_shape(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_mesh_that_is_too_large_for_the_memory_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(memory, "free", lambda device: 1e6)
    (tmp_path / "a.obj").write_bytes(b"v 0 0 0\n" * 20_000)
    with pytest.raises(InputError, match=r"a\.obj, 160,000 bytes, would need .* a coarser mesh"):
        read_mesh(tmp_path / "a.obj")


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(FileError, match=r"no file at .*lost.obj"):
        read_mesh(tmp_path / "lost.obj")


def test_clouds_of_points(tmp_path: Path):
    rows = np.hstack((CORNERS, 2 * np.eye(5, 3) + [(0, 0, 1)] * 5))
    np.savetxt(tmp_path / "three.xyz", CORNERS)
    np.savetxt(tmp_path / "six.xyz", rows)
    np.save(tmp_path / "three.npy", CORNERS.astype(np.float32))
    np.save(tmp_path / "six.npy", rows)
    (tmp_path / "a.ply").write_bytes(ply_bytes(faces=False))
    for file in tmp_path.iterdir():
        cloud = read_shape(file)
        assert isinstance(cloud, Cloud)
        assert cloud.points.tolist() == CORNERS.tolist()
        if file.stem == "six":
            assert cloud.normals is not None
            torch.testing.assert_close(cloud.normals.norm(dim=1), torch.ones(5).double())
        else:
            assert cloud.normals is None
        with pytest.raises(FileError, match="5 points and no faces"):
            read_mesh(file)


def test_cleaning_leaves_what_has_an_area_once():
    vertices = [*CORNERS.tolist(), [9.0, 9, float("nan")], [0.0, 0, 0], [1.0, 0, 0]]
    again = [(2, 0, 3), (6, 3, 2)]  # of the first face: turned, and with the corner's double
    thin = [(0, 0, 1), (0, 6, 1), (0, 7, 1)]
    mesh = cleaned(mesh_of(vertices, [*TRIANGLES, *again, *thin]))
    assert len(mesh.faces) == len(TRIANGLES)
    assert mesh.vertices[mesh.faces].tolist() == CORNERS[TRIANGLES].tolist()
    assert mesh.vertices.shape == (5, 3)


@pytest.mark.parametrize("size", [1e-28, 1.0, 1e28])
def test_cleaning_does_not_depend_on_the_unit(size: float):
    mesh = cleaned(Mesh(PYRAMID.vertices * size, PYRAMID.faces))
    assert len(mesh.faces) == len(TRIANGLES)
    small, _, was = scaled(mesh)
    assert was == pytest.approx(3 * size)
    torch.testing.assert_close(small.vertices, scaled(cleaned(PYRAMID))[0].vertices)


def test_what_no_cleaning_can_mend():
    nan = CORNERS.copy()
    nan[4, 2] = np.nan
    with pytest.raises(InputError, match="1 of 5 vertices are not numbers"):
        cleaned(mesh_of(nan, TRIANGLES))
    with pytest.raises(InputError, match="no triangles"):
        cleaned(mesh_of(CORNERS, []))
    with pytest.raises(InputError, match="no triangles"):
        cleaned(mesh_of(CORNERS, [(0, 0, 1)]))
    with pytest.raises(InputError, match="no triangles"):
        cleaned(mesh_of(np.ones((3, 3)), [(0, 1, 2)]))
    with pytest.raises(InputError, match="name the vertices 0 to 5"):
        cleaned(mesh_of(CORNERS, [(0, 1, 5)]))
    for size in (1e-40, 1e40, 1e308):
        with pytest.raises(InputError, match="its scale must be wrong"):
            cleaned(mesh_of((CORNERS - 1.5) * size, TRIANGLES))
    with pytest.raises(InputError, match="no size"):
        scaled(mesh_of(np.ones((3, 3)), [(0, 1, 2)]))


def test_a_scaled_mesh_has_its_box_at_the_origin_and_can_be_put_back():
    far = Mesh(PYRAMID.vertices + 1e6, PYRAMID.faces)
    mesh, center, size = scaled(far)
    assert mesh.vertices.amin(0).tolist() == pytest.approx([-1 / 3, -1 / 6, -1 / 2])
    assert mesh.vertices.amax(0).tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 2])
    torch.testing.assert_close(mesh.vertices.double() * size + center, far.vertices)


def test_points_are_spread_by_area_on_the_surface():
    cloud = sampled(PYRAMID, 20_000, generator_for(0, "points"))
    assert cloud.normals is not None
    base = cloud.points[:, 2].abs() < 1e-12
    assert float(base.double().mean()) == pytest.approx(2 / AREA, abs=0.01)
    torch.testing.assert_close(
        cloud.points[base].mean(0), torch.tensor([1, 0.5, 0]).double(), atol=0.03, rtol=0
    )
    assert cloud.normals[base].unique(dim=0).tolist() == [[0, 0, -1]]
    slanted = (cloud.points[:, 0] / 2 + cloud.points[:, 2] / 3 - 1).abs() < 1e-9
    outward = torch.tensor([3, 0, 2]).double() / np.sqrt(13)
    torch.testing.assert_close(cloud.normals[slanted][0], outward)


def test_normals_look_outward():
    expected = [(0, 0, -1), (0, 0, -1), (0, -1, 0)]
    assert face_normals(PYRAMID)[:3].tolist() == [list(each) for each in expected]


def write_packed(path: Path, meshes: list[Mesh]) -> Path:
    np.savez(
        path,
        vertices=np.concatenate([m.vertices.numpy() for m in meshes]).astype(np.float32),
        faces=np.concatenate([m.faces.numpy() for m in meshes]).astype(np.uint16),
        vertex_offset=np.cumsum([0, *(len(m.vertices) for m in meshes)]),
        face_offset=np.cumsum([0, *(len(m.faces) for m in meshes)]),
    )
    return path


def test_packed_meshes_and_their_splits(tmp_path: Path):
    other = part("nut", generator_for(0, "nut")).mesh
    path = write_packed(tmp_path / "meshes.npz", [PYRAMID, other, PYRAMID])
    read = read_packed(path)
    assert [len(mesh.faces) for mesh in read] == [6, len(other.faces), 6]
    torch.testing.assert_close(read[1].vertices.float(), other.vertices)
    splits = '[{"split": "train"}, {"split": "test"}, {"split": "train"}]'
    (tmp_path / "index.json").write_text(splits)
    assert [name[-2:] for name, _ in Meshes(path, "train")] == [":0", ":2"]
    assert len(Meshes(path)) == 3
    for wrong, said in ((splits[:-20] + "]", "JSON"), ('[{"a": 1}]', "does not say the split")):
        (tmp_path / "index.json").write_text(wrong)
        with pytest.raises(FileError, match=said):
            Meshes(path, "train")


def test_packed_files_that_are_none(tmp_path: Path):
    with pytest.raises(FileError, match=r"no file at .*lost\.npz"):
        read_packed(tmp_path / "lost.npz")
    np.savez(tmp_path / "a.npz", vertices=CORNERS)
    with pytest.raises(FileError, match="it has no faces, vertex_offset, face_offset"):
        read_packed(tmp_path / "a.npz")
    whole = dict(np.load(write_packed(tmp_path / "b.npz", [PYRAMID])))
    np.savez(tmp_path / "b.npz", **(whole | {"vertex_offset": np.array([0, 7])}))
    with pytest.raises(FileError, match="offsets do not fit"):
        read_packed(tmp_path / "b.npz")
    for name, array in (("faces", whole["faces"][:, 0]), ("vertices", np.array([["a"] * 3]))):
        np.savez(tmp_path / "d.npz", **(whole | {name: array}))
        with pytest.raises(FileError, match=r"d\.npz cannot be read as packed meshes: it"):
            read_packed(tmp_path / "d.npz")
    (tmp_path / "c.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:50])
    with pytest.raises(FileError, match=r"c.npz cannot be read"):
        read_packed(tmp_path / "c.npz")


def fill(folder: Path) -> Path:
    (folder / "train" / "pyramids").mkdir(parents=True)
    (folder / "train" / "pyramids" / "1.obj").write_text(obj_text())
    (folder / "train" / "pyramids" / "2.stl").write_bytes(stl_bytes())
    (folder / "train" / "flat.obj").write_text("v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n")
    (folder / "train" / "short.stl").write_bytes(stl_bytes()[:-20])
    (folder / "train" / "notes.doc").write_text("not a mesh")
    (folder / "train_catalog.txt").write_text("train/pyramids/1.obj\n\ntrain/lost.obj\n")
    return folder


def test_a_folder_gives_its_meshes_and_says_what_it_skipped(tmp_path: Path):
    meshes = Meshes(fill(tmp_path))
    names = [Path(name).name for name, mesh in meshes if mesh.vertices.shape == (5, 3)]
    assert names == ["1.obj", "2.stl"]
    assert len(meshes) == 4
    assert {Path(name).name for name in meshes.skipped} == {"flat.obj", "short.stl"}
    assert meshes.report().startswith("2 of 4 meshes were skipped. 1 such as ")
    assert "no triangles" in meshes.report()
    assert "cut short" in meshes.report()


def test_a_catalog_gives_its_meshes(tmp_path: Path):
    fill(tmp_path)
    for meshes in (Meshes(tmp_path, "train"), Meshes(tmp_path / "train_catalog.txt")):
        assert [Path(name).name for name, _ in meshes] == ["1.obj"]
        assert len(meshes.skipped) == 1
        assert "There is no file at" in meshes.report()
    good = Meshes(tmp_path / "train" / "pyramids")
    assert len(list(good)) == 2
    assert good.report() == "All 2 meshes can be used."


def test_places_without_meshes(tmp_path: Path):
    with pytest.raises(FileError, match=r"nothing at .*test_catalog.txt"):
        Meshes(fill(tmp_path), "test")
    with pytest.raises(FileError, match="no catalog"):
        Meshes(tmp_path / "train" / "notes.doc")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="There are no meshes"):
        Meshes(tmp_path / "empty")


@pytest.mark.skipif("PROXLEARN_MESHES" not in os.environ, reason="PROXLEARN_MESHES is not set")
def test_real_meshes_can_be_used():
    """PROXLEARN_MESHES is a folder with meshes.npz, index.json and, in obj, catalogs of files."""
    folder = Path(os.environ["PROXLEARN_MESHES"])
    files = Meshes(folder / "obj", "test")
    assert all(scaled(mesh)[2] == pytest.approx(1.0, abs=1e-4) for _, mesh in files)
    assert not files.skipped
    packed = Meshes(folder / "meshes.npz", "test")
    some = [cleaned(get()) for _, get in packed.sources[:50]]
    assert all(scaled(mesh)[2] == pytest.approx(1.0, abs=1e-4) for mesh in some)
