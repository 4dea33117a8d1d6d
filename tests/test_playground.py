"""The playground: its page in a real browser, beside what Python says; its folder and server."""

import json
import math
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from _browsing import SETTLED
from making import untrained
from playing import CLOSE, drag, made

import proxlearn as px
from proxlearn.answers.clusters import TOLERANCE
from proxlearn.answers.solutions import Solutions
from proxlearn.cli.main import main
from proxlearn.common.files import read_rows
from proxlearn.errors import FileError, InputError
from proxlearn.instances import Vectors
from proxlearn.networks.coupling import Coupling
from proxlearn.playground import runtime
from proxlearn.playground.playable import Playable
from proxlearn.playground.serve import address, serving
from proxlearn.playground.shown import built_in, own

pytestmark = pytest.mark.whole  # it exports operators, in graphs whose sizes are no int
ROOT = Path(__file__).parent.parent
PHONE = {"width": 390, "height": 844}
SOON = 100  # milliseconds from a move to the points that follow it
SMALL = Coupling(blocks=1, width=8, shared=8)
BUILT_IN = {each.name: each for each in built_in()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page with the operator for conics."""
    return made(tmp_path_factory.mktemp("playground"), [BUILT_IN["conic"]])


def test_the_page_agrees_with_python_and_follows_a_slider(folder: Path, visit: Callable[..., Any]):
    page = visit((folder / "index.html").as_uri())
    for preset in ("circle", "tilted hyperbola", "one line"):
        tau = BUILT_IN["conic"].presets()[preset]
        assert_agrees(page, BUILT_IN["conic"], tau)
    begun, before = page.evaluate("[App.state.history.at(-1), App.state.tau[0]]")
    slider, times = page.get_by_label("A x²"), []
    for _ in range(20):
        slider.press("ArrowLeft")
        page.wait_for_function(
            "before => App.state.tau[0] < before && App.state.latency", arg=before
        )
        before = page.evaluate("App.state.tau[0]")
        times.append(page.evaluate("App.state.latency"))
    assert min(times) < SOON, times  # the median is measured by benchmarks/playground.py
    page.wait_for_function(SETTLED)
    assert "from 1,024 starts" in page.inner_text("#status")
    ended = page.evaluate("App.state.history.at(-1)")
    assert len(begun) == len(ended) == 2 * 1024
    assert begun != ended


def assert_agrees(page: Any, shown: Playable, tau: list[float]) -> None:
    """The page from the same starts: the points, and the list of distinct optima."""
    operator, space = shown.operator, shown.space
    operator.precision = "fp32"
    batch = torch.tensor(tau).reshape(shown.tau.shape)
    x = space.sample(1, 200, generator=torch.Generator().manual_seed(1))
    operator.problem = shown.known
    found = operator.solve(batch, starts=x, steps=operator.applications)
    told = page.evaluate("([tau, x]) => App.answer(tau, x)", [tau, x.flatten().tolist()])
    points = torch.tensor(told["points"]).view_as(found.points[0])
    assert float((points - found.points[0]).abs().max()) < CLOSE * space.diameter
    optima = found.rounded().unique()
    assert len(told["optima"]) == len(optima)
    assert told["unconverged"] == pytest.approx(optima.unconverged, abs=1e-6)
    left = list(told["optima"])
    for each in optima:  # equally good ones may come in another order

        def far(other: dict[str, Any], each: dict[str, Any] = each) -> float:
            return max(abs(a - b) for a, b in zip(other["point"], each["point"]))

        same = min(left, key=far)
        left.remove(same)
        close = CLOSE
        if shown.known is None:  # then a point is the most central one, of which two may be
            close = TOLERANCE * space.diameter
            assert same["value"] is None
        else:
            assert same["value"] == pytest.approx(each["value"], abs=CLOSE, rel=CLOSE)
        assert same["share"] == pytest.approx(each["share"], abs=1e-6)
        assert same["kind"] == each["kind"]
        assert each["kind"] == "continuum" or far(same) < close


def test_the_merging_rule_is_that_of_python(folder: Path, visit: Callable[..., Any]):
    """Without an objective, on points of many kinds: crowded, strung along curves, strewn."""
    page = visit((folder / "index.html").as_uri(), "() => true")
    draw, space = torch.Generator().manual_seed(0), px.Box(-1.0, 1.0, dim=2)
    written = {"dim": 2, "low": [-1, -1], "high": [1, 1], "diameter": space.diameter}
    for k in range(12):
        angle = torch.rand(120, 1, generator=draw) * (1 + k % 5)
        curve = torch.cat((angle.cos(), angle.sin()), 1) * 0.8
        places = torch.rand(4, 2, generator=draw)[torch.randint(4, (100,), generator=draw)] - 0.9
        crowd = places + 0.003 * torch.randn(100, 2, generator=draw)
        strewn = 2.2 * torch.rand(5 * k, 2, generator=draw) - 1.1
        points = torch.cat((curve, crowd, strewn))[None]
        optima = Solutions.of(space, points, points).unique()
        told = page.evaluate(
            "([s, x]) => Distinct.optima(s, x, null)", [written, points[0].tolist()]
        )
        assert sorted(each["hits"] for each in told["optima"]) == sorted(optima.hits.tolist())
        assert sorted(each["dimension"] for each in told["optima"]) == sorted(
            optima.dimension.tolist()
        )


def test_the_objectives_are_those_of_python(folder: Path, visit: Callable[..., Any]):
    page = visit((folder / "index.html").as_uri(), "() => true")
    for shown in BUILT_IN.values():
        if shown.known is None or shown.name == "maxcut":
            continue  # the values of the latter are those of cuts
        x = shown.space.sample(1, 50, generator=torch.Generator().manual_seed(2))
        value = shown.known.objective(x, shown.tau)[0]
        told = page.evaluate(
            "([name, tau, x]) => x.map((each) => Objectives[name](each, tau))",
            [shown.about()["objective"], shown.start, x[0].tolist()],
        )
        assert torch.tensor(told).allclose(value, rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_every_built_in_problem_agrees_with_python(tmp_path: Path, visit: Callable[..., Any]):
    made(tmp_path, [each for each in BUILT_IN.values() if each.name != "symmetry"])
    for name, shown in BUILT_IN.items():
        if name == "symmetry":
            continue  # has a test of its own
        page = visit(f"{(tmp_path / 'index.html').as_uri()}#{name}")
        taus = list(shown.presets().values())[:3] or [[]]
        for tau in taus:
            assert_agrees(page, shown, tau)


@pytest.mark.slow
def test_the_benchmark_of_moves_runs(tmp_path: Path, browser: Any):
    """In a process of its own, as the browser of these tests keeps another from this one."""
    command = [sys.executable, ROOT / "benchmarks/playground.py", "--quick", "--out", tmp_path]
    subprocess.run(command, check=True)
    (row,) = read_rows(tmp_path / "playground.jsonl")
    assert 0 < row["answer_ms"] <= row["answer_ms_slowest_tenth"]


@pytest.mark.slow
def test_peaks_and_edges_are_dragged(tmp_path: Path, visit: Callable[..., Any]):
    made(tmp_path, [BUILT_IN["peaks"], BUILT_IN["maxcut"]])
    page = visit((tmp_path / "index.html").as_uri())
    box, tau = page.locator("#picture").bounding_box(), page.evaluate("App.state.tau")
    x, y = box["x"] + tau[0] * box["width"], box["y"] + (1 - tau[1]) * box["height"]
    drag(page, x, y, x - 50, y + 40)
    moved = page.evaluate("App.state.tau")
    assert moved[0] == pytest.approx(tau[0] - 50 / box["width"], abs=0.01)
    assert moved[1] == pytest.approx(tau[1] - 40 / box["height"], abs=0.01)
    page.wait_for_function(SETTLED)
    page.click("#problem-maxcut")
    page.wait_for_function("() => App.state.about?.name === 'maxcut'")
    page.wait_for_function(SETTLED)
    weight = page.evaluate("App.state.tau[1]")  # of the edge between the first two vertices
    angles = torch.tensor([-torch.pi / 2, -torch.pi / 4])
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    x += 0.39 * box["width"] * float(angles.cos().mean())
    y += 0.39 * box["height"] * float(angles.sin().mean())
    drag(page, x, y, x, y + 60)
    assert page.evaluate("App.state.tau[1]") < weight - 0.05


def test_an_operator_of_ones_own_is_served_and_fits_a_phone(
    folder: Path, tmp_path: Path, visit: Callable[..., Any]
):
    space = px.Box(-1.0, 2.0, dim=3)
    operator = untrained(space, Vectors((0.0, 1.0), (1.0, 3.0)), SMALL)
    with serving(tmp_path, [own(operator, "mine")]) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        page = visit(address(running), viewport=PHONE, color_scheme="dark")
        running.shutdown()
    assert page.evaluate("App.state.about.title") == "mine"
    said = page.inner_text("#status")
    assert "256 starts" in said  # fewer on a phone
    assert "no objective is known" in said
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
    assert page.evaluate(UNNAMED) == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "problem-own"
    x = space.sample(1, 50, generator=torch.Generator().manual_seed(0))
    told = page.evaluate("x => App.answer([0.2, 1.4], x)", x.flatten().tolist())
    found = operator.solve([0.2, 1.4], starts=x, steps=operator.applications)
    points = torch.tensor(told["points"]).view_as(found.points[0])
    assert points.allclose(found.points[0], atol=CLOSE)


def test_on_a_phone_the_list_fits_and_the_chosen_problem_is_in_view(
    tmp_path: Path, visit: Callable[..., Any]
):
    space = px.Box(-1.0, 2.0, dim=6)
    mine = own(untrained(space, Vectors((0.0,), (1.0,)), SMALL), "An operator of my own")
    made(tmp_path, [replace(mine, name=f"own-{k}") for k in range(3)])
    page = visit(f"{(tmp_path / 'index.html').as_uri()}#own-2", viewport=PHONE)
    assert page.locator("#optima tr >> nth=1").inner_text().count(",") == 5  # six coordinates
    wide = page.evaluate(
        "(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])"
        "(document.querySelector('.scroll'))"
    )
    assert wide[0] <= wide[1]
    chosen = page.locator("#problem-own-2").bounding_box()
    assert chosen["x"] >= 0
    assert chosen["x"] + chosen["width"] <= PHONE["width"]


def test_no_number_is_minus_zero(folder: Path, visit: Callable[..., Any]):
    page = visit((folder / "index.html").as_uri(), "() => true")
    page.evaluate("""() => Listing.fill(document.getElementById("optima"), {view: "plane"},
        {optima: [{point: [-1e-9, -0.5], value: null, share: 1, kind: "point"}]}, -1, () => {})""")
    assert page.locator("#optima td").last.inner_text() == "0.0000, \N{MINUS SIGN}0.5000"


UNNAMED = """() => [...document.querySelectorAll("input, select, button, canvas")].filter((each) =>
    !each.labels?.length && !each.getAttribute("aria-label") && !each.textContent.trim())
    .map((each) => each.outerHTML)"""


@pytest.mark.parametrize(
    ("space", "numbers", "said"),
    [(px.Sphere(3), 2, "boxes of up to"), (px.Box(0.0, 1.0, dim=2), 40, "up to 24 numbers")],
)
def test_what_the_page_cannot_show_is_refused(space: px.Space, numbers: int, said: str):
    operator = untrained(space, Vectors((0.0,) * numbers, (1.0,) * numbers), SMALL)
    with pytest.raises(InputError, match=said):
        own(operator, "mine")


def test_an_operator_of_ones_own_for_a_known_problem_has_its_objective():
    conic = BUILT_IN["conic"]
    assert conic.known is not None
    provenance = {"problem": "conic"}
    operator = px.Operator.untrained(conic.known, SMALL, provenance=provenance)
    about = own(operator, "mine").about()
    assert about["objective"] == "conic"
    assert about["title"] == "mine"
    other = untrained(px.Box(0.0, 1.0, dim=2), Vectors((0.0,), (1.0,)), SMALL)
    other.provenance = provenance
    assert own(other, "mine").about()["objective"] is None


@pytest.mark.parametrize(
    ("of", "numbers", "said"),
    [("sparse", 2, ["alpha", "p"]), ("sparse", 1, ["tau 1"]), ("mine", 2, ["tau 1", "tau 2"])],
)
def test_the_sliders_of_sparse_recovery_have_the_names_of_the_paper(
    of: str, numbers: int, said: list[str]
):
    box, tau = px.Box(-2.0, 2.0, dim=8), Vectors((0.0,) * numbers, (1.0,) * numbers)
    operator = untrained(box, tau, SMALL)
    operator.provenance = {"problem": of}
    assert list(own(operator, "mine").about()["tau"]["labels"]) == said


def test_only_the_known_runtime_is_unpacked(tmp_path: Path):
    with pytest.raises(FileError, match="SHA-256"):
        runtime.unpack(b"something else", tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_a_network_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(runtime, "FOLDER", tmp_path / "empty")
    monkeypatch.setattr(runtime, "URL", (tmp_path / "nowhere.tgz").as_uri())
    with pytest.raises(SystemExit):
        main(["play", "--out", str(tmp_path / "page")])
    assert "npm pack onnxruntime-web@" in " ".join(capsys.readouterr().err.split())


def test_a_port_that_is_taken_is_an_error_in_a_sentence(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(InputError, match="Port"),
            serving(tmp_path, [], taken.getsockname()[1]),
        ):
            pass


def test_what_the_page_is_told_is_json():
    for shown in BUILT_IN.values():
        about = json.loads(json.dumps(shown.about(), allow_nan=False))
        assert math.prod(about["tau"]["shape"]) == shown.tau.numel()
