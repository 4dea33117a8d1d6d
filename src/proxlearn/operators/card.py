"""The card of an operator in words: what it was trained on, for how long, and how good it is."""

from typing import Any

from proxlearn.operators.operator import Operator, words_of

ROWS = ("data", "budget", "quality", "seed", "licence")


def card_of(operator: Operator) -> dict[str, str]:
    """What its file says, by `ROWS`; "not said" where it says nothing."""
    about = operator.provenance
    seed = about.get("training", {}).get("seed")
    said = {"data": about.get("data"), "licence": about.get("licence")}
    said |= {"budget": _budget(about), "quality": _quality(operator)}
    said |= {"seed": None if seed is None else str(seed)}
    return {name: said[name] or "not said" for name in ROWS}


def _budget(about: dict[str, Any]) -> str | None:
    """How long it was trained, and where."""
    if "steps" not in about or "seconds" not in about:
        return None
    where = f" on one {about['machine']}" if "machine" in about else ""
    return f"{about['steps']:,} steps in {about['seconds']:g} s{where}"


def _quality(operator: Operator) -> str | None:
    """Its own judgement on held-out instances, and figures that were measured since."""
    figures = operator.provenance.get("figures") or {}
    parts = [words_of(operator.card)] if operator.card else []
    if figures:
        more = ", ".join(f"{name} {value:.3g}" for name, value in figures.items())
        parts.append(f"on more test instances {more}")
    if operator.doubtful:
        parts.append("by its own judgement poor")
    return "; ".join(parts) or None
