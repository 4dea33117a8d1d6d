"""A network that gives a fixed number of points (the paper's FN): its training and its method.
Rests on what `solvers` does."""
