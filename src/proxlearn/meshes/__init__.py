"""Triangle meshes, and the distance to them. Rests on `spaces` and what that rests on."""

from proxlearn.meshes.mesh import Mesh

__all__ = ["Mesh"]
