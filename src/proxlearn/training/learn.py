"""`px.learn`, the front door of training."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from proxlearn.common.devices import pick_device
from proxlearn.common.files import append_rows, writable_folder
from proxlearn.gpu.parallel import processes, this_process
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem
from proxlearn.training import checkpoint
from proxlearn.training.interrupt import interrupts_noted
from proxlearn.training.progress import Bar
from proxlearn.training.session import Report, Session
from proxlearn.training.settings import (
    training_from,
)

CHECKPOINT_SECONDS = 30.0
CURVE = "training.jsonl"  # the loss at each checkpoint


def learn(
    problem: Problem,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    progress: bool = True,
    watch: Callable[[Report, Operator], None] | None = None,
    **settings: Any,
) -> Operator:
    """Train an operator for a problem. `settings` are the fields of `Training`, such as
    `steps=20_000`, `seconds=60`, `lam=0.2`, `seed=0`.

    With `out`, checkpoints, the loss curve and the finished operator are written to that folder;
    `resume=True` goes on from its checkpoint. Ctrl-C saves what there is and returns it.
    `watch(report, operator)` is called at every report, about twice a second.

    Launched by torchrun, all processes train the one operator, each on its part of every step, and
    each gets it; the first one writes.
    """
    training, picked = training_from(settings), pick_device(device)
    folder = None if out is None else Path(out)
    if folder and this_process().first:
        writable_folder(folder)
    gpus = [picked] if picked.type == "cuda" else []
    with (
        processes(picked) as process,
        torch.random.fork_rng(gpus),
        Bar(problem.name, progress and process.first) as bar,
        interrupts_noted() as interrupted,
    ):
        session = Session(problem, training, picked, process)
        if resume:
            checkpoint.restore(session, folder)
        elif folder and process.first:
            (folder / CURVE).unlink(missing_ok=True)
        saved = session.elapsed
        try:
            for report in session.run(interrupted):
                bar.show(report)
                if watch:
                    watch(report, session.operator)
                if folder and (report.spent >= 1 or report.seconds - saved > CHECKPOINT_SECONDS):
                    checkpoint.save(session, folder)
                    if process.first:
                        append_rows(folder / CURVE, [report.row()])
                    saved = session.elapsed
        except KeyboardInterrupt:
            session.report()  # a loss that broke since the last report must not be saved
            if folder:
                checkpoint.save(session, folder)
            bar.interrupted(session.step, folder)
        operator = session.finished()
        if session.spent >= 1:
            if session.learns_arrival:
                operator.arrival = session.learn_arrival(bar.show_arrival, interrupted)
            bar.full()
            if folder and process.first:
                operator.save(folder / "operator.safetensors")
    return operator
