"""What comes out of solving: solutions, the distinct optima among them, how many may be missing;
and metrics. Rests on `figures` and what that rests on."""
