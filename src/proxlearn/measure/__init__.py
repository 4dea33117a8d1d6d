"""How good it is: evaluations and comparisons as rows, advice on lam. Rests on `solvers` and what
that rests on."""
