"""The optima along a path of taus: followed, with where they appear, merge and vanish; `px.trace`.
Rests on `solvers` and what that rests on."""
