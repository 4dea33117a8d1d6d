"""The playground as a folder of static files."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proxlearn.common.files import writable_folder, write_atomically
from proxlearn.operators.export import as_onnx, check_format, graphs_of
from proxlearn.playground.playable import Playable, in_text, packed
from proxlearn.playground.runtime import LICENSE, SCRIPT, WASM, runtime

PAGE = Path(__file__).parent / "page"
GRAPHS = ("prepare", "apply")


def write(out: Path, playables: Sequence[Playable], say: Callable[[str], None]) -> Path:
    """Write all of it into a folder; gives where the page is."""
    page = write_page(out, playables)
    for each in playables:
        say(f"{each.title}: its operator as ONNX ...")
        write_operator(out, each)
    return page


def write_page(out: Path, playables: Sequence[Playable]) -> Path:
    """The page and what runs operators, without these."""
    folder, given = writable_folder(out), runtime()
    check_format("apply.onnx")
    for each in sorted(PAGE.iterdir()):
        write_atomically(folder / each.name, each.read_bytes())
    write_atomically(folder / "onnxruntime-web-LICENSE.txt", given[LICENSE])
    needed = {"script": given[f"{SCRIPT}.gz"], "wasm": given[f"{WASM}.gz"]}
    _write_data(folder, "runtime", {name: in_text(each) for name, each in needed.items()})
    _write_data(folder, "problems", [each.about() for each in playables])
    return folder / "index.html"


def write_operator(folder: Path, shown: Playable) -> Path:
    """One operator, as the page asks for it when it is chosen."""
    made, _ = graphs_of(shown.operator, shown.tau, GRAPHS)
    content = {k: packed(as_onnx(graph)) for k, graph in made.items()}
    return _write_data(folder, shown.name, content | shown.files())


def _write_data(folder: Path, name: str, content: Any) -> Path:
    """As a script: a page that is opened from a file may load nothing else."""
    written = f"Assets.add({json.dumps(name)}, {json.dumps(content)});\n"
    return write_atomically(folder / "data" / f"{name}.js", written)
