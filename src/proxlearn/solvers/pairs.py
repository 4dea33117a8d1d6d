"""A classical way to find planes of symmetry (after Mitra et al., 2006): candidates come from the
principal axes of a cloud and from pairs of its points, whose votes are clustered. Each is refined
by iterated closest points and verified by the objective. Nothing is learned."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize

from proxlearn.calculus.derivatives import eigh
from proxlearn.common.batch import Points, pieces
from proxlearn.common.seeds import generator_for
from proxlearn.networks._looking import TO_PLANES
from proxlearn.networks.matching import Matching, MatchingNetwork
from proxlearn.problems.objectives import values_of
from proxlearn.problems.symmetry import Symmetry
from proxlearn.solvers.base import Solver
from proxlearn.spaces import Planes

PAIRS = 1 << 16  # of points that are looked at
VOTERS = 1 << 11  # of them that mirror each other, whose planes are clustered
ALIKE = 0.995  # the cosine of an angle up to which normals mirror each other: 6 degrees
NEAR = 0.05  # points nearer to each other say little of the plane between them
RADIUS = 0.1  # of a cluster
DAMPING = 1e-3  # of a step of refinement; matters only in directions that matches leave open
# By points, then by planes, ever finer.
EQUATIONS = (Matching().systems - 2, *reversed(range(len(TO_PLANES))))
AT_ONCE = 1 << 10  # planes that are refined together

Clouds = Float[Tensor, "i m 6"]


@dataclass(frozen=True)
class Pairs(Solver):
    """As many planes as there are starts, wherever these are: the principal ones, then clusters by
    their votes; where there are fewer clusters, they are repeated."""

    steps: int = 20  # of refinement
    independent = False

    def refuses(self, problem):
        if isinstance(problem, Symmetry):
            return None
        return (
            "The method 'pairs' finds planes of 'symmetry', from points of a surface, and does "
            f"not solve {problem.name!r}: use lbfgs or descent."
        )

    @torch.no_grad()
    def run(self, problem, tau, starts):
        found, count = torch.empty_like(starts), starts.shape[1]
        for rows, _, some, _ in pieces(tau, starts, max(count, AT_ONCE)):
            cloud = problem.observe(some)
            first = candidates(cloud, count)
            last = self.refined(first, cloud)
            better = values_of(problem, last, some) < values_of(problem, first, some)
            found[rows] = torch.where(better[..., None], last, first)
        return found

    def refined(self, planes: Points, cloud: Clouds) -> Points:
        """Symmetric ICP: points are reflected and matched with points of the cloud, and the plane
        goes where they match best; by points at first, then by points and tangent planes, ever
        finer."""
        network, space = MatchingNetwork(Matching()), Planes()
        lam = torch.full((len(cloud),), DAMPING, device=cloud.device)
        prepared = network.prepare(network.encode(cloud), lam)
        for k in range(self.steps):
            basis = space.tangent(planes)
            equation = EQUATIONS[k * len(EQUATIONS) // self.steps]
            step = network.steps(planes, basis, prepared)[0][..., equation, :]
            planes = space.retract(planes + (basis @ step[..., None])[..., 0])
        return planes


def candidates(cloud: Clouds, count: int) -> Points:
    """So many planes to begin with."""
    return torch.cat((principal(cloud), clusters(*votes(cloud), count)), 1)[:, :count]


def principal(cloud: Clouds) -> Float[Tensor, "i 3 4"]:
    """The planes through the centroid that are at right angles to a principal axis."""
    points = cloud[..., :3]
    centre = points.mean(1, keepdim=True)
    _, axes = eigh((points - centre).mT @ (points - centre))
    normal = axes.mT
    return Planes().retract(torch.cat((normal, normal @ centre.mT), -1))


def votes(cloud: Clouds) -> tuple[Float[Tensor, "i v 4"], Bool[Tensor, "i v"]]:
    """The planes halfway between two points each, and whether their normals mirror each other."""
    own = {"generator": generator_for(0, "pairs", cloud.device), "device": cloud.device}
    one, other = (cloud[:, each] for each in torch.randint(cloud.shape[1], (2, PAIRS), **own))
    (p, at_p), (q, at_q) = one.split(3, -1), other.split(3, -1)
    normal = normalize(q - p, dim=-1)
    planes = torch.cat((normal, (normal * (p + q)).sum(-1, keepdim=True) / 2), -1)
    mirrored = at_p - 2 * (at_p * normal).sum(-1, keepdim=True) * normal
    alike = (mirrored * at_q).sum(-1).abs() > ALIKE  # the sign of a normal says nothing
    alike &= (q - p).norm(dim=-1) > NEAR
    lots = torch.rand(PAIRS, **own) * alike  # any of those that count, the same for all clouds
    best = lots.topk(VOTERS).indices
    chosen = planes.take_along_dim(best[..., None], 1)
    return Planes().retract(chosen), alike.gather(1, best)


def clusters(
    planes: Float[Tensor, "i v 4"], counts: Bool[Tensor, "i v"], most: int
) -> Float[Tensor, "i k 4"]:
    """The plane with the most votes near it, then that of those not near it, and so on."""
    space, found = Planes(), [planes[:, :0]]
    near = (space.pairwise(each, each) < RADIUS for each in planes)  # (v v), one cloud at a time
    number = torch.stack([(some & own).sum(-1) * own for some, own in zip(near, counts)])
    left = number
    for _ in range(most):
        left = torch.where(left.amax(1, keepdim=True) > 0, left, number)  # all over again
        found.append(planes.take_along_dim(left.argmax(1)[:, None, None], 1))
        left = left.masked_fill(space.pairwise(planes, found[-1])[..., 0] < RADIUS, 0)
    return torch.cat(found, 1)
