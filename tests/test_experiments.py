"""The experiments from training to figures, at sizes that take a second."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import copytree

import pytest
import torch

import proxlearn as px
from proxlearn.answers import starts as beginning
from proxlearn.common.files import read_rows
from proxlearn.experiments import (
    _shared,
    collapse,
    conic,
    cosine,
    counting,
    detection,
    growing,
    maxcut,
    measurements,
    peaks,
    shrinkage,
    sparse,
    symmetry,
    trust,
)
from proxlearn.experiments import base as experiments
from proxlearn.meshes.mesh import scaled
from proxlearn.meshes.parts import part
from proxlearn.problems.symmetry import of_surfaces
from proxlearn.solvers.base import Solver
from proxlearn.solvers.descent import Descent
from proxlearn.solvers.swarm.network import load_swarm
from proxlearn.training import judge

NETWORK = {"blocks": 1, "width": 16, "shared": 16}
TRAINING = {"steps": 4, "instances": 6, "points": 4, "depth": 1, "architecture": NETWORK}
pytestmark = pytest.mark.whole
FOLDER = _shared.Folder(Path("nowhere"), device="cpu", progress=False)

SPARSE = replace(
    sparse.QUICK,
    training=TRAINING,
    applications=2,
    hops=1,
    gol_applications=3,
    settling=20,
    descent=20,
    proximal_gradient=60,
    starts=32,
    curve=(0, 2),
)

BOXES = detection.Sizes(
    length={"steps": 2},
    longer={"steps": 3},
    recipe={
        "sampling": "unfold",
        "depth": 1,
        "lam": (0.5, 20.0),
        "instances": 2,
        "points": 2,
        "near": 0.5,
    },
    network={"mixed": 8, "channels": 8, "width": 8},
    fixed={"instances": 2},
    begun=((0.0, "unfold"), (1.0, "pool")),
    applications=(1,),
    pooled_applications=(1, 2),
    starts=8,
    side=64,
    images=3,
    calibrated=2,
)


@pytest.fixture(autouse=True, scope="module")
def tiny_sizes() -> Iterator[None]:
    """The quick versions, smaller still."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_tiny(monkeypatch)
        yield


def make_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = replace(
        conic.QUICK,
        training=TRAINING,
        descent={"steps": 20, "rate": 0.1},
        instances=4,
        starts=32,
        witnesses=16,
        trials=2,
        curve=(0, 1, 2),
    )
    monkeypatch.setattr(conic, "QUICK", sizes)
    monkeypatch.setattr(shrinkage, "QUICK", shrinkage.Sizes(training=TRAINING, dims=(2, 4)))
    monkeypatch.setattr(sparse, "QUICK", SPARSE)
    monkeypatch.setattr(measurements, "QUICK", replace(SPARSE, sets=measurements.SETS))
    monkeypatch.setattr(sparse, "AT_REST", sparse.AT_REST | {"steps": 20})
    monkeypatch.setattr(sparse, "find_spec", lambda name: None)  # skglm compiles for long
    network = {"kind": "cut_circles", "blocks": 1, "width": 4}
    small = TRAINING | {"architecture": network, "applications": 3}
    cuts = replace(
        maxcut.QUICK,
        training=small,
        any_size=small,
        descent={"steps": 20, "rate": 0.1},
        instances=4,
        starts=16,
        witnesses=16,
        trials=2,
        cut_graphs=6,
        large=(6, 10),
        large_graphs=2,
        large_starts=4,
    )
    monkeypatch.setattr(maxcut, "QUICK", cuts)
    monkeypatch.setattr(maxcut, "APPLICATIONS", 3)
    few = {"instances": 3, "starts": 16}
    descent = {"steps": 20, "rate": 0.1}
    seen = {
        "training": TRAINING,
        "lam": None,
        "descent": descent,
        "witnesses": 16,
        "trials": 2,
        "curve": (0, 2),
    }
    monkeypatch.setattr(collapse, "QUICK", replace(collapse.QUICK, **seen, **few))
    lams = {"lam": (growing.LAMS[0], growing.LAMS[-1])}
    monkeypatch.setattr(growing, "FLOW", growing.FLOW | {"steps": 50})
    monkeypatch.setattr(
        growing, "QUICK", growing.Sizes(TRAINING | lams, applications=(0, 2), **few)
    )
    landscapes = {"landscapes": 2, "starts": (8,), "descent": descent, "automatic": ("lbfgs",)}
    monkeypatch.setattr(peaks, "QUICK", peaks.Sizes(TRAINING, **landscapes))
    monkeypatch.setattr(trust, "QUICK", trust.Sizes(TRAINING, ("himmelblau",), 1, 16, 64))
    swarm = {"steps": 2, "runs": 10, "unroll": 2}
    monkeypatch.setattr(cosine, "QUICK", cosine.Sizes(TRAINING, swarm, starts=64, swarm_runs=4))
    monkeypatch.setattr(counting, "QUICK", counting.Sizes(TRAINING, TRAINING, 64, instances=2))
    brief = {"steps": 2, "instances": 2, "points": 2, "depth": 1, "applications": 2}
    planes = symmetry.Sizes(
        looking=brief,
        pooled=brief | {"architecture": NETWORK},
        gradient=brief | {"rule": "gradient", "descents": 1},
        truth={"steps": 3, "falling": True},
        applications=(2,),
        parts=1,
        starts=4,
        witnesses=16,
        trials=1,
        seeds=(0,),
    )
    monkeypatch.setattr(symmetry, "QUICK", planes)
    monkeypatch.setattr(detection, "QUICK", BOXES)
    monkeypatch.setattr(detection, "PAGE", 6)
    monkeypatch.setattr(judge, "FEW", 2)
    plates = [scaled(part("plate", torch.Generator().manual_seed(k)).mesh)[0] for k in range(4)]
    monkeypatch.setattr(of_surfaces, "generated", lambda: plates)
    monkeypatch.setattr(of_surfaces, "GENERATED", 3)
    monkeypatch.setattr(
        beginning, "FIRST_STARTS", 64
    )  # of "auto", which an untrained operator never ends
    monkeypatch.setattr(beginning, "MOST_STARTS", 128)


def run(name: str, out: Path, **options) -> Path:
    return experiments.run(name, out, quick=True, device="cpu", progress=False, **options)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, tiny_sizes: None) -> Callable[[str], Path]:
    """The folder of an experiment's run, which is made once: to be read, not to be written to."""
    return cache(lambda name: run(name, tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("name", experiments.names())
def test_every_experiment_writes_rows_a_table_and_figures(name: str, ran: Callable[[str], Path]):
    folder = ran(name)
    rows = read_rows(folder / "rows.jsonl")
    assert all(r["experiment"] == name and r["quick"] and "seed" in r for r in rows)
    assert all(not isinstance(v, dict | list) for r in rows for v in r.values())
    table = (folder / "table.md").read_text()
    assert table.startswith(f"# {experiments.about(name)}")
    assert experiments.quick_leaves_out(name) in table
    assert all(p.read_bytes().startswith(b"\x89PNG") for p in folder.glob("*.png"))
    assert list(folder.glob("*.png"))
    assert list(folder.glob("*/operator.safetensors"))


def test_conic_measures_what_the_paper_does(ran: Callable[[str], Path]):
    folder = ran("conic")
    rows = read_rows(folder / "rows.jsonl")
    witnessed = [r for r in rows if r["measure"] == "witnessed"]
    labels = [f"POL, {k} applications" for k in (3, 5, 10, 20)]
    labels += ["GOL, 100 applications", "PD, other starts"]
    assert [(r["label"], r["threshold"]) for r in witnessed] == [
        (label, t) for label in labels for t in (0.05, 0.1, 0.2)
    ]
    assert sum(name.startswith("wp@") for name in witnessed[0]) == 50
    curves = [r for r in rows if r["measure"] == "convergence"]
    assert len(curves) == 3 * 3 * 3  # methods, conics, points of the curve
    at_start = {r["mean"] for r in curves if r["applications"] == 0 and r["instance"] == 0}
    assert len(at_start) == 1  # 0 applications are the starts, the same for all
    check_published_beside_ours((folder / "table.md").read_text().splitlines())


def test_conic_curves_take_every_step_once(monkeypatch: pytest.MonkeyPatch):
    """Descent is read along its way, not begun anew for every point of its curve."""
    steps, one_step = [], Descent.one_step
    monkeypatch.setattr(Descent, "one_step", lambda *each: steps.append(1) or one_step(*each))
    rows = conic.convergence_rows(px.problem("conic"), {}, conic.QUICK, FOLDER)
    assert [r["applications"] for r in rows[::3]] == [0, 1, 2]
    assert len(steps) == 200


def check_published_beside_ours(lines: list[str]) -> None:
    (ours,) = (x for x in lines if x.startswith("| POL, 5 applications | 0.05 |"))
    assert ours.endswith("| 0.0599 | 0.73 |")
    (gol,) = (x for x in lines if x.startswith("| GOL, 100 applications | 0.2 |"))
    assert gol.endswith("| 0.118 | 0.541 |")
    assert sum(not x.endswith("| - | - |") for x in lines if x.startswith(("| POL", "| GOL"))) == 6


def test_published_conic_curves_are_read_at_the_deltas_we_use():
    numbers = _shared.published("conic", "POL", 0.1)
    assert numbers["delta"] == pytest.approx(conic.DELTAS, abs=1e-5)
    assert numbers["WP"][0] == 0.7328
    assert len(numbers["WP"]) == 50


def test_maxcut_measures_what_the_paper_does_and_counts_cuts(ran: Callable[[str], Path]):
    folder = ran("maxcut")
    rows = read_rows(folder / "rows.jsonl")
    witnessed = [r for r in rows if r["measure"] == "witnessed"]
    assert [r["label"] for r in witnessed[::4]] == [*maxcut.COLORS]
    assert [r["threshold"] for r in witnessed[:4]] == [0.995, 0.99, 0.9, 0.0]
    assert sum(name.startswith("wp@") for name in witnessed[0]) == 50
    cuts = [r for r in rows if r["measure"] == "maximum cuts"]
    assert all(0 <= r["found_share"] <= 1 and 0 <= r["maximal_share"] <= 1 for r in cuts)
    exchanged = [r for r in cuts if r["label"] == "one-exchange"]
    assert all(r["found_share"] > 0.5 and r["instances"] == 3 for r in exchanged)
    large = [r for r in rows if r["measure"] == "large"]
    assert {r["vertices"] for r in large} == {6, 10}
    assert max(r["of_best"] for r in large) <= 1
    (line,) = (
        x for x in (folder / "table.md").read_text().splitlines() if x.startswith("| POL | 0.995")
    )
    assert line.endswith("| 0.247 | 0.107 | 0.838 |")


def test_published_maxcut_curves_are_read_at_the_deltas_we_use():
    numbers = _shared.published("maxcut", "GOL", 0.99)
    assert numbers["delta"] == pytest.approx(maxcut.DELTAS, abs=1e-5)
    assert _shared.published("maxcut", "PD, other starts", 0.99) == {}


def test_shrinkage_error_is_zero_for_the_closed_form(tmp_path: Path):
    problem = shrinkage.Shrinkage(3)

    class Perfect(px.Operator):
        def solve(self, tau=None, starts=0, steps=None, seed=0):
            assert steps == 1
            return px.Solutions.of(problem.space, problem.proximal(starts), starts)

    watch = shrinkage.error_watch(problem, tmp_path / "error.jsonl", FOLDER)
    report = shrinkage.Report(10, 1.0, 0.5, {})
    watch(report, Perfect.untrained(problem, NETWORK, problem.lam))
    watch(
        report, px.Operator.untrained(problem, NETWORK, problem.lam)
    )  # begins as the identity: every point stands still
    perfect, idle = read_rows(tmp_path / "error.jsonl")
    assert perfect["error"] == 0
    # Standing still is off by min(|x|, 1/2) in each coordinate: a mean square of 1/24 + 1/8.
    assert idle["error"] == pytest.approx(1 / 24 + 1 / 8, rel=0.05)
    assert (perfect["dim"], perfect["step"], perfect["samples"]) == (3, 10, 1024)


def test_growing_steps_fall_from_the_largest_lam_to_the_smallest(ran: Callable[[str], Path]):
    falling = growing.schedules(8)[growing.FALLING]
    assert falling[0] == growing.LAMS[-1]
    assert falling[-1] == growing.LAMS[0]
    assert falling == sorted(falling, reverse=True)
    rows = read_rows(ran("growing") / "rows.jsonl")
    assert [r["lam"] for r in rows][::2] == [growing.FALLING, *growing.LAMS]
    assert len({r["error"] for r in rows if r["applications"] == 0}) == 1  # the starts


def test_collapse_measures_every_variant_beside_descent(ran: Callable[[str], Path]):
    rows = read_rows(ran("collapse") / "rows.jsonl")
    taught = px.load(ran("collapse") / "pol" / "operator.safetensors").arrival is not None
    variants = [name for name in collapse.VARIANTS if taught or name != "arrival"]
    assert [r["label"] for r in rows[:-1:2]] == variants
    assert rows[-1]["label"] == collapse.CEILING
    by = {(r["label"], r["applications"]): r["wd"] for r in rows}
    assert by["plain", 0] == by["safeguard", 0]  # the starts
    assert by["polish", 0] == by["safeguard + polish", 0]
    assert by["safeguard", 2] != by["plain", 2]


def test_peaks_are_counted_against_the_truth():
    problem = px.problem("peaks")
    tau = px.problem("peaks").parameters.sample(1, generator=torch.Generator().manual_seed(1))
    (known,) = problem.truth(tau)
    stray = torch.tensor([[0.01, 0.99]])
    points = torch.cat((known.repeat_interleave(20, 0), stray))[None]
    found = px.Solutions.of(problem.space, points, points).valued(problem, tau)
    counted = peaks.count(found, known)
    assert (counted.found, counted.listed, counted.known) == (
        len(known),
        len(known) + 1,
        len(known),
    )
    certified = peaks.count(found.polished(), known)
    assert certified.found == certified.listed == certified.known == len(known)
    assert certified.covered
    missed = peaks.count(found, torch.cat((known, torch.tensor([[0.5, 0.01]]))))
    assert missed.found == len(known)


def test_shrinkage_follows_every_dimension_to_the_last_step(ran: Callable[[str], Path]):
    rows = read_rows(ran("shrinkage") / "rows.jsonl")
    assert {r["dim"] for r in rows} == {2, 4}
    assert [r["step"] for r in rows if r["dim"] == 4][-1] == TRAINING["steps"]


def test_cosine_trains_with_every_lam_even_zero(ran: Callable[[str], Path]):
    folder = ran("cosine")
    rows = read_rows(folder / "rows.jsonl")
    assert [r["lam"] for r in rows] == [0, 1, 10, 400, 400, None, None]
    assert all(r["known"] == 121 for r in rows)
    assert px.load(folder / "lam0" / "operator.safetensors").lam == 0
    assert "the outer ring is missing" in (folder / "table.md").read_text()


def test_cosine_counts_a_swarm_from_the_starts_of_both_papers(ran: Callable[[str], Path]):
    folder = ran("cosine")
    *_, normal, swarm, swarm_normal = read_rows(folder / "rows.jsonl")
    assert (swarm["method"], swarm["begun"], swarm["starts"]) == ("swarm", "uniform", 64)
    assert (swarm_normal["begun"], swarm_normal["starts"]) == ("normal", 16)  # 4 runs of 4
    assert (normal["method"], normal["begun"]) == ("operator", "normal")
    wells = {tuple(x) for x in cosine.normal_starts(16)[0].round().tolist()}
    assert swarm_normal["begun_in"] == len(wells) < 16
    assert load_swarm(folder / "swarm" / "swarm.safetensors").provenance["steps"] == 2
    lines = (folder / "table.md").read_text().splitlines()
    (said,) = (line for line in lines if line.startswith("| learned swarm | 16 normal"))
    assert said.endswith("| most are missing |")
    outermost = cosine.Cosine().truth(torch.zeros(1, 0))[0]
    polished = px.polish(cosine.Penalized(), None, outermost[None])[0]
    assert (polished - outermost).norm(dim=1).max() < 5e-4  # what the penalty moves


@pytest.fixture
def copied(ran: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of an experiment's folder, to go on in."""
    return lambda name: copytree(ran(name), tmp_path / name)


def test_a_swarm_of_other_settings_is_not_reused(copied: Callable[[str], Path], monkeypatch):
    folder = copied("cosine")
    sizes = replace(cosine.QUICK, swarm={"steps": 3})
    monkeypatch.setattr(cosine, "QUICK", sizes)
    with pytest.raises(px.InputError, match="steps = 2, but 3 is asked for"):
        run("cosine", folder, resume=True)


def test_counting_counts_with_and_without_an_operator(ran: Callable[[str], Path]):
    folder = ran("counting")
    rows = read_rows(folder / "rows.jsonl")
    ways = [(method, asked) for method in counting.METHODS for asked in ("64", "auto")]
    cosine_rows = [r for r in rows if r["problem"] == "cosine"]
    assert [(r["method"], r["asked"]) for r in cosine_rows] == ways
    springs = [r for r in rows if (r["problem"], r["method"]) == ("springs", "lbfgs")]
    assert [(r["asked"], r["instance"]) for r in springs] == [
        (asked, k) for asked in ("64", "auto") for k in (0, 1)
    ]
    for r in springs:  # a small basin may be missed, but nothing else is taken for an optimum
        assert 0.5 * r["known"] < r["right"] <= r["known"]
        assert r["found"] == r["known_of_found"] == r["minima"] == r["right"]
    lines = [x for x in (folder / "table.md").read_text().splitlines() if x.startswith("| springs")]
    assert len(lines) == len(ways) == 6
    assert (
        f" {sum(r['right'] for r in springs[:2])} of {springs[0]['known'] + springs[1]['known']} "
        in lines[0]
    )


def test_counting_finds_the_whole_grid_and_labels_its_edge():
    """40 of the 121 wells are on the edge of the box; each well is begun in."""
    cosine_problem, none = cosine.Cosine(), torch.zeros(1, 0)
    (truth,) = cosine_problem.truth(none)
    beside = truth + 0.1 * torch.rand(121, 2, generator=torch.Generator().manual_seed(0)) - 0.05
    begun = cosine_problem.space.project(beside)
    found = counting.optima(cosine_problem, none, "lbfgs", begun, FOLDER)
    (row,) = counting.count_rows(cosine_problem, none, found, FOLDER)
    assert (row["found"], row["right"], row["known_of_found"], row["known"]) == (121,) * 4
    assert (row["minima"], row["boundary"]) == (81, 40)
    on_edge = (found[0].points.abs() > 4.5).any(1).tolist()
    assert [each == "boundary" for each in found[0].certificates] == on_edge


def test_symmetry_measures_all_methods_in_both_poses(ran: Callable[[str], Path]):
    rows = read_rows(ran("symmetry") / "rows.jsonl")
    every = {(r["pose"], r["label"], r["threshold"]) for r in rows}
    labels = {r["label"] for r in rows}
    poses = (symmetry.OWN, symmetry.RANDOM)
    assert every == {(p, label, t) for p in poses for label in labels for t in symmetry.THRESHOLDS}
    assert {symmetry.CEILING, symmetry.CLASSICAL, symmetry.UNTOUCHED} < labels


def test_nearby_tells_what_is_there_from_what_is_not():
    space = px.Box(0.0, 1.0, dim=2)
    some = torch.tensor([[0.1, 0.1], [0.5, 0.5]])
    assert _shared.nearby(space, some, torch.tensor([[0.1, 0.1005], [0.52, 0.5]]), 1e-3) == 1
    assert _shared.nearby(space, some, some[:0], 1e-3) == 0
    assert _shared.nearby(space, some[:0], some, 1e-3) == 0


def test_sparse_compares_every_method_at_the_same_budget(tmp_path: Path, monkeypatch):
    sizes = replace(SPARSE, sets=("sparse",), lams=(5.0,))
    monkeypatch.setattr(sparse, "QUICK", sizes)
    folder = run("sparse", tmp_path)
    rows = read_rows(folder / "rows.jsonl")
    own = {r["label"]: r for r in rows if r["measure"] == "objective"}
    assert {"POL", "POL, then PGD", "POL, lam = 5", "GOL", "PD, long", "PGD, long"} <= set(own)
    assert {r["starts"] for r in own.values()} == {32}
    equal = [r for label, r in own.items() if label.endswith("as many evaluations")]
    assert {r["evaluations"] for r in equal} == {own["POL, then PGD"]["evaluations"]} == {21}
    long = own["accelerated PGD, long"]
    assert long["best"] <= long["q05"] <= long["q50"] <= long["q95"]
    assert long["at_rest"] > 0.3
    assert 1 <= long["distinct"] <= 32
    trained = {r["label"]: r["lam"] for r in rows if r["measure"] == "training"}
    assert trained.keys() == {"POL", "POL, lam = 5", "GOL"}
    assert trained["POL, lam = 5"] == 5
    assert "skglm is not installed here" in (folder / "table.md").read_text()


def test_sparse_curves_begin_at_the_same_starts():
    problem = px.problem("sparse-half")
    operator = px.learn(problem, device="cpu", progress=False, applications=1, **TRAINING)
    curves = sparse.values_at_alpha(problem, operator, SPARSE, "cpu")
    rows = sparse.convergence_rows(problem.name, curves, SPARSE, FOLDER)
    assert {r["steps"] for r in rows} == {0, 2}
    assert len({r["mean"] for r in rows if r["steps"] == 0}) == 1


def test_sparse_curves_are_of_the_solutions_inside(monkeypatch: pytest.MonkeyPatch):
    """Where everything moves out of the box but for its first quarter, the rest is not counted."""

    class Away(Solver):
        def run(self, problem, tau, starts):
            return torch.cat((starts[:, :8], 0 * starts[:, 8:] + 100), 1)

        def curve(self, problem, tau, starts, at):
            return [self.solutions(problem, tau, starts) for _ in at]

    monkeypatch.setattr(sparse, "solver", lambda method, **settings: Away())  # in place of POL
    problem = px.problem("sparse-half")
    operator = px.learn(problem, device="cpu", progress=False, applications=1, **TRAINING)
    curves = {"away": sparse.values_at_alpha(problem, operator, SPARSE, "cpu")["POL"]}
    for row in sparse.convergence_rows(problem.name, curves, SPARSE, FOLDER):
        assert row["inside"] == 8 / 32
        assert row["mean"] < 1000


@pytest.mark.parametrize("steps", [80, 110, 2000])
def test_sparse_descent_can_cross_the_space(steps: int):
    rate = sparse.descent(steps).rate
    assert rate * steps >= 4
    assert rate <= 0.05
    assert sparse.descent(1).rate == 0.05


def test_sparse_counts_only_solutions_that_are_minima(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sparse, "AT_REST", {"steps": 100, "accelerated": True})
    problem = px.problem("sparse-half")
    tau = torch.tensor([[0.627]])
    starts = px.solve(problem, tau, "descent", starts=64, steps=0, device="cpu")
    ended = px.solve(
        problem, tau, "proximal_gradient", 64, device="cpu", steps=400, accelerated=True
    )
    assert not sparse.at_rest(problem, starts).inside.any()
    assert sparse.at_rest(problem, ended).inside.sum() > 0.95 * ended.inside.sum()


def test_resume_reuses_operators_and_gives_the_same_rows(
    copied: Callable[[str], Path], monkeypatch
):
    folder = copied("cosine")
    before = read_rows(folder / "rows.jsonl")
    monkeypatch.setattr(_shared, "learn", None)  # training again would fail
    monkeypatch.setattr(cosine, "learn_swarm", None)
    again = read_rows(run("cosine", folder, resume=True) / "rows.jsonl")
    assert again == before


def test_resume_with_other_settings_is_refused(copied: Callable[[str], Path], monkeypatch):
    folder = copied("shrinkage")
    other = shrinkage.Sizes(training=TRAINING | {"rate": 0.5}, dims=(2, 4))
    monkeypatch.setattr(shrinkage, "QUICK", other)
    with pytest.raises(px.InputError, match=r"rate = None, but 0\.5"):
        run("shrinkage", folder, resume=True)


def test_without_resume_what_is_trained_is_not_overwritten(copied: Callable[[str], Path]):
    folder = copied("shrinkage")
    before = (folder / "dim2/operator.safetensors").read_bytes()
    with pytest.raises(px.InputError, match="--resume"):
        run("shrinkage", folder)
    assert (folder / "dim2/operator.safetensors").read_bytes() == before


def test_an_interrupted_training_says_how_to_go_on(tmp_path: Path, interrupt_at, report_each_step):
    folder = _shared.Folder(tmp_path, device="cpu", progress=False)
    with pytest.raises(px.TrainingError, match="--resume"):
        folder.train("l1", shrinkage.Shrinkage(), TRAINING, watch=interrupt_at(2))
    resumed = replace(folder, resume=True).train("l1", shrinkage.Shrinkage(), TRAINING)
    assert resumed.provenance["steps"] == TRAINING["steps"]


def test_an_unknown_experiment_is_said(tmp_path: Path):
    with pytest.raises(px.UnknownNameError, match="Did you mean 'conic'"):
        run("conics", tmp_path)


def test_markdown_writes_numbers_short_and_gaps_as_dashes():
    text = _shared.markdown(("a", "b", "c"), [("x", 0.123456, None), ("y", 7, "z")])
    assert text.splitlines()[2:] == ["| x | 0.123 | - |", "| y | 7 | z |"]


def test_published_numbers_ship_as_json():
    shipped = Path(conic.__file__).with_name("conic.json")
    assert set(json.loads(shipped.read_text())) == {"source", "protocol", "POL", "GOL"}
