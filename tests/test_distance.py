"""The distance to meshes: against each triangle's corners, edges and plane one by one, and each way
to search against trying all triangles."""

import importlib.util
import itertools
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from distance import near_surface, parts, torus
from hypothesis import given
from hypothesis import strategies as st
from making import imported_as_written
from torch import Tensor

from proxlearn.errors import InputError
from proxlearn.meshes import distance as surfaces
from proxlearn.meshes import grid
from proxlearn.meshes.distance import Surface
from proxlearn.meshes.mesh import Mesh, scaled
from proxlearn.meshes.parts import part
from proxlearn.meshes.triangles import nearest_of_all, offsets, triangles_of

MESHES = os.environ.get("PROXLEARN_MESHES")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
needs_igl = pytest.mark.skipif(not importlib.util.find_spec("igl"), reason="needs the package igl")


def soup(count: int, seed: int = 0, size: float = 0.3) -> Mesh:
    """Triangles anywhere in the unit cube around 0, which need not touch."""
    generator = torch.Generator().manual_seed(seed)
    center = torch.rand(count, 1, 3, generator=generator) - 0.5
    corners = center + size * (torch.rand(count, 3, 3, generator=generator) - 0.5)
    return Mesh(corners.flatten(0, 1), torch.arange(3 * count).view(-1, 3))


def anywhere(*shape: int, seed: int = 1) -> Tensor:
    return 2 * torch.rand(*shape, 3, generator=torch.Generator().manual_seed(seed)) - 1


def one_triangle(*corners: tuple[float, float, float]) -> Mesh:
    return Mesh(torch.tensor(corners, dtype=torch.float32), torch.tensor([[0, 1, 2]]))


FLAT = {
    "point": one_triangle((0.1, 0.2, 0.3), (0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
    "segment with a double end": one_triangle((0, 0, 0), (0.3, 0.4, 0), (0.3, 0.4, 0)),
    "segment, third corner between": one_triangle((0, 0, 0), (0.6, 0.8, 0), (0.3, 0.4, 0)),
    "segment, first corner between": one_triangle((0.3, 0.4, 0), (0.6, 0.8, 0), (0, 0, 0)),
    "sliver": one_triangle((-0.5, 0, 0), (0.5, 0, 0), (0, 1e-6, 0)),
    "thin": one_triangle((-0.5, 0, 0), (0.5, 0, 0), (0.1, 1e-3, 0)),
    "tiny": one_triangle((0, 0, 0), (1e-20, 0, 0), (0, 1e-20, 0)),
}


def by_hand(point: np.ndarray, corners: np.ndarray) -> float:
    """The least distance to the planes, lines and points through some of the corners, among those
    where the foot of the perpendicular is between the corners."""
    found = []
    for some in itertools.chain.from_iterable(
        itertools.combinations(range(3), k) for k in (1, 2, 3)
    ):
        first, *others = corners[list(some)]
        ways = np.array(others).reshape(-1, 3).T - first[:, None]
        share, *_ = np.linalg.lstsq(ways, point - first, rcond=1e-12)
        if (share >= 0).all() and share.sum() <= 1:
            found.append(np.linalg.norm(point - first - ways @ share))
    return min(found)


def least_by_hand(points: Tensor, mesh: Mesh) -> Tensor:
    corners = mesh.vertices.double().numpy()[mesh.faces.numpy()]
    return torch.tensor([min(by_hand(p, c) for c in corners) for p in points.double().numpy()])


def plain(surface: Surface, points: Tensor, which: Tensor) -> Tensor:
    """Distances by trying all triangles, without leaving any out, in 64 bits."""
    found = []
    for row, mesh in zip(points.double(), which.tolist()):
        triangles = triangles_of(
            Mesh(surface.meshes[mesh].vertices.double(), surface.meshes[mesh].faces)
        )
        found.append(surfaces.offsets(row[:, None], triangles[None]).norm(dim=-1).amin(-1))
    return torch.stack(found)


def distances(mesh: Mesh, points: Tensor, **how) -> Tensor:
    return Surface([mesh], "cpu", **how).distance(points[None], torch.tensor([0]))[0]


@pytest.fixture(params=["igl", "all"])
def search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With and without the package igl."""
    if request.param == "igl":
        pytest.importorskip("igl", reason="needs the package igl")
    monkeypatch.setattr(surfaces, "_there", lambda package: package == request.param)
    return request.param


# Exact distances.


@given(seed=st.integers(0, 1000), size=st.sampled_from([0.01, 0.3, 2.0]))
def test_the_distance_to_random_triangles(seed: int, size: float):
    mesh, points = soup(3, seed, size), anywhere(5, seed=seed)
    expected = least_by_hand(points, mesh)
    torch.testing.assert_close(distances(mesh, points).double(), expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", FLAT)
def test_triangles_that_are_segments_or_points(name: str, search: str):
    mesh = FLAT[name]
    near = mesh.vertices.mean(0) + 1e-3 * anywhere(20, seed=2)
    points = torch.cat((anywhere(20), near, mesh.vertices)).requires_grad_()
    found = distances(mesh, points)
    expected = least_by_hand(points.detach(), mesh)
    torch.testing.assert_close(found.double(), expected, atol=3e-7, rtol=0)
    (slope,) = torch.autograd.grad(found.sum(), points)
    lengths = slope.norm(dim=-1)[found > 1e-6]
    torch.testing.assert_close(lengths, torch.ones_like(lengths), atol=1e-5, rtol=0)


def test_flat_triangles_among_others(search: str):
    mesh = soup(30)
    for each in FLAT.values():
        faces = torch.cat((mesh.faces, each.faces + len(mesh.vertices)))
        mesh = Mesh(torch.cat((mesh.vertices, each.vertices)), faces)
    surface, which = Surface([mesh], "cpu"), torch.tensor([0])
    near = mesh.vertices[90:] + 0.02 * anywhere(20, len(mesh.vertices) - 90, seed=2)
    points = torch.cat((anywhere(100), near.flatten(0, 1)))[None]
    expected = plain(surface, points, which)
    torch.testing.assert_close(
        surface.distance(points, which).double(), expected, atol=1e-6, rtol=0
    )


def test_the_nearest_point_and_its_triangle(search: str):
    mesh, points = soup(40), anywhere(1, 100)
    found = Surface([mesh], "cpu").nearest(points, torch.tensor([0]))
    torch.testing.assert_close((points - found.point).norm(dim=-1), found.distance)
    for point, triangle in zip(found.point[0], found.triangle[0]):
        assert by_hand(point.double().numpy(), mesh.vertices[mesh.faces[triangle]].numpy()) < 1e-6


def test_on_the_surface_distance_and_gradient_are_zero(search: str):
    mesh = one_triangle((0, 0, 0), (1, 0, 0), (0, 1, 0))
    on_it = [(0, 0, 0), (1, 0, 0), (0.25, 0.25, 0), (0.5, 0.5, 0), (0.25, 0, 0)]
    points = torch.tensor(on_it).requires_grad_()
    found = distances(mesh, points)
    (slope,) = torch.autograd.grad(found.sum(), points)
    assert found.abs().max() == 0
    assert slope.abs().max() == 0


def test_first_and_second_derivatives(search: str):
    points = anywhere(1, 30).double().requires_grad_()
    surface, which = Surface([soup(20)], "cpu"), torch.tensor([0])

    def f(points: Tensor) -> Tensor:
        return surface.distance(points, which)

    assert torch.autograd.gradcheck(f, points, atol=1e-5)
    assert torch.autograd.gradgradcheck(f, points, atol=1e-4)


@given(points=st.integers(0, 300), triangles=st.integers(1, 80), seed=st.integers(0, 100))
def test_no_triangle_that_matters_is_left_out(points: int, triangles: int, seed: int):
    x, y = anywhere(points, seed=seed), triangles_of(soup(triangles, seed))
    squares = surfaces.offsets(x[:, None], y[None]).square().sum(-1)
    found = squares.gather(-1, nearest_of_all(x, y)[:, None])[:, 0]
    torch.testing.assert_close(found, squares.amin(-1), atol=1e-7, rtol=1e-5)


def test_a_triangle_behind_the_others_may_be_nearest_to_a_point_at_the_edge():
    """Points at -1 and 1 are taken together. To the middle, 5 is nearer than -6.8."""
    corners = torch.tensor([[5.0, 0.0, 0.0], [-6.8, 0.0, 0.0]]).repeat_interleave(3, 0)
    triangles = triangles_of(Mesh(corners, torch.arange(6).view(2, 3)))
    points = torch.tensor([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert nearest_of_all(points, triangles).tolist() == [1, 0]


def test_points_that_are_no_numbers_have_no_distance(search: str):
    points = anywhere(1, 10)
    points[0, 3, 1] = torch.nan
    for side in (None, 8):
        found = Surface([soup(20)], "cpu", side).distance(points, torch.tensor([0]))
        assert found.isnan().nonzero().tolist() == [[0, 3]]


# Many meshes.


@pytest.mark.parametrize("side", [None, 12])
def test_many_meshes_of_different_sizes_in_one_call(side: int | None, search: str):
    meshes = [soup(1), torus(10, 8), soup(50, seed=3)]
    points, which = anywhere(5, 40), torch.tensor([2, 0, 1, 1, 2])
    together = Surface(meshes, "cpu", side).nearest(points, which)
    for k, mesh in enumerate(which.tolist()):
        alone = Surface([meshes[mesh]], "cpu", side).nearest(points[k : k + 1], torch.tensor([0]))
        for one, other in zip(alone, together):
            assert torch.equal(one[0], other[k])


@pytest.mark.parametrize(
    ("meshes", "why"),
    [
        ([], "at least one mesh"),
        ([soup(1), Mesh(torch.rand(3, 3), torch.empty(0, 3).long())], "Mesh 1 has no triangles"),
        ([Mesh(torch.full((3, 3), torch.nan), torch.tensor([[0, 1, 2]]))], "no finite numbers"),
        ([Mesh(torch.rand(3, 3), torch.tensor([[1, 2, 3]]))], "from 1 to 3"),
    ],
)
def test_what_has_no_surface_is_an_error(meshes: list[Mesh], why: str):
    with pytest.raises(InputError, match=why):
        Surface(meshes, "cpu")


def test_a_grid_without_cells_is_an_error():
    with pytest.raises(InputError, match="at least 2 corners"):
        Surface([soup(1)], "cpu", side=1)


def test_without_igl_scattered_points_lead_to_the_nearest_triangles(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(surfaces, "_there", lambda package: False)
    mesh = scaled(part("flange", torch.Generator().manual_seed(4)).mesh)[0]
    points, triangles = anywhere(2000, seed=1), triangles_of(mesh)
    assert len(mesh.faces) > surfaces.FEW
    exact = offsets(points, triangles[nearest_of_all(points, triangles)]).norm(dim=-1)
    error = distances(mesh, points) - exact
    assert error.min() > -1e-6
    assert error.mean() < 1e-5
    assert (error < 1e-6).float().mean() > 0.995
    bad = torch.tensor([[torch.nan, 0.0, 0.0], [0.0, 0.0, 9.0]])
    assert distances(mesh, bad).isnan().tolist() == [True, False]


# Grids.


def test_a_grid_knows_the_nearest_triangles_of_its_corners(search: str):
    mesh, corners = soup(60), grid.corners(7, torch.device("cpu"))
    torch.testing.assert_close(distances(mesh, corners, side=7), distances(mesh, corners))


def test_neighbors_share_an_edge():
    mesh = torus(5, 4)
    loose = Mesh(mesh.vertices[mesh.faces].flatten(0, 1), torch.arange(120).view(-1, 3))
    neighbors = grid.neighbors_of(mesh)
    assert torch.equal(neighbors, grid.neighbors_of(loose))  # corners that are repeated are one
    for own, beside in zip(mesh.faces, neighbors):
        for k, other in enumerate(beside.tolist()):
            edge = {own[k].item(), own[(k + 1) % 3].item()}
            assert edge < set(mesh.faces[other].tolist())
            assert edge != set(own.tolist())
    book = torch.tensor([[0, 1, 2], [1, 0, 3], [0, 1, 4]])  # three pages at one edge
    assert grid.neighbors_of(Mesh(torch.rand(5, 3), book)).tolist() == [
        [1, 0, 0],
        [2, 1, 1],
        [0, 2, 2],
    ]


def test_the_corners_of_a_cell():
    corners = grid.corners(5, torch.device("cpu"))
    points = 0.74 * anywhere(50)
    cells = corners[grid.around(points, 5)]
    assert (cells.amin(1) <= points).all()
    assert (cells.amax(1) >= points).all()
    assert (cells.amax(1) - cells.amin(1) - 2 * grid.REACH / 4).abs().max() < 1e-6
    outside = grid.around(torch.tensor([[-9.0, 0.0, 9.0]]), 5)
    assert (corners[outside][..., 0].amin(), corners[outside][..., 2].amax()) == (-0.75, 0.75)


def errors(meshes: list[Mesh], side: int) -> Tensor:
    """Of the distances from a grid, for points near the surface."""
    which, points = torch.arange(len(meshes)), near_surface(meshes, 1000)
    exact, gridded = (Surface(meshes, "cpu", s).distance(points, which) for s in (None, side))
    return gridded - exact


def test_a_grid_is_never_below_and_seldom_above_the_exact_distance():
    error = errors([torus(40, 20)], 24)
    assert error.min() > -1e-6
    assert error.mean() < 2e-4
    assert error.max() < 0.02


def test_far_points_have_nearly_the_exact_distance():
    """Outside the grid, the cell at its border is asked."""
    mesh, points = torus(20, 10), 3 * anywhere(200)
    found, exact = distances(mesh, points, side=24), distances(mesh, points)
    torch.testing.assert_close(found, exact, atol=0, rtol=0.1)


def test_a_grid_of_a_small_mesh_takes_two_bytes_a_corner():
    grids = Surface([soup(3), soup(200)], "cpu", side=6).grids
    assert grids is not None
    assert (grids.shape, grids.dtype) == ((2, 6**3), torch.int16)
    assert grid.smallest_integers(2**15) == torch.int16
    assert grid.smallest_integers(2**15 + 1) == torch.int32


@pytest.mark.skipif(not MESHES, reason="needs the folder of the parts in PROXLEARN_MESHES")
@needs_igl
def test_the_grids_of_real_parts():
    error = errors(parts(Path(str(MESHES)), 12), 48)
    assert error.min() > -1e-6
    assert error.mean() < 3e-4


# The kernel. Without a GPU it runs in Triton's interpreter, so every line of it is tested anywhere.


@pytest.fixture(scope="module")
def kernel() -> ModuleType:
    pytest.importorskip("triton", reason="the kernel needs Triton")
    return imported_as_written("meshes.distance_kernel")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # divisions that nobody reads
@pytest.mark.parametrize("side", [None, 6])
def test_the_kernel_computes_the_same(kernel: ModuleType, side: int | None):
    meshes = [soup(3), FLAT["point"], FLAT["thin"], torus(4, 3)]
    which = torch.tensor([3, 0, 1, 2, 3], device=DEVICE)
    points = anywhere(5, 300 if side is None else 150).to(DEVICE).requires_grad_()
    surface = Surface(meshes, DEVICE, side)
    found = kernel.distance(surface, points, which)
    exact = Surface(meshes, "cpu", side).distance(points.cpu(), which.cpu())
    torch.testing.assert_close(found.cpu(), exact, atol=1e-6, rtol=1e-6)
    slopes = [torch.autograd.grad(each.sum(), points)[0] for each in (found, exact)]
    apart = (slopes[0] - slopes[1]).norm(dim=-1)  # at ties, either is right
    assert (apart > 1e-4).float().mean() < 0.002


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("enough", [0, 4, 1 << 20])
def test_programs_that_share_triangles_find_the_same(
    kernel: ModuleType, monkeypatch: pytest.MonkeyPatch, enough: int
):
    """From all triangles for each, to some programs that have none."""
    monkeypatch.setattr(kernel, "ENOUGH", enough)
    surface, which = Surface([soup(40), soup(3)], DEVICE), torch.tensor([1, 0], device=DEVICE)
    points = anywhere(2, 30).to(DEVICE)
    found = kernel.distance(surface, points, which)
    torch.testing.assert_close(found.double(), plain(surface, points, which), atol=1e-6, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_second_derivatives_of_the_kernel(kernel: ModuleType):
    surface, which = Surface([soup(10)], DEVICE), torch.tensor([0], device=DEVICE)
    exact = Surface([soup(10)], "cpu")
    points = anywhere(1, 50).to(DEVICE).requires_grad_()
    curved = []
    for found in (
        kernel.distance(surface, points, which),
        exact.distance(points.cpu(), which.cpu()),
    ):
        (slope,) = torch.autograd.grad(found.sum(), points, create_graph=True)
        curved.append(torch.autograd.grad(slope[..., 0].sum(), points)[0])
    assert curved[1].abs().max() > 1
    torch.testing.assert_close(*curved, atol=1e-3, rtol=1e-3)


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_a_gpu_uses_the_kernel_for_32_bits(monkeypatch: pytest.MonkeyPatch, kernel: ModuleType):
    calls, search = [], kernel.search
    monkeypatch.setattr(kernel, "search", lambda *a: (calls.append(1), search(*a))[1])
    surface, which = Surface([soup(10)], "cuda"), torch.tensor([0], device="cuda")
    points = anywhere(1, 50).cuda()
    short, long = surface.distance(points, which), surface.distance(points.double(), which)
    assert len(calls) == 1
    torch.testing.assert_close(short.double(), long, atol=1e-6, rtol=1e-6)
