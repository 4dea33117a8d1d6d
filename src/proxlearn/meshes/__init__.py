"""Triangle meshes and point clouds: their files, cleaning, sampling, and generated parts whose
symmetries are known. Rests on `spaces` and what that rests on."""
