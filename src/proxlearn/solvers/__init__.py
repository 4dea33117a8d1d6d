"""Methods that take starts to solutions, one file each; `px.solve` and curves over steps
(`solve.py`). Rests on all that comes before it, up to `training`."""
