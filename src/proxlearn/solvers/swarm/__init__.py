"""A learned particle swarm: its network, its training, the method. Rests on what `solvers` does."""
