"""The README for a package index, which knows no files of the repository (a hook of hatchling).

Pictures and links then have whole addresses, of this version in the repository that
`PROXLEARN_REPOSITORY` names when the package is built. Without it there are neither: a picture that
is not there would be worse.
"""

import os
import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)]+)\)")


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        root, address = Path(self.root), os.environ.get("PROXLEARN_REPOSITORY")
        version = runpy.run_path(str(root / "src/proxlearn/version.py"))["__version__"]
        text = for_index((root / "README.md").read_text(), address, f"v{version}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if address:
            metadata["urls"] = {"Repository": address}


def for_index(text: str, address: str | None, tag: str) -> str:
    """The README with whole addresses, as GitHub has them."""
    if not address:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    address = address.rstrip("/")
    text = PICTURE.sub(rf"![\1]({address}/raw/{tag}/\2)", text)
    return LINK.sub(rf"[\1]({address}/blob/{tag}/\2)", text)
