"""Triangle meshes and point clouds: their files, cleaning, sampling, the distance to them, and
generated parts whose symmetries are known. Rests on `spaces` and what that rests on."""
