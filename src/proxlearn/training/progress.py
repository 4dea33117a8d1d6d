"""The live progress bar of a training, with loss and its terms, steps per second, time left."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from proxlearn.common.progress import progress_bar

if TYPE_CHECKING:
    from proxlearn.training.session import Report


class Bar:
    """A context that shows reports; silent when not enabled. Writes to standard error."""

    def __init__(self, name: str, enabled: bool):
        self.console = Console(stderr=True, quiet=not enabled)
        self.progress = progress_bar(name, self.console)
        self.task = self.progress.add_task("training", total=1.0, said="starting")

    def show(self, report: "Report") -> None:
        terms = "  ".join(f"{name} {value:.3g}" for name, value in report.terms.items())
        said = f"{report.step / max(report.seconds, 1e-9):,.0f} steps/s  {terms}"
        self.progress.update(self.task, completed=min(report.spent, 1.0), said=said)

    def show_arrival(self, spent: float, error: float) -> None:
        """The second part of a training: what the operator learns of when a point has arrived."""
        said = "trained; now it learns when a point has arrived"
        self.progress.update(self.task, completed=min(spent, 1.0), said=said)

    def full(self) -> None:
        """The training is over."""
        self.progress.update(self.task, completed=1.0)

    def interrupted(self, step: int, folder: Path | None) -> None:
        how = (
            f"Saved in {folder}: go on with the same settings and --resume (resume=True)."
            if folder
            else "The operator as trained so far is returned; give out= to be able to resume."
        )
        self.console.print(f"Stopped at step {step:,}. {how}")

    def __enter__(self) -> "Bar":
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()
