"""What planes and lines see of clouds: the kernels against their references, in Triton's
interpreter where there is no GPU."""

import pytest
import torch
from making import imported_as_written

import proxlearn as px
from proxlearn.meshes.mesh import Mesh
from proxlearn.meshes.parts import part
from proxlearn.networks import _looking as looking
from proxlearn.networks import matching, turning
from proxlearn.problems.base import Problem
from proxlearn.problems.rotation import Rotation
from proxlearn.problems.symmetry import Symmetry

pytest.importorskip("triton", reason="the kernels need Triton")
imported_as_written("networks._looking_kernel")
KERNELS = {name: imported_as_written(f"networks.{name}_kernel") for name in ("matching", "turning")}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DISCS = [(), looking.TO_DISCS]


@pytest.fixture(scope="module")
def parts() -> list[Mesh]:
    draws = torch.Generator().manual_seed(0)
    return [part(kind, draws).mesh for kind in ("bracket", "flange")]


def seen_twice(problem: Problem, network: str, numbers: int, to_discs: tuple[float, ...]):
    """What some x see of two clouds, by the reference and by the kernel."""
    tau = problem.sample(2, "train", torch.Generator().manual_seed(1))
    sizes = {"kind": network, "reflected": 24, "side": 8, "discs": True}
    operator = px.Operator.untrained(problem, sizes, lam=3.0)
    prepared = operator.prepare(operator.encode(problem.observe(tau)))
    x = problem.space.sample(2, 5, generator=torch.Generator().manual_seed(2))
    basis = problem.space.tangent(x)
    module = {"matching": matching, "turning": turning}[network]
    expected = module.looked(x, basis, prepared, to_discs)
    moved = {name: each.to(DEVICE) for name, each in prepared.items()}
    constants = looking.constants(numbers, to_discs)
    kernel = KERNELS[network].looked
    return expected, kernel(x.to(DEVICE), basis.to(DEVICE), moved, constants).cpu()


@pytest.mark.parametrize("to_discs", DISCS, ids=("without discs", "with discs"))
def test_planes(parts: list[Mesh], to_discs: tuple[float, ...]):
    expected, seen = seen_twice(Symmetry(parts), "matching", 9, to_discs)
    torch.testing.assert_close(seen, expected, atol=1e-2, rtol=1e-3)


@pytest.mark.parametrize("to_discs", DISCS, ids=("without discs", "with discs"))
def test_lines(parts: list[Mesh], to_discs: tuple[float, ...]):
    expected, seen = seen_twice(Rotation(parts), "turning", 14, to_discs)
    torch.testing.assert_close(seen, expected, atol=1e-2, rtol=1e-3)


def test_nearest_points():
    points = torch.rand(2, 50, 3, generator=torch.Generator().manual_seed(0)) - 0.5
    at = torch.rand(60, 3, generator=torch.Generator().manual_seed(1)) - 0.5
    ids = imported_as_written("networks._looking_kernel").nearest_ids(
        points.to(DEVICE), at.to(DEVICE)
    )
    assert torch.equal(ids.cpu().long(), torch.cdist(at.expand(2, -1, -1), points).argmin(-1))


def test_three_equations_are_solved():
    rows = torch.randn(30, 4, 20, generator=torch.Generator().manual_seed(0))
    system = looking.equations(torch.rand(30, 20)[None], rows[None]).view(2, 5, 1, 3, 9)
    lam = torch.tensor([[1.0, 0.1], [0.2, 0.02]])[:, None, :, None]
    expected = looking.solved(system, 3, lam)
    kernel = imported_as_written("networks._looking_kernel").solved
    steps = kernel(system.to(DEVICE), lam.to(DEVICE)).cpu()
    assert steps.shape == (2, 5, 2, 3, 3)
    torch.testing.assert_close(steps, expected, atol=1e-5, rtol=1e-4)
