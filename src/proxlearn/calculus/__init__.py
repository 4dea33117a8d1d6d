"""Derivatives of objectives and what follows from them (curvature, polish, certificates), and the
loop around methods that go step by step (`loop.py`). Rests on `problems` and what that rests on."""
