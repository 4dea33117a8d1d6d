"""The boxes of one picture, as people use them: found, told apart, listed, drawn; `px.detect`.
Rests on what `solvers` does."""
