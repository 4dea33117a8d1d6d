"""What `fuzz.py` provokes: one file a kind of fault. A file that is put here joins.

Each has
* `WHAT`, in words, and `CASES`, how many;
* `prepare(folder)`: what its cases begin with (files, an operator), made once;
* `case(draw, prepared, folder) -> (description, act)`: one case, by the random numbers of `draw`;
  `act()` does what a user would. It returns where all went well, raises `WrongAnswerError` where
  an answer is wrong or not finite, and lets every error through.
"""
