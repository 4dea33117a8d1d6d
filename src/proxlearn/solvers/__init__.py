"""Methods that take starts to solutions, one file each, and `px.solve` (`solve.py`). Rests on all
that comes before it, up to `training`."""
