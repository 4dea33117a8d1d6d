"""The operators of built-in problems: their cards, and files that are brought in."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import proxlearn as px
from proxlearn.cli.main import main
from proxlearn.operators.card import ROWS, card_of
from proxlearn.operators.shipped import available, bring, own_folder, shipped
from proxlearn.problems import names
from proxlearn.problems.maxcut import Maxcut


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROXLEARN_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def file(tiny: dict, tmp_path: Path) -> Path:
    """An operator for a built-in problem without a shipped one."""
    return px.learn(px.problem("sparse-mcp"), steps=1, **tiny).save(tmp_path / "mine.safetensors")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a server that offers the folder of the file."""
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=tmp_path))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


# Cards


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_operator_has_a_whole_card(name: str):
    card = card_of(px.pretrained(name, "cpu"))
    assert tuple(card) == ROWS
    assert "not said" not in card.values()
    assert card["licence"] == "MIT"
    assert "steps in" in card["budget"]
    assert "of the starts end at an optimum" in card["quality"]


def test_the_card_says_what_it_was_trained_on():
    assert card_of(px.pretrained("maxcut", "cpu"))["data"] == Maxcut(8, most=32).drawn_from
    assert px.problem("conic").drawn_from == "taus drawn uniformly from [-1, 1]^6"
    assert px.problem("cosine").drawn_from == "a single objective"
    for name in names():
        assert len(px.problem(name).drawn_from) > 10


def test_what_a_file_does_not_say_is_not_made_up(wells: px.Problem, tiny: dict):
    card = card_of(px.learn(wells, steps=1, **tiny))
    assert card["data"] == "taus drawn uniformly from [0.5, 1.5]^2"
    assert card["licence"] == card["quality"] == "not said"
    operator = px.pretrained("rotation", "cpu")
    assert ("poor" in card_of(operator)["quality"]) == bool(operator.doubtful)


def test_the_list_of_problems_shows_the_cards(home: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        main(["problems"])
    assert not ended.value.code
    shown = capsys.readouterr()
    for name in names():
        assert name in shown.out
    assert "licence" in shown.out
    assert shown.out.count("MIT") == len(shipped())
    err = " ".join(shown.err.split())
    assert "No operator is shipped for detection," in err
    assert "proxlearn bring FILE" in err


def test_one_problem_is_loaded_without_the_others():
    script = (
        "import sys, proxlearn as px; px.pretrained('conic', 'cpu');"
        "print(*[m for m in sys.modules if m.startswith(('proxlearn.problems.', 'scipy'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    loaded = {each.removeprefix("proxlearn.problems.") for each in done.stdout.split()}
    assert loaded == {"base", "load", "objectives", "conic"}


# What is not shipped


def test_a_problem_without_an_operator_says_how_to_have_one(home: Path):
    said = r"proxlearn train sparse-mcp .* `proxlearn bring FILE`"
    with pytest.raises(px.InputError, match=said):
        px.pretrained("sparse-mcp")
    with pytest.raises(px.UnknownNameError, match="conic, cosine"):
        px.pretrained("nothing")


def test_a_file_is_brought_in_and_found(home: Path, file: Path):
    name, copy, found = bring(file)
    assert (name, found) == ("sparse-mcp", digest(file))
    assert copy.parent == own_folder() == home / "operators"
    assert available()["sparse-mcp"] == copy
    operator = px.pretrained("sparse-mcp", "cpu")
    expected = px.load(file, "cpu").solve([0.5], starts=8).points
    assert torch.equal(operator.solve([0.5], starts=8).points, expected)
    assert px.solve("sparse-mcp", [0.5], starts=4).method == "operator"


def test_the_folder_of_a_training_is_brought_in(home: Path, file: Path):
    (file.parent / "run").mkdir()
    file.rename(file.parent / "run" / "operator.safetensors")
    assert bring(file.parent / "run")[0] == "sparse-mcp"


def test_a_hash_that_is_another_brings_in_nothing(home: Path, file: Path):
    with pytest.raises(px.FileError, match="Nothing was brought in"):
        bring(file, "0" * 64)
    assert not own_folder().exists()
    assert bring(file, digest(file).upper())[0] == "sparse-mcp"


def test_a_file_that_changed_since_is_refused(home: Path, file: Path):
    _, copy, _ = bring(file)
    content = bytearray(copy.read_bytes())
    content[-1] ^= 1
    copy.write_bytes(content)
    with pytest.raises(px.FileError, match="not the file that was brought in"):
        px.pretrained("sparse-mcp", "cpu")
    copy.with_suffix(".sha256").unlink()
    with pytest.raises(px.FileError, match="no hash"):
        px.pretrained("sparse-mcp", "cpu")


def test_a_file_comes_from_the_web_with_its_hash(home: Path, file: Path, served: str):
    address = f"{served}/{file.name}"
    with pytest.raises(px.InputError, match="give the SHA-256"):
        bring(address)
    with pytest.raises(px.FileError, match="Nothing was brought in"):
        bring(address, "0" * 64)
    with pytest.raises(px.FileError, match=r"cannot be brought in: .*404"):
        bring(f"{served}/another", digest(file))
    assert bring(address, digest(file))[2] == digest(file)
    assert px.pretrained("sparse-mcp", "cpu").provenance["problem"] == "sparse-mcp"


def test_what_is_of_no_use_is_not_brought_in(home: Path, tmp_path: Path, wells, tiny: dict):
    own = px.learn(wells, steps=1, **tiny).save(tmp_path / "wells.safetensors")
    with pytest.raises(px.InputError, match="'wells', which is no built-in problem"):
        bring(own)
    with pytest.raises(px.InputError, match="An operator is shipped for 'cosine'"):
        bring(shipped()["cosine"])
    (tmp_path / "text").write_text("no operator")
    with pytest.raises(px.FileError, match="not a whole safetensors file"):
        bring(tmp_path / "text")
    with pytest.raises(px.FileError, match="no operator file at"):
        bring(tmp_path / "nothing")
    fits_not = px.load(own, "cpu")
    fits_not.provenance["problem"] = "sparse-mcp"
    with pytest.raises(px.InputError, match="was trained for"):
        bring(fits_not.save(tmp_path / "liar.safetensors"))
    assert not own_folder().exists()


def test_the_command_brings_in_and_says_so(home: Path, file: Path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["bring", str(file), "--hash", digest(file)])
    assert not ended.value.code
    shown = SimpleNamespace(**capsys.readouterr()._asdict())
    assert "taus drawn uniformly" in " ".join(shown.out.split())
    assert digest(file) in shown.err
    with pytest.raises(SystemExit) as ended:
        main(["problems"])
    assert "brought in" in capsys.readouterr().out
