"""The symmetries of one shape, as people use them: found, refined, measured, listed, drawn.
Rests on what `solvers` does."""
