"""How many operations a training step on conics consists of, part by part.

    python benchmarks/launches.py

On a GPU each of them is a kernel, which takes its time in a captured step however little it does,
so that their number decides how long a small step takes. Views and empty memory are not counted,
and neither is what the network's fused kernels do there.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from _shared import Benchmark, options, show
from torch.utils._python_dispatch import TorchDispatchMode

import proxlearn as px
from proxlearn.training import session
from proxlearn.training.settings import Training

FREE = {"empty", "empty_like", "new_empty", "empty_strided", "_unsafe_view", "detach"}


class Counting(TorchDispatchMode):
    """A context that counts operations by the part of the step that is being done."""

    def __init__(self):
        super().__init__()
        self.counts, self.part = Counter[str](), "the way back through the network"

    def within(self, part: str, function: Callable) -> Callable:
        """The function as a part of the step."""

        def call(*arguments: Any, **named: Any) -> Any:
            before, self.part = self.part, part
            try:
                return function(*arguments, **named)
            finally:
                self.part = before

        return call

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        self.counts[self.part] += not (func.is_view or name in FREE)
        return func(*args, **kwargs or {})


def main(arguments: list[str] | None = None) -> None:
    run, counting = Benchmark("launches", options(__doc__).parse_args(arguments)), Counting()
    made = session.Session(px.problem("conic"), Training(), run.device)
    made._one_step()  # what is made once is there then
    parts = {
        "the network": [(made.operator, "prepare"), (made.operator, "rated_step")],
        "drawing and keeping points": [(made.sampler, "apply"), (made.sampler, "refill")],
        "the loss and its gradient": [(made, "loss")],
        "the optimizer": [(made.optimizer, each) for each in ("gather", "step_matrices")],
        "Adam, beside": [(made.optimizer, "step_others")],
        "the gradient's length": [(session, "shorten")],
        "books, beside": [(session, "keep_books")],
    }
    with ExitStack() as stack:
        for part, functions in parts.items():
            for where, name in functions:
                counted = counting.within(part, getattr(where, name))
                stack.enter_context(patch.object(where, name, counted))
        stack.enter_context(counting)
        made._one_step()
    for part, count in counting.counts.most_common():
        run.add(part=part, operations=count)
    show("A training step", ("part", "operations"), counting.counts.most_common())
    run.save()


if __name__ == "__main__":
    main()
