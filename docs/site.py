"""What the site has beside the pages of this folder (a hook of mkdocs, see mkdocs.yml): the help of
every command, CONTRIBUTING and CHANGELOG, the files that pages link to, and formulas."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
# Files that become pages, for links to lead to.
SHOWN = {".py": "python", ".json": "json", ".ipynb": "notebook"}
PICTURES = (".png",)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)(\.\./)?([^)#]+)(#[^)]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A formula is a block of LaTeX called `math`; it becomes MathML, which browsers draw."""
    fence = {"name": "math", "class": "math", "format": formula}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def formula(source: str, *_: Any, **__: Any) -> str:
    # The converter knows the one, GitHub the other.
    source = source.replace(r"\arg\min", r"\argmin")
    return f'<p class="math">{convert(source, display="block")}</p>'


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and those of the files that pages link to."""
    made = {
        "contributing.md": at_root("CONTRIBUTING.md"),
        "changes.md": at_root("CHANGELOG.md"),
    }
    written = [page.content_string for page in files.documentation_pages()]
    linked = {link[3] for text in (*written, *made.values()) for link in LINK.finditer(text)}
    made |= {f"source/{path}.md": source(path) for path in linked if is_shown(path)}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    for path in filter(is_picture, linked):
        picture = File.generated(config, f"source/{path}", abs_src_path=str(ROOT / path))
        files.append(picture)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to files outside lead to the pages made of them; else only their words stay.
    The page of the command line gets the help of every command."""
    if page.file.src_uri == "commands.md":
        markdown += "\n" + commands()

    def inside(link: re.Match[str]) -> str:
        words, up, path, section = link.groups()
        if not up:
            return link.group()
        if path == "CONTRIBUTING.md":
            return f"[{words}](contributing.md{section or ''})"
        if is_picture(path):
            return f"[{words}](source/{path})"
        return f"[{words}](source/{path}.md)" if is_shown(path) else words

    return markdown if page.file.src_uri.startswith("source/") else LINK.sub(inside, markdown)


def at_root(name: str) -> str:
    """A page that lies above this folder, with its links as from here."""

    def from_here(link: re.Match[str]) -> str:
        words, _, path, section = link.groups()
        path = path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
        return f"[{words}]({path}{section or ''})"

    return LINK.sub(from_here, (ROOT / name).read_text())


def is_shown(path: str) -> bool:
    return Path(path).suffix in SHOWN and (ROOT / path).is_file()


def is_picture(path: str) -> bool:
    return Path(path).suffix in PICTURES and (ROOT / path).is_file()


def source(path: str) -> str:
    """A page with a file in it."""
    if path.endswith(".ipynb"):
        return notebook(ROOT / path)
    front = "---\nsearch:\n  exclude: true\n---\n"
    return f"{front}# {path}\n\n````{SHOWN[Path(path).suffix]}\n{(ROOT / path).read_text()}\n````\n"


def notebook(path: Path) -> str:
    """A page of a notebook: its words, its code and what that gave."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
        else:
            parts += [f"```python\n{text}\n```", *map(output, cell["outputs"])]
    return "\n\n".join(parts) + "\n"


def output(given: dict[str, Any]) -> str:
    """What a cell gave: a picture, a table, or text."""
    data = given.get("data", {})
    if "image/png" in data:
        picture = f"data:image/png;base64,{data['image/png'].strip()}"
        return f'<img alt="what the code draws" src="{picture}">'
    if "text/html" in data:
        table = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        table = table.replace('<table border="1" class="dataframe">', "<table>")  # as all others
        return "\n".join(line for line in table.splitlines() if line.strip())
    text = "".join(data.get("text/plain") or given.get("text", ""))
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)  # colours of a terminal
    return f"```text\n{text.rstrip()}\n```"


def commands() -> str:
    """Every command with its help, its options and examples."""
    docs = ["-m", "typer", "proxlearn.cli.main", "utils", "docs", "--name", "proxlearn"]
    made = subprocess.run([sys.executable, *docs], capture_output=True, text=True, check=True)
    text = made.stdout[made.stdout.index("## ") :]  # what comes before is said on the page
    return re.sub(r"^(proxlearn .*)$", r"    \1", text, flags=re.MULTILINE)
