"""`px.learn`, the front door of training."""

import json
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from proxlearn.common.checks import flag, path_of, said
from proxlearn.common.files import append_rows, write_rows
from proxlearn.common.locks import locked
from proxlearn.common.memory import enough
from proxlearn.errors import InputError, ObjectiveError, PoorOperatorWarning, TrainingError
from proxlearn.gpu.devices import pick_device
from proxlearn.gpu.parallel import processes
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import Problem
from proxlearn.training import checkpoint
from proxlearn.training.interrupts import Noted, signals_noted
from proxlearn.training.judge import Glances, judge
from proxlearn.training.progress import Bar
from proxlearn.training.session import Report, Session
from proxlearn.training.settings import Training, checked_settings
from proxlearn.training.threads import threads_restored

CHECKPOINT_SECONDS = 30.0
SMALLER = "give a smaller instances=, points= or architecture=, or a problem of a smaller size"
CURVE = "training.jsonl"  # the loss at every checkpoint


@checked_settings
def learn(
    problem: Problem,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    lam: float | tuple[float, float] | None = None,
    rule: str = "proximal",
    descents: int | None = None,
    sampling: str = "pool",
    depth: int = 5,
    instances: int | None = None,
    points: int | None = None,
    rate: float | None = None,
    architecture: Any = None,
    precision: str | None = None,
    applications: int | None = None,
    encodes: int | None = None,
    near: float | None = None,
    seed: int = 0,
    save_every: float | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    device: str = "auto",
    progress: bool = True,
    watch: Callable[[Report, Operator], None] | None = None,
) -> Operator:
    """Train an operator for a problem.

    Ctrl-C stops the training, saves the operator as it is and returns it, with
    `provenance["interrupted"]` set; SIGTERM saves it, too, and ends the process. A folder holds one
    training at a time. Under torchrun all processes train one operator, each on its part of every
    step, and each returns it; the first one writes.

    Args:
        problem: the family of objectives, or the single objective
        steps: length in steps (default: 20,000 on a GPU, one to ten minutes on a CPU, by the
            problem)
        seconds: length in seconds, in place of steps
        lam: proximal weight, or the two ends of a range (default: the problem's, or estimated)
        rule: proximal (the paper's POL) or gradient (its baseline GOL)
        descents: gradient steps that an application learns where rule=gradient (default: 10)
        sampling: pool (points kept from step to step) or unfold (the paper's)
        depth: most times the operator is applied to a training point (the paper's K)
        instances: instances (taus) in a step
        points: points for each instance in a step
        rate: the largest learning rate, which falls to 0 along a cosine (default: 4e-3 on a GPU,
            6e-3 on a CPU)
        architecture: the network: default, paper, cut_circles (graphs), attending (sets), boxes
            (images), or in Python an Architecture or a dict of its fields
        precision: of matrix products: fp32, tf32 (default on a GPU, except for graphs) or bf16
        applications: how often solving applies the operator (default: measured, and it learns to
            stop)
        encodes: instances of a step that are encoded anew, others keep their codes (default: all)
        near: share of fresh points that begin near known solutions (default: the problem's, or 0)
        seed: fixes the weights, the instances and the points
        save_every: seconds between checkpoints (default: few at first, then 30)
        out: folder for checkpoints, the loss curve and the finished operator (default: none)
        resume: go on from the checkpoint in that folder
        device: auto, cpu or cuda
        progress: show a progress bar
        watch: called as watch(report, operator) at every report, about twice a second
    """
    given = locals()
    training = Training(**{each.name: given[each.name] for each in fields(Training)})
    picked = pick_device(device)
    resume, progress = flag("resume", resume), flag("progress", progress)
    folder = None if out is None else path_of(out, "folder out=")
    if watch is not None and not callable(watch):
        raise InputError(f"watch= must be a function of (report, operator), not {said(watch)}.")
    with ExitStack() as stack:
        stack.enter_context(enough("this training", SMALLER))
        process = stack.enter_context(processes(picked))
        stack.enter_context(threads_restored())
        stack.enter_context(torch.random.fork_rng([picked] if picked.type == "cuda" else []))
        session = Session(problem, training, picked, process)  # checks both
        if folder and process.first:
            stack.enter_context(locked(folder))
        bar = stack.enter_context(Bar(problem.name, progress and process.first))
        noted = stack.enter_context(signals_noted(process.size == 1))
        if resume:
            checkpoint.restore(session, folder)
        written = _cut_curve(folder / CURVE, session.step) if folder and process.first else 0
        if not (steps or seconds):
            bar.announce(session.steps, session.seconds)
        finished = _train(session, folder, written, bar, watch, noted)
        operator = session.finished()
        if finished and session.spent >= 1:
            finished = _finish(session, operator, bar, folder, noted)
        if not finished:
            operator.provenance["interrupted"] = True
        # Solving may wait for the kernels to be compiled, unless that failed.
        operator.network.kernels = not (session.compiling and session.compiling.failed)
    if operator.doubtful:
        warnings.warn(f"Poor: {operator.doubtful}.", PoorOperatorWarning, stacklevel=3)
    return operator


def _train(
    session: Session,
    folder: Path | None,
    written: int,
    bar: Bar,
    watch: Callable[[Report, Operator], None] | None,
    noted: Noted,
) -> bool:
    """Train to the end or until a signal; whether it came to the end. The folder, if there is one,
    gets checkpoints, and the rows after the step `written`."""
    first, looked, known = session.process.first, session.elapsed, session.step
    every = session.training.save_every
    glances = Glances(session.operator, session.problem)
    try:
        for report in session.run(noted):
            seen = glances.look(report.seconds) if first else None
            report = replace(report, at_optimum=seen)
            bar.show(report)
            if watch:
                watch(report, session.operator)
            wait = every or min(CHECKPOINT_SECONDS, looked + 1)  # the first ones come soon
            due = report.spent >= 1 or report.seconds - looked > wait
            if due:
                session.check_objective()
                looked = report.seconds
            if folder and due and report.step > known:
                checkpoint.save(session, folder)
            if folder and first and (due or seen is not None) and report.step > written:
                append_rows(folder / CURVE, [report.row()])
    except ObjectiveError as error:
        raise ObjectiveError(f"{error} {_kept(session, folder)}") from error
    except TrainingError as error:
        raise TrainingError(f"{error} {_last_kept(folder)}") from error
    except KeyboardInterrupt:
        session.report()  # a loss that broke since the last report must not be saved
        if folder:
            checkpoint.save(session, folder)
        bar.interrupted(session.step, folder)
        noted.obey()
        return False
    return True


def _kept(session: Session, folder: Path | None) -> str:
    """What is kept where the objective failed in a step: all that was learned before it."""
    when = f"That was after {session.step:,} steps of the training"
    if folder is None:
        return f"{when}, which are lost: give out= to keep checkpoints."
    others = session.process.size > 1  # which are still in that step
    if others or not session.operator.finite:
        return f"{when}. {_last_kept(folder)}"
    checkpoint.save(session, folder)
    return f"{when}, and they are kept in {folder}: mend the objective and go on with resume=True."


def _last_kept(folder: Path | None) -> str:
    """What the last checkpoint keeps."""
    if folder is None or not (folder / checkpoint.NAME).is_file():
        return "No checkpoint had been written."
    return f"The checkpoint from before is kept in {folder}: go on from it with resume=True."


def _finish(
    session: Session, operator: Operator, bar: Bar, folder: Path | None, noted: Noted
) -> bool:
    """Teach a trained operator when a point has arrived, judge it and save it; whether all that was
    done before a signal. What was trained is in the checkpoint."""
    process = session.process
    if session.learns_arrival and session.worth_teaching:
        operator.arrival = session.learn_arrival(bar.show_arrival, noted)
    if not process.from_first(noted()):
        _judge(session, operator, bar, noted)
    if process.from_first(noted()):
        bar.interrupted(session.step, folder)
        noted.obey()
        return False
    if folder and process.first:
        operator.save(folder / "operator.safetensors")
    return True


def _judge(session: Session, operator: Operator, bar: Bar, noted: Noted) -> None:
    """Give the operator its card, which the first process makes for all."""
    first, card = session.process.first, None
    bar.judging()
    if first:
        with suppress(KeyboardInterrupt):
            card = judge(operator, session.problem, session.elapsed, noted, bar.judging)
    operator.provenance["card"] = session.process.from_first(card)
    if operator.card and first:
        bar.judged(operator.card)


def _cut_curve(path: Path, step: int) -> int:
    """Remove the rows after a step, which will be written again, and a half row that a killed
    training may have left; the step of the last that is kept."""
    if not path.is_file():
        return 0
    kept = []
    for line in path.read_text(errors="replace").splitlines() if step else ():
        with suppress(ValueError, TypeError, LookupError):
            kept += [row for row in [json.loads(line)] if row["step"] <= step]
    write_rows(path, kept)
    return kept[-1]["step"] if kept else 0
