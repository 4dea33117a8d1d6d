"""The live progress bar of a training: the loss, how many held-out starts end at an optimum, steps
per second, time left; and how the operator is judged in the end. The log is told the same."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from proxlearn.common.log import logger
from proxlearn.common.progress import progress_bar

if TYPE_CHECKING:
    from proxlearn.training.session import Report


CARD = {  # what the table says of an operator
    "at_optimum": "starts that end at an optimum",
    "at_optimum_polished": "the same, polished",
    "at_optimum_lbfgs": "the same, by multistart L-BFGS",
    "found": "of the optima that L-BFGS finds, found",
    "false": "false optima listed, an instance, unpolished",
    "wp": "witnessed precision within 2% of the diameter",
}
RATED = {  # of one that says how good its points are, and is not told what L-BFGS is
    "called_good": "points that it calls good (quality 0.5 or more)",
    "rightly": "of these, good",
    "found": "of the optima, with a good point",
    "wp": CARD["wp"],
}


class Bar:
    """A context that shows reports; silent when not enabled. Writes to standard error."""

    def __init__(self, name: str, enabled: bool):
        self.name, self.console = name, Console(stderr=True, quiet=not enabled)
        self.progress = progress_bar(name, self.console)
        self.task = self.progress.add_task("training", total=1.0, said="starting")
        self.seen = ""  # of held-out starts, how many ended at an optimum at the last look

    def announce(self, steps: int | None, seconds: float | None) -> None:
        """The length that was chosen."""
        length = f"{steps:,} steps" if steps else f"{seconds:.0f} seconds"
        self._say(f"Training for {length}; give seconds or steps for another length.")

    def show(self, report: "Report") -> None:
        if report.at_optimum is not None:
            self.seen = f"  {report.at_optimum:.0%} at an optimum"
        loss = f"loss {report.terms['loss']:.3g}" if report.terms else ""
        said = f"{report.step / max(report.seconds, 1e-9):,.0f} steps/s  {loss}{self.seen}"
        self.progress.update(self.task, completed=min(report.spent, 1.0), said=said)
        logger.debug("%s: step %s, %s", self.name, f"{report.step:,}", said)

    def show_arrival(self, spent: float, error: float) -> None:
        """The second part of a training: what the operator learns of when a point has arrived."""
        said = "trained; now it learns when a point has arrived"
        self.progress.update(self.task, completed=min(spent, 1.0), said=said)

    def judging(self, done: int = 0, count: int = 0) -> None:
        """The last part: what the operator is worth; of how many instances that is known, once
        there is a number of them."""
        said = f"judging: {done} of {count} instances" if count else "judging"
        self.progress.update(self.task, completed=1.0, said=said)

    def judged(self, card: dict[str, Any]) -> None:
        """The card, as a table."""
        table = Table(title="Judged on held-out instances", box=None, title_justify="left")
        table.add_column("")
        table.add_column("", justify="right")
        for name, text in (RATED if "rightly" in card else CARD).items():
            if (value := card.get(name)) is not None:
                table.add_row(text, f"{value:.1f}" if name == "false" else f"{value:.0%}")
        instances = "instance" if card["instances"] == 1 else "instances"
        table.caption = f"{card['instances']} {instances}, {card['starts']} starts each"
        self.progress.stop()
        self.console.print(table)
        logger.info("%s, judged on held-out instances: %s", self.name, card)
        if card.get("doubtful"):
            logger.warning("%s is poor: %s", self.name, card["doubtful"])

    def full(self) -> None:
        """The training is over."""
        self.progress.update(self.task, completed=1.0)

    def interrupted(self, step: int, folder: Path | None) -> None:
        how = (
            f"Saved in {folder}: go on with the same settings and --resume (resume=True)."
            if folder
            else "The operator as trained so far is returned; give out= to be able to resume."
        )
        self._say(f"Stopped at step {step:,}. {how}")

    def _say(self, text: str) -> None:
        self.console.print(text)
        logger.info("%s: %s", self.name, text)

    def __enter__(self) -> "Bar":
        self.progress.start()
        logger.info("Training %s", self.name)
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()
