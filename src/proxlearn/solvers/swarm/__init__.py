"""A learned particle swarm, the paper's other baseline: its network and training, and the method.
Rests on what `solvers` does."""
