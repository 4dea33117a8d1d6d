"""What is to be solved: families `{f_tau}` of objectives, each a file or folder here, or a file of
one's own. Rests on `common`, `spaces`, `instances` and `networks`."""

from proxlearn.problems.load import names, problem, problems

__all__ = ["names", "problem", "problems"]
