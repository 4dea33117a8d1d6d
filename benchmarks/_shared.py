"""What the speed benchmarks share: their options, their rows, their table."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from proxlearn.common.files import read_rows, write_rows
from proxlearn.common.provenance import Row, row
from proxlearn.gpu.devices import pick_device

OUT, QUICK_OUT = Path("results/speed"), Path("runs/speed")


class Benchmark:
    """One script's run: its options, where it runs, and the rows it makes."""

    def __init__(self, name: str, asked: argparse.Namespace):
        self.name, self.asked, self.quick = name, asked, asked.quick
        self.device = pick_device(asked.device)
        self.command = f"python benchmarks/{name}.py" + " --quick" * self.quick
        self.rows: list[Row] = []

    def add(self, device: torch.device | None = None, /, **fields: Any) -> Row:
        """A row, by default of the device the script runs on."""
        about = {"benchmark": self.name, "quick": self.quick, "ran_on": self.device.type}
        how = {"threads": torch.get_num_threads(), "command": self.command}
        made = row(device or self.device, **about, **fields, **how)
        self.rows.append(made)
        return made

    def save(self) -> None:
        """Write the rows; those of the other kind of device, if there are any, stay."""
        path = (self.asked.out or (QUICK_OUT if self.quick else OUT)) / f"{self.name}.jsonl"
        before = read_rows(path) if path.is_file() else []
        others = [each for each in before if each["ran_on"] != self.device.type]
        print(write_rows(path, others + self.rows))


def options(about: str | None, on_cpu: bool = False) -> argparse.ArgumentParser:
    """The options of every script; one that runs `on_cpu` alone has no choice of a device."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.set_defaults(device="cpu")
    if not on_cpu:
        parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--out", type=Path, help=f"folder of the rows ({OUT}, quick: {QUICK_OUT})")
    return parser


def show(title: str, header: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Print a table; None is a dash."""
    table = Table(*header, title=title)
    for line in lines:
        table.add_row(*map(_cell, line))
    Console().print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
