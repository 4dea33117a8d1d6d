"""Run the notebooks and keep their outputs: python notebooks/run.py [NAME ...]"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent


def main() -> None:
    names = sys.argv[1:] or [path.stem for path in sorted(FOLDER.glob("*.ipynb"))]
    for name in names:
        path = FOLDER / f"{name}.ipynb"
        book = nbformat.read(path, as_version=4)
        with TemporaryDirectory() as folder:  # for what the notebook writes
            where = {"metadata": {"path": folder}}
            NotebookClient(book, timeout=600, resources=where, record_timing=False).execute()
        nbformat.write(book, path)
        print(path)


if __name__ == "__main__":
    main()
