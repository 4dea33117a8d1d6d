"""Max-cut on graphs from files, such as the Gset: the operator against classical heuristics.

    python benchmarks/gset.py --graphs gset/ --known best_known.json

The operator is the shipped one unless `--operator` names the file of another for any size.
`--graphs` is a file in the Gset's format or a folder of them; `--known` a JSON object that gives
each name (of the file, without its ending) the best value known, or an object with `best_known`.
The operator sets the time for one graph; the others begin anew as long as one more run fits.
"""

import argparse
import json
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from proxlearn.common.files import append_rows
from proxlearn.common.provenance import row
from proxlearn.errors import FileError
from proxlearn.experiments._cutting import race
from proxlearn.gpu.devices import pick_device
from proxlearn.instances.graph import graphs
from proxlearn.operators.load import load
from proxlearn.operators.shipped import shipped


def main() -> None:
    asked = arguments()
    known = best_known(asked.known) if asked.known else {}
    device = pick_device(asked.device)
    operator = load(asked.operator or shipped()["maxcut"], asked.device)
    table = Table("graph", "vertices", "method", "cut", "of the best known", "seconds", box=None)
    for file in files(asked.graphs)[: asked.most]:
        weights = graphs(file)
        for each in race(operator, weights, asked.starts, asked.steps, asked.device):
            best = known.get(file.stem)
            share = None if best is None else each["cut"] / best
            about = {"benchmark": "gset", "graph": file.stem, "best_known": best}
            made = row(device, **about, of_known=share, threads=torch.get_num_threads(), **each)
            append_rows(asked.out, [made])
            cells = (f"{each['cut']:.7g}", "" if share is None else f"{share:.4f}")
            said = (file.stem, str(each["vertices"]), each["label"], *cells)
            table.add_row(*said, f"{each['seconds']:.3g}")
    Console(width=100).print(table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graphs", type=Path, required=True, help="a file, or a folder of them")
    parser.add_argument("--operator", type=Path, help="one for any size; default: the shipped one")
    parser.add_argument("--known", type=Path, help="JSON: the best value known of each")
    parser.add_argument("--starts", type=int, default=256)
    parser.add_argument("--steps", type=int, default=100, help="applications of the operator")
    parser.add_argument("--most", type=int, default=1000, help="so many files at most")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--out", type=Path, default=Path("runs/gset/rows.jsonl"))
    return parser.parse_args()


def files(path: Path) -> list[Path]:
    """The graphs of a folder, small ones first, or the one file."""
    found = [path] if path.is_file() else sorted(path.glob("*.txt"), key=lambda f: f.stat().st_size)
    if not found:
        raise FileError(f"There are no graphs (*.txt) at {path}.")
    return found


def best_known(path: Path) -> dict[str, float]:
    """The best value known, by name."""
    numbers = json.loads(path.read_text())
    return {k: v["best_known"] if isinstance(v, dict) else v for k, v in numbers.items()}


if __name__ == "__main__":
    main()
