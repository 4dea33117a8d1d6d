"""The playground as a folder of static files."""

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proxlearn.common.files import writable_folder, write_atomically
from proxlearn.playground.graphs import graphs
from proxlearn.playground.playable import Playable
from proxlearn.playground.runtime import LICENSE, SCRIPT, WASM, runtime

PAGE = Path(__file__).parent / "page"


def write(out: Path, playables: Sequence[Playable], say: Callable[[str], None]) -> Path:
    """Write the page, the operators and what runs them into the folder; gives where the page is."""
    folder, given = writable_folder(out), runtime()
    for each in sorted(PAGE.iterdir()):
        write_atomically(folder / each.name, each.read_bytes())
    write_atomically(folder / "onnxruntime-web-LICENSE.txt", given[LICENSE])
    packed = {"script": given[f"{SCRIPT}.gz"], "wasm": given[f"{WASM}.gz"]}
    _write_data(folder, "runtime", {name: _text(each) for name, each in packed.items()})
    for each in playables:
        say(f"{each.title}: writing its operator as ONNX ...")
        exported = graphs(each.operator, each.space, each.tau)
        content = {
            name: _text(gzip.compress(graph, 6, mtime=0)) for name, graph in exported.items()
        }
        _write_data(folder, each.name, content)
    _write_data(folder, "problems", [each.about() for each in playables])
    return folder / "index.html"


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _write_data(folder: Path, name: str, content: Any) -> None:
    """As a script: a page that is opened from a file may load nothing else."""
    written = f"Assets.add({json.dumps(name)}, {json.dumps(content)});\n"
    write_atomically(folder / "data" / f"{name}.js", written)
