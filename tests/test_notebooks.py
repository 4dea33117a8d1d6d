"""The notebooks run from start to end, in one kernel, with a training of a blink."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUICK = {  # what is cut short, and to what
    "seconds=30": "steps=2, instances=12, points=8, applications=2, device='cpu'",
    "starts=256": "starts=32",
    "range(20)": "range(2)",
    "(vertices, faces))": "(vertices, faces), starts=24)",
    "(longer, faces))": "(longer, faces), starts=24)",
}

nbformat = pytest.importorskip("nbformat", reason="needs proxlearn[notebook]")
nbclient = pytest.importorskip("nbclient", reason="needs proxlearn[notebook]")
pytest.importorskip("ipykernel", reason="needs proxlearn[notebook]")


def cut_short(source: str) -> str:
    for long, short in QUICK.items():
        source = source.replace(long, short)
    return source


def test_the_notebooks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    together = nbformat.v4.new_notebook()
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        code = [cut_short(cell.source) for cell in cells if cell.cell_type == "code"]
        together.cells += [nbformat.v4.new_code_cell(each) for each in ("%reset -f", *code)]
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(together, timeout=120, resources=where).execute()
    assert (tmp_path / "himmelblau.safetensors").is_file()
    assert (tmp_path / "prism.png").is_file()


def test_what_is_cut_short_is_there():
    sources = "".join(path.read_text() for path in NOTEBOOKS)
    assert [long for long in QUICK if long not in sources] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_what_it_gave(path: Path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert book.cells[0].source.startswith("# ")
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    outputs = [output for cell in code for output in cell.outputs]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [each for each in outputs if each.output_type == "error"]
    assert not [each for each in outputs if each.get("name") == "stderr"]
    assert [each for each in outputs if "image/png" in each.get("data", {})]
