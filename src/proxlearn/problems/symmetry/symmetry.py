"""All planes that reflect a shape onto itself, or nearly so (paper, 5.4)."""

from proxlearn.instances.cloud import Clouds
from proxlearn.problems.symmetry.moves import Reflecting
from proxlearn.problems.symmetry.of_surfaces import POINTS, REACH, OfSurfaces
from proxlearn.spaces import Planes


class Symmetry(OfSurfaces):
    """`f(n, d) = mean_p |R p - S|`: the mean distance to a surface S of its points p, reflected in
    the plane `n . p = d`; tau is S, and an operator sees a cloud of points on it.

    `meshes` to train on and `test` meshes are brought to a bounding box around 0 with a longest
    side of 1; without any, they are generated parts. With `turned`, every instance is turned at
    random. With `exact`, distances are exact, and slow to compute on a CPU."""

    name = "symmetry"
    space: Planes = Planes(REACH)
    lam = 3.0
    architecture = "matching"
    instances = Clouds(POINTS)
    moves = 512

    def observe(self, tau):
        return tau["cloud"]

    def is_whole(self, tau):
        return isinstance(tau[0] if isinstance(tau, list) and tau else tau, dict)

    def move(self, tau):
        return Reflecting()
