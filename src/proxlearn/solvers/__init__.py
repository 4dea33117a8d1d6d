"""Methods that take starts to solutions, one file each; `px.solve` (`solve.py`) and curves over
steps (`trace.py`). Rests on all that comes before it, up to `training`."""
