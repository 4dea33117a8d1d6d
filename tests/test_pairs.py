"""The classical detector of symmetries, on clouds and generated parts whose planes are known."""

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.meshes.parts import Part, at_unit_size, part
from proxlearn.problems.symmetry import Symmetry
from proxlearn.problems.symmetry.moves import Reflecting
from proxlearn.solvers import pairs
from proxlearn.solvers.solve import curve

pytestmark = pytest.mark.filterwarnings("ignore:Exact distances to meshes are found by trying")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip
SPACE = Symmetry.space


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distances are slow without a library for them."""
    monkeypatch.setattr(Symmetry, "moves", 128)


def made(kind: str) -> tuple[Part, Symmetry, dict[str, Tensor]]:
    """A part in a random pose, and the problem and the instance that it is."""
    own = at_unit_size(part(kind, generator_for(0, f"test of {kind}")))
    problem = Symmetry([own.mesh], turned=False)
    return own, problem, problem.sample(1, "train", generator_for(0, "cloud"))


def mirrored_blob(plane: Tensor, points: int = 256) -> Tensor:
    """Points with normals in any direction, and their mirror images: others are alike by chance."""
    generator = torch.Generator().manual_seed(0)
    at, normal = 0.3 * torch.randn(2, points, 3, generator=generator)
    normal = torch.nn.functional.normalize(normal, dim=-1)
    through = torch.cat((plane[:3], plane.new_zeros(1)))
    images = (
        Reflecting().moved(p[None, None], each[None])[0, 0]
        for p, each in ((plane, at), (through, normal))
    )
    return torch.cat((torch.cat((at, normal), -1), torch.cat(list(images), -1)))[None]


@pytest.mark.parametrize("kind", ["nut", "plate", "bracket"])
@pytest.mark.parametrize("device", DEVICES)
def test_all_planes_of_parts_are_found(kind: str, device: str):
    own, problem, tau = made(kind)
    found = px.solve(problem, tau, "pairs", starts=32, device=device).cpu()
    assert found.method == "pairs"
    assert found.points.shape == (1, 32, 4)
    assert len(own.planes) > 0
    assert SPACE.pairwise(own.planes, found.points[0]).amin(1).max() < 0.01
    at_planes = SPACE.pairwise(found.points[0], own.planes).amin(1) < 0.01
    assert found.values[0][at_planes].max() < 2e-3


def test_pairs_vote_for_the_plane_between_them():
    plane = torch.tensor([0.48, -0.6, 0.64, 0.1])
    cloud = mirrored_blob(plane)
    voted, counts = pairs.votes(cloud)
    near = SPACE.pairwise(voted[0], plane[None])[:, 0] < 1e-3
    assert counts.sum() < pairs.VOTERS  # there are not so many that are alike
    images = pairs.PAIRS / cloud.shape[1]  # of so many pairs about, one is the other's image
    assert (near & counts[0]).sum() > 0.7 * images
    assert (near & ~counts[0]).sum() == 0
    first = pairs.clusters(voted, counts, 1)[0]
    assert SPACE.pairwise(first, plane[None]) < pairs.RADIUS


def test_clusters_are_apart_until_there_are_no_more():
    flags = torch.ones(1, 5, dtype=torch.bool)
    planes = torch.tensor(
        [[[1.0, 0, 0, 0.2], [0, 1, 0, 0], [1, 0, 0, 0.21], [0, -1, 0, 0.01], [0, 1, 0, 0.02]]]
    )
    found = pairs.clusters(planes, flags, 3)
    assert torch.equal(found[0], planes[0, [1, 0, 1]])  # three votes, two votes, and again
    none = pairs.clusters(planes, ~flags, 2)
    assert torch.equal(none[0], planes[0, [0, 0]])


def test_candidates_of_a_cloud_do_not_depend_on_other_clouds():
    every = torch.cat([made(kind)[2]["cloud"] for kind in ("nut", "plate")])
    together, alone = pairs.candidates(every, 12), pairs.candidates(every[1:], 12)
    torch.testing.assert_close(together[1:], alone)


def test_principal_planes_go_through_the_centroid():
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(2, 4000, 3, generator=generator) * torch.tensor([1.0, 2.0, 4.0])
    cloud = torch.cat((points + torch.tensor([0.0, 0.0, 3.0]), points), -1)
    found = pairs.principal(cloud)
    assert found.shape == (2, 3, 4)
    true = torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, 0, 1.0, 3.0]]).expand(2, 3, 4)
    assert SPACE.squared_distance(found, true).sqrt().max() < 0.15


def test_refinement_is_kept_only_where_the_objective_is_lower():
    _, problem, tau = made("nut")
    alone = px.solve(problem, tau, "pairs", starts=12, device="cpu", steps=0)
    found = px.solve(problem, tau, "pairs", starts=12, device="cpu")
    assert (found.values <= alone.values).all()
    assert found.values.median() < 0.5 * alone.values.median()
    assert torch.equal(alone.points, pairs.candidates(tau["cloud"], 12))


def test_it_cannot_tell_from_more_starts_what_it_missed():
    _, problem, tau = made("plate")
    with pytest.raises(px.InputError, match="'pairs' begins elsewhere: give a number"):
        px.solve(problem, tau, "pairs", starts="auto", device="cpu")
    with pytest.raises(px.InputError, match="cannot be read along the way"):
        curve(problem, tau, "pairs", (0, 5), starts=4, device="cpu")


@pytest.mark.parametrize("count", [1, 3, 5])
def test_there_are_as_many_planes_as_starts(count: int):
    _, problem, tau = made("plate")
    found = px.solve(problem, tau, "pairs", starts=count, device="cpu", steps=1)
    assert found.points.shape == (1, count, 4)
    assert found.inside.all()
