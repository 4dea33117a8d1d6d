"""Sixty families, trained briefly: where does the library claim more than is true?

It claims too much of a family in three ways: an optimum is listed with a certificate and is none;
the 95% interval for the number of optima misses it, unsaid; an operator is poor, unsaid. That
interval is of the optima that the operator leads to, which more starts tell; of those that it
passes over nothing is claimed but that there may be some. Said means that the operator
(`operator.doubtful`) or what it finds (`solutions.doubts`) is in doubt. An operator is poor if,
from the starts it is given, it finds less than half of the optima that L-BFGS finds from as many,
or if less than half of its starts end near an optimum before polish.

The optima of an instance are those that L-BFGS finds from many starts, polished, with no lower
value around them. Where some of them were hardly ever hit there may be more, and their number is a
lower bound for the interval.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from proxlearn.answers.clusters import TOLERANCE
from proxlearn.answers.unseen import poisson_at_most, unseen
from proxlearn.common.provenance import Row
from proxlearn.experiments._families import KINDS, Family, families
from proxlearn.experiments._judging import are_optima, true_optima
from proxlearn.experiments._look import DESCENT, INK, PROXIMAL, Axes, tidy
from proxlearn.experiments._shared import (
    SEED,
    Folder,
    grouped,
    markdown,
    nearby,
    trained_for,
)
from proxlearn.operators.operator import Operator
from proxlearn.problems.base import held_out

HALF = 0.5  # of the optima, or of the starts: with less an operator is poor
CARD = ("at_optimum", "at_optimum_polished", "found", "false")  # what an operator knows of itself


@dataclass(frozen=True)
class Sizes:
    training: dict[str, Any]
    only: tuple[str, ...] = ()  # families by name; all, if none is named
    taus: int = 2  # of each family, never trained on
    starts: int = 256  # of the operator
    many_starts: int = 2_048  # from which it is seen where it leads
    truth_starts: int = 4_096  # of L-BFGS


FULL = Sizes({"seconds": 20.0})
QUICK = Sizes({"seconds": 3.0}, only=("himmelblau", "moving-waves-1d-0", "egg-box", "rastrigin-8d"))
LEFT_OUT = "It trains 4 families for 3 seconds each instead of 60 for 20 seconds."


class Claims(NamedTuple):
    """What an operator's polished solutions claim of one instance, beside the truth."""

    known: bool  # whether all the optima are known
    optima: int  # how many there are, or are known
    listed: int  # with a certificate
    false: int  # of them
    found: int  # the others
    reachable: int  # optima that L-BFGS finds from as many starts
    leads: int  # optima that the operator leads to from many starts, less the rarest
    low: int  # the interval for their number, of which the first is one for all optima, too
    high: int
    missed: bool  # by the interval: the number of those, or of all
    near: float  # share of starts that end near an optimum before polish
    doubted: bool  # by the solutions themselves


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    """Train on a CPU, judge and draw, family by family: rows and a table."""
    folder, rows = replace(folder, device="cpu"), []
    for family in families(SEED):
        if not sizes.only or family.name in sizes.only:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a poor operator warns; here that is a result
                operator = folder.train(family.name, family.problem, sizes.training)
                rows.append(judge(family, operator, sizes, folder))
    with folder.figure("trust.png", 12.0, 4.8) as figure:
        draw(figure.subplots(), rows)
    return rows, table(rows)


def judge(family: Family, operator: Operator, sizes: Sizes, folder: Folder) -> Row:
    """What is claimed of held-out instances, and what is true of them, in one row."""
    begun, problem = time.perf_counter(), family.problem
    taus = held_out(problem, sizes.taus if problem.family else 1, SEED)
    every = [claims(family, tau, operator, sizes) for tau in taus.split(1)]
    found = sum(min(1.0, each.found / max(1, each.reachable)) for each in every) / len(every)
    near = sum(each.near for each in every) / len(every)
    poor = min(found, near) < HALF
    doubtful, doubted = operator.doubtful, all(each.doubted for each in every)
    false, missed = sum(each.false for each in every), sum(each.missed for each in every)
    card: dict[str, Any] = operator.card or {}
    return folder.row(
        family=family.name,
        kind=family.kind,
        dim=problem.space.dim,
        taus=len(every),
        known=sum(each.known for each in every),
        optima=sum(each.optima for each in every),
        listed=sum(each.listed for each in every),
        found=sum(each.found for each in every),
        found_share=found,
        leads=sum(each.leads for each in every),
        near_share=near,
        false=false,
        missed=missed,
        intervals=", ".join(f"{each.low} to {each.high}" for each in every),
        poor=poor,
        warned=bool(doubtful) or doubted,
        doubtful=doubtful,
        doubted=doubted,
        too_much=bool(false) or (not (doubtful or doubted) and (bool(missed) or poor)),
        too_much_unjudged=bool(false) or (not doubted and (bool(missed) or poor)),
        judged_seconds=time.perf_counter() - begun,
        **{f"card_{name}": card.get(name) for name in CARD},
        **trained_for(operator.provenance),
    )


def claims(family: Family, tau: Tensor, operator: Operator, sizes: Sizes) -> Claims:
    """Of one instance, tau (1 p)."""
    problem = family.problem
    truth = true_optima(problem, tau, sizes.truth_starts, sizes.starts, SEED)
    solved = operator.solve(tau if problem.family else None, starts=sizes.starts, seed=SEED)
    listed, space = solved.valued(problem, tau).polished().unique(), problem.space
    right = are_optima(problem, tau, listed.points)
    every = torch.cat((truth.optima, listed.points[right]))
    many = operator.solve(
        tau if problem.family else None, starts=sizes.many_starts, seed=SEED + 2
    ).valued(problem, tau)
    count, interval = max(len(truth.optima), family.optima), unseen(listed)
    share = many.polished().unique().share.sort().values.cumsum(0)  # of the smallest, together
    hardly = poisson_at_most(0) / sizes.starts  # what this chance has may well never be hit
    leads = max(int((share > hardly).sum()), int(right.sum()))
    most = count if interval.of_all else leads
    outside = interval.high < most or (truth.known and interval.low > count)
    return Claims(
        known=truth.known,
        optima=count,
        listed=len(listed),
        false=int((~right).sum()),
        found=int(right.sum()),
        reachable=truth.reachable,
        leads=leads,
        low=interval.low,
        high=interval.high,
        missed=outside and interval.seen > 0,  # of nothing found, no number is claimed
        near=nearby(space, solved.points[0], every, TOLERANCE) / sizes.starts,
        doubted=solved.doubts is not None and bool(solved.doubts[0]),
    )


def table(rows: list[Row]) -> str:
    """How many families claim too much, kind by kind; and which."""
    said = (
        f"Trained for {rows[0]['trained_seconds']:.0f} s each on a CPU. Families in which an "
        "optimum is listed as certified and is none; in which the 95% interval for the number of "
        "optima that the operator leads to misses what it leads to from eight times as many "
        "starts (less those so rare that all of them together may never be hit); whose "
        "operator is poor, and those of them that are warned of. A family "
        "claims too much if it lists a false optimum, or misses the number or is poor without a "
        "warning. Without self-judgement: the same if `operator.doubtful` did not count.\n\n"
    )
    return said + summary(rows) + _named(rows)


def summary(rows: Sequence[Row]) -> str:
    """A line for each kind of families, and one for all."""
    header = ("families", "number", "false optima", "interval misses", "poor", "of them warned of")
    header = (*header, "warned of for nothing", "claim too much", "without self-judgement")
    kinds = grouped(rows, "kind") | {"all": rows}
    return markdown(header, [_line(kind, some) for kind, some in kinds.items()])


def _line(kind: str, rows: Sequence[Row]) -> tuple[object, ...]:
    def count(*names: str) -> int:
        return sum(all(each[name] for name in names) for each in rows)

    def share(count: int) -> str:
        return f"{count} ({count / len(rows):.0%})"

    poor, right = count("poor"), count("poor", "warned")
    numbers = (count("false"), count("missed"), poor, f"{right} of {poor}", count("warned") - right)
    return (kind, len(rows), *numbers, share(count("too_much")), share(count("too_much_unjudged")))


def _named(rows: Sequence[Row]) -> str:
    """The families that claim too much, with what they claim; and those whose truth is unknown."""
    header = ("claims too much", "optima", "listed", "false", "found", "leads to", "intervals")
    header = (*header, "ends near one")
    lines = [
        (r["family"], r["optima"] if r["known"] else f"{r['optima']} or more", r["listed"])
        + (r["false"], r["found"], r["leads"], r["intervals"], f"{r['near_share']:.0%}")
        for r in rows
        if r["too_much"]
    ]
    unknown = [r["family"] for r in rows if r["known"] < r["taus"]]
    said = "\n" + markdown(header, lines) if lines else ""
    if unknown:
        said += f"\nNot all optima are known of every instance: {', '.join(unknown)}.\n"
    return said


def draw(axes: Axes, rows: list[Row]) -> None:
    """For every family the share of optima found, and of starts that end near one before polish:
    blue if it is trusted, red if it is warned of; a cross where more is claimed than is true."""
    order = sorted(
        rows, key=lambda r: (KINDS.index(r["kind"]), -min(r["found_share"], r["near_share"]))
    )
    tidy(axes, ylabel="share", ylim=(-0.05, 1.15), xlim=(-0.7, len(order) - 0.3))
    axes.axhline(HALF, color="0.5", linewidth=0.8, linestyle="dashed")
    for warned, color, words in ((False, PROXIMAL, "trusted"), (True, DESCENT, "warned of")):
        some = [k for k, r in enumerate(order) if r["warned"] == warned]
        near = [order[k]["near_share"] for k in some]
        found = [order[k]["found_share"] for k in some]
        axes.plot(some, found, "o", color=color, label=f"{words}: optima found")
        look = {"color": color, "markersize": 9, "markeredgewidth": 2}
        axes.plot(some, near, "_", label=f"{words}: starts that end near an optimum", **look)
    wrong = [k for k, r in enumerate(order) if r["too_much"]]
    axes.plot(wrong, [1.03] * len(wrong), "x", color="black", label="claims too much")
    for kind, some in grouped(order, "kind").items():
        first = order.index(some[0])
        axes.axvline(first - 0.5, color="0.6", linewidth=0.8)
        axes.text(first - 0.4, 1.08, kind, fontsize="small", color=INK)
    names = [r["family"] for r in order]
    axes.set_xticks(range(len(order)), names, rotation=90, fontsize="x-small")
    where = {"loc": "outside upper center", "ncols": 5, "frameon": False, "fontsize": "small"}
    axes.figure.legend(labelcolor=INK, **where)
