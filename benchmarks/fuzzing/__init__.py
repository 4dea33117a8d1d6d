"""What `fuzz.py` provokes: one file a kind of fault. A file that is put here joins.

Each has
* `WHAT`, in words, and `CASES`, how many; in the tests there are `QUICK` of them (else 5), about a
  second's worth;
* `prepare(folder)`: what its cases begin with (files, an operator), made once. What a case would
  import is best imported here, too: every case is a fork of this process;
* `case(draw, prepared, folder) -> (description, act)`: one case, by the random numbers of `draw`
  alone; `folder` is its own, where it starts and what is removed when it ends. `act()` does what a
  user would. It returns where all went well, raises `WrongAnswerError` where an answer is wrong or
  not finite, and lets every error through. The programs that it starts end with it, as long as they
  have no session of their own;
* `SECONDS`, where a case may take longer than 10, such as a whole training.
"""
