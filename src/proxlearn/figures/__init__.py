"""How instances and their solutions are drawn: by the problem's own `picture.py`, or by dimension
(`line`, `plane`, `other`). Rests on `problems` and what that rests on."""
