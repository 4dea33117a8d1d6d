"""How an operator is learned: settings, losses, the points it learns from, the loop, checkpoints.
Rests on `operators` and what that rests on."""
