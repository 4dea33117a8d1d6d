"""Bad input: each is one sentence of our own, none is a traceback from inside torch, and nothing
that was already on disk is lost."""

import errno
import os
from pathlib import Path

import pytest
import torch
from making import parts, untrained, write
from safetensors.torch import save as to_bytes

import proxlearn as px
from proxlearn.common import files
from proxlearn.common.files import append_rows, read_rows, write_atomically
from proxlearn.instances import Vectors
from proxlearn.instances.picture import Pictures
from proxlearn.networks.coupling import Coupling
from proxlearn.networks.encoders.vector import Vector
from proxlearn.operators.operator import VERSION
from proxlearn.solvers.base import solver
from proxlearn.spaces import space_from

BOX = px.Box(-1.0, 1.0, dim=2)


@pytest.fixture
def operator() -> px.Operator:
    torch.manual_seed(0)
    return untrained(BOX, Vectors.over(px.Box(-1.0, 1.0, dim=3)), Coupling(1, 8, 8))


def made_of(function, **settings) -> px.Problem:
    return px.Problem.from_function(function, BOX, name="mine", **settings)


# tau


@pytest.mark.parametrize(
    ("tau", "words"),
    [
        ([0.1, 0.2], "tau must be 3 numbers, or rows of 3 numbers; this one has 2"),
        ([[0.1] * 4] * 5, r"tau has shape \(5, 4\); expected \(3,\) .* \(instances, 3\)"),
        ([[[0.1] * 3]], r"tau has shape \(1, 1, 3\)"),
        (0.5, "this one has 1"),
        ([], "this one has 0"),
        ([0.1, 0.2, float("nan")], "NaN or infinite"),
        ([0.1, 0.2, float("inf")], "NaN or infinite"),
        ("conic", "must be 3 numbers, or rows of 3 numbers, not 'conic'"),
        ([[0.1, 0.2, 0.3], [0.1]], "must be 3 numbers"),
        (None, "give tau, 3 numbers"),
    ],
    ids=str,
)
def test_tau_of_the_wrong_kind(operator: px.Operator, tau, words: str):
    with pytest.raises(px.InputError, match=words):
        operator.solve(tau, starts=3)


def test_a_tau_outside_the_trained_range_is_solved_with_a_warning(operator: px.Operator):
    with pytest.warns(px.RangeWarning, match=r"1 of 2 taus, such as \[0, 0, 1.5\], lies outside"):
        solutions = operator.solve([[0.0, 0.0, 0.5], [0.0, 0.0, 1.5]], starts=3)
    assert solutions.points.isfinite().all()
    with pytest.warns(px.RangeWarning, match=r"This tau, \[0, 0, 1.5\], lies outside"):
        operator.solve([0.0, 0.0, 1.5], starts=3)


@pytest.mark.filterwarnings("error")
def test_a_tau_at_the_edge_of_the_range_is_not_warned_about(operator: px.Operator):
    assert operator.solve([[1.0, 1.0, -1.0]], starts=3).points.shape == (1, 3, 2)


def test_a_tau_for_a_single_objective(tiny: dict):
    bowl = made_of(lambda x: x.square().sum(-1))
    with pytest.raises(px.InputError, match="a single objective, which takes no tau"):
        px.solve(bowl, [0.3], starts=3)
    with pytest.raises(px.InputError, match="a single objective, which takes no tau"):
        px.learn(bowl, steps=1, **tiny).solve([0.3])


def test_px_solve_checks_tau_like_the_operator(wells: px.Problem):
    with pytest.raises(px.InputError, match="tau must be 2 numbers"):
        px.solve(wells, [0.1], starts=3)
    with pytest.warns(px.RangeWarning, match="outside"):
        px.solve(wells, [9.0, 9.0], starts=3, steps=1)


def test_a_picture_of_the_wrong_size():
    pictures = Pictures(1, 8, 8)
    with pytest.raises(px.InputError, match=r"expected a picture \(1, 8, 8\)"):
        pictures.batch(torch.zeros(1, 8, 9))
    with pytest.raises(px.InputError, match="every entry must be finite"):
        pictures.batch(torch.full((1, 8, 8), torch.nan))


# starts and steps


@pytest.mark.parametrize(
    ("starts", "words"),
    [
        (0, "starts must be a whole number, 1 or more, not 0"),
        (-3, "starts must be a whole number, 1 or more, not -3"),
        (2.5, "starts must be a whole number, points or 'auto', not 2.5"),
        (None, "starts must be a whole number, points or 'auto', not None"),
        (torch.zeros(4, 3), r"starts has shape \(1, 4, 3\); expected .*, 2\)"),
        (torch.zeros(0, 2), "starts has shape"),
        (torch.zeros(2, 4, 2), r"starts has shape \(2, 4, 2\)"),
        (torch.full((4, 2), torch.nan), "starts holds NaN"),
    ],
    ids=[
        "0",
        "negative",
        "fraction",
        "none",
        "wrong dim",
        "empty",
        "too many instances",
        "nan",
    ],
)
def test_starts(operator: px.Operator, starts, words: str, any_type: None):
    with pytest.raises(px.InputError, match=words):
        operator.solve([0.1, 0.2, 0.3], starts=starts)
    with pytest.raises(px.InputError, match=words):
        px.solve(made_of(lambda x: x.square().sum(-1)), starts=starts)


def test_steps(operator: px.Operator):
    with pytest.raises(px.InputError, match=r"steps must be a whole number, 0 .* not -1"):
        operator.solve([0.1, 0.2, 0.3], steps=-1)
    for method in ("operator", "safeguarded", "descent", "lbfgs"):
        for steps in (1.5, "a", -1):
            with pytest.raises(px.InputError, match=r"steps must be a whole number, 0 .* or more"):
                solver(method, steps=steps)


# the objective


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.square(), r"'mine' returned \(2, 5, 2\) .* one value for each point"),
        (lambda x: x.square().sum(), r"returned \(\)"),
        (lambda x: x.square().sum(-1, keepdim=True), r"returned \(2, 5, 1\)"),
        (lambda x: 3.0, "returned float"),
        (lambda x: x.detach().square().sum(-1), "no gradient in x"),
        (lambda x: torch.as_tensor(x.detach().numpy().sum(-1)), "no gradient in x"),
        (lambda x: torch.as_tensor(x.numpy().sum(-1)), "no .item.., .numpy"),
        (lambda x: x[..., 0] @ x[..., 5], "'mine' failed"),
        (lambda x: x.sum(-1).log(), "NaN or infinite at points"),
        (lambda x: x.sum(-1) * torch.nan, "NaN or infinite at points"),
        (lambda x: (x - x.detach()).norm(dim=-1).sqrt() + 1, "gradient .* NaN or infinite"),
        (lambda: 0.0, "'mine' failed"),
    ],
    ids=[
        "not reduced",
        "reduced too far",
        "an axis too many",
        "a number",
        "detached",
        "detached numpy",
        "numpy",
        "an error of its own",
        "logarithm",
        "nan",
        "gradient",
        "no arguments",
    ],
)
def test_objectives_that_cannot_be_used(tiny: dict, function, words: str):
    with pytest.raises(px.ObjectiveError, match=words):
        px.learn(made_of(function), steps=1, **tiny)
    with pytest.raises(px.ObjectiveError, match=words):
        px.solve(made_of(function), starts=2, device="cpu")


def test_a_problem_without_an_objective(tiny: dict):
    class Bare(px.Problem):
        name = "bare"
        space = BOX

    with pytest.raises(px.ObjectiveError, match="has no objective: define objective"):
        px.learn(Bare(), steps=1, **tiny)


# spaces


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: px.Box(1.0, 1.0, dim=2), "low < high, but coordinate 0 has low = 1 and high = 1"),
        (lambda: px.Box([0, 5], [1, 2]), "coordinate 1 has low = 5 and high = 2"),
        (lambda: px.Box(float("nan"), 1.0, dim=2), "finite bounds"),
        (lambda: px.Box(0.0, float("inf"), dim=2), "finite bounds"),
        (lambda: px.Box(0.0, 1.0), "say dim="),
        (lambda: px.Box([0.0], [1.0, 2.0]), "1 lower and 2 upper bounds"),
        (lambda: px.Box([0.0], [1.0], dim=2), "shape \\(1,\\) for low; .* of which it has 2"),
        (lambda: px.Box(0.0, 1.0, dim=-1), "dim"),
        (lambda: px.Circles(0), "n of Circles must be a positive number, not 0"),
        (lambda: px.Sphere(-1), "dim of Sphere must be a positive number, not -1"),
        (lambda: px.Planes(0.0), "reach of Planes must be a positive number, not 0"),
        (lambda: px.Product(), "at least one space"),
    ],
)
def test_spaces_that_cannot_be(make, words: str):
    with pytest.raises(px.InputError, match=words):
        make()


def test_a_space_of_an_unknown_kind():
    with pytest.raises(px.FileError, match="space 'Torus' of this file is not part of proxlearn"):
        space_from({"kind": "Torus", "n": 2})


# names and settings


def test_unknown_names_suggest_the_nearest(wells: px.Problem, tiny: dict):
    with pytest.raises(px.UnknownNameError, match=r"no problem 'konic'. Did you mean 'conic'"):
        px.problem("konic")
    with pytest.raises(px.UnknownNameError, match=r"Known: .*conic.*springs"):
        px.problem("zzz")
    with pytest.raises(px.UnknownNameError, match=r"no method 'decent'. Did you mean 'descent'"):
        px.solve(wells, [1.0, 1.0], method="decent")
    with pytest.raises(px.UnknownNameError, match=r"method 'descent' 'step'. Did you mean 'steps'"):
        px.solve(wells, [1.0, 1.0], method="descent", step=3)
    with pytest.raises(px.UnknownNameError, match=r"setting 'step'. Did you mean 'steps'"):
        px.learn(wells, step=3, **tiny)
    with pytest.raises(px.UnknownNameError, match=r"no sampling 'pol'. Did you mean 'pool'"):
        px.learn(wells, sampling="pol", **tiny)
    with pytest.raises(px.UnknownNameError, match=r"no rule 'proxima'. Did you mean 'proximal'"):
        px.learn(wells, rule="proxima", **tiny)
    with pytest.raises(px.UnknownNameError, match=r"no architecture 'papre'. .*'paper'"):
        px.learn(wells, **tiny | {"architecture": "papre"})
    with pytest.raises(px.InputError, match="activation must be"):
        px.learn(wells, **tiny | {"architecture": Coupling(activation="tanh")})


def test_an_operator_of_another_problem(operator: px.Operator):
    """Another size of tau, or another space."""
    with pytest.raises(px.InputError, match="give an operator trained for it"):
        px.solve(px.problem("springs"), [0.5] * 4, method="operator", operator=operator)
    fitting = px.Problem.from_function(lambda x, tau: x.sum(-1), BOX, px.Box(-1.0, 1.0, dim=3))
    with pytest.raises(px.InputError, match="steps must be a whole number"):
        px.solve(fitting, [0.0] * 3, method="operator", operator=operator, steps=-1)


def test_an_operator_nobody_trained(wells: px.Problem):
    with pytest.raises(px.InputError, match=r"no shipped operator for 'wells': train .* operator="):
        px.solve(wells, [1.0, 1.0], method="operator", starts=2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps": 0}, "steps must be a positive number, not 0"),
        ({"seconds": -1.0}, "seconds must be a positive number, not -1"),
        ({"rate": float("nan")}, r"rate must be a positive number, 1e\+30 at most, not nan"),
        ({"rate": 1e308}, r"rate must be a positive number, 1e\+30 at most, not 1e\+308"),
        ({"instances": 0}, "instances must be a positive number, not 0"),
        ({"steps": "many"}, "steps must be a positive number, not 'many'"),
        ({"steps": 10, "seconds": 1.0}, "steps or seconds, not both"),
        ({"lam": -1.0}, "lam must be .* not -1.0"),
        ({"lam": float("nan")}, "lam must be .* not nan"),
        ({"lam": (1.0, 0.1)}, r"0 < low < high, 1e\+30 at most, not \(1.0, 0.1\)"),
        ({"lam": "big"}, "lam must be .* not 'big'"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense(wells: px.Problem, tiny: dict, settings, words: str):
    with pytest.raises(px.InputError, match=words):
        px.learn(wells, **tiny | {"steps": 2} | settings)


def test_devices(wells: px.Problem, tiny: dict):
    with pytest.raises(px.InputError, match="no device 'gpu': use auto, cpu or cuda"):
        px.learn(wells, **tiny | {"device": "gpu"})
    if not torch.cuda.is_available():
        with pytest.raises(px.InputError, match="torch sees no GPU"):
            px.solve(wells, [1.0, 1.0], device="cuda")


def test_solver_settings_are_found_by_name():
    assert solver("descent", steps=3).steps == 3


# problem files


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "defines 0 subclasses of Problem; such a file has one"),
        (
            "from proxlearn import Problem\nclass A(Problem): ...\nclass B(Problem): ...",
            "defines 2 subclasses",
        ),
        ("def f(:", "cannot be run: SyntaxError"),
        ("import proxlearn as px\nclass A(px.Problem): ...", "needs a space"),
    ],
)
def test_problem_files(tmp_path: Path, text: str, words: str):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(px.FileError, match=words):
        px.problem(str(tmp_path / "mine.py"))


def test_a_problem_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(px.FileError, match="no problem file at"):
        px.problem(str(tmp_path / "mine.py"))


def test_the_name_of_a_problem(any_type: None):
    assert px.problem("sparse_half").name == px.problem("sparse-half").name
    with pytest.raises(px.InputError, match=r"A problem is a name or a path, .* not 3"):
        px.problem(3)  # pyright: ignore[reportArgumentType]


# operator files


@pytest.fixture
def saved(operator: px.Operator, tmp_path: Path) -> Path:
    return operator.save(tmp_path / "mine.safetensors")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.99], ids=lambda share: f"{share:.1%}")
def test_an_operator_file_that_is_cut_short(saved: Path, share: float):
    data = saved.read_bytes()
    saved.write_bytes(data[: int(share * len(data))])
    with pytest.raises(px.FileError, match="not a whole safetensors file"):
        px.load(saved)


def test_operator_files_of_another_kind(saved: Path):
    weights, header = parts(saved)
    for foreign in (b"hello, this is text", b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(64)):
        saved.write_bytes(foreign)
        with pytest.raises(px.FileError, match="not a whole safetensors file"):
            px.load(saved)
    saved.write_bytes(to_bytes(weights))
    with pytest.raises(px.FileError, match="holds no proxlearn operator"):
        px.load(saved)
    torch.save({"weights": weights}, saved)
    with pytest.raises(px.FileError, match="not a whole safetensors file"):
        px.load(saved)
    write(saved, weights, header)
    px.load(saved)  # untouched, it is fine


def test_an_operator_file_of_a_newer_format(saved: Path):
    write(saved, *parts(saved), version=str(VERSION + 1))
    with pytest.raises(px.FileError, match=f"has format {VERSION + 1}, newer .* upgrade proxlearn"):
        px.load(saved)


@pytest.mark.parametrize("key", ["space", "encoder", "architecture", "lam", "applications"])
def test_a_header_with_something_missing(saved: Path, key: str):
    weights, header = parts(saved)
    del header[key]
    write(saved, weights, header)
    with pytest.raises(px.FileError, match="header"):
        px.load(saved)


def test_headers_that_cannot_be_read(saved: Path):
    weights, header = parts(saved)
    write(saved, weights, "{ not json")
    with pytest.raises(px.FileError, match="header"):
        px.load(saved)
    write(saved, weights, header, version="one")
    with pytest.raises(px.FileError, match="header"):
        px.load(saved)
    write(saved, weights, header | {"architecture": header["architecture"] | {"wings": 2}})
    with pytest.raises(px.FileError, match="header"):
        px.load(saved)
    write(saved, weights, header | {"space": {"kind": "Torus"}})
    with pytest.raises(px.FileError, match="space 'Torus' of this file is not part of proxlearn"):
        px.load(saved)


def test_weights_that_do_not_fit_the_header(saved: Path):
    weights, header = parts(saved)
    name = next(iter(weights))
    write(saved, {k: v for k, v in weights.items() if k != name}, header)
    with pytest.raises(px.FileError, match="do not fit its header"):
        px.load(saved)
    wider = header["architecture"] | {"width": 16}
    write(saved, weights, header | {"architecture": wider})
    with pytest.raises(px.FileError, match="do not fit its header"):
        px.load(saved)


def test_an_encoder_of_ones_own_has_to_be_passed(saved: Path):
    weights, header = parts(saved)

    class Mine(Vector):
        kind = "hypergraph"

    mine = Mine(px.load(saved).instances)
    write(saved, weights, header | {"encoder": {"kind": "hypergraph"}})
    with pytest.raises(px.FileError, match=r"'hypergraph' .* is not part of proxlearn .* encoder="):
        px.load(saved)
    assert px.load(saved, encoder=mine).network.encoder is mine


def test_an_operator_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(px.FileError, match="no operator file at"):
        px.load(tmp_path / "nothing.safetensors")
    with pytest.raises(px.FileError, match=r"is a folder without operator\.safetensors: give"):
        px.load(tmp_path)


def test_the_folder_of_a_training_stands_for_its_operator(operator: px.Operator, tmp_path: Path):
    operator.save(tmp_path / "operator.safetensors")
    assert px.load(tmp_path).instances == operator.instances


# folders that cannot be written, and writes that fail half way


@pytest.mark.parametrize(
    ("function", "more", "words"),
    [
        (lambda x: x, {}, "one value for each point"),
        (lambda x: x.square().sum(-1), {"architecture": "papr"}, "Did you mean 'paper'"),
    ],
)
def test_what_cannot_be_trained_leaves_no_folder_and_no_bar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], function, more: dict, words: str
):
    out = tmp_path / "new"
    with pytest.raises(px.ProxlearnError, match=words):
        px.learn(made_of(function), steps=1, out=out, device="cpu", **more)
    assert not out.exists()
    assert capsys.readouterr().err == ""


def test_an_unwritable_folder_is_found_before_any_work(
    wells: px.Problem, tiny: dict, below_a_file: Path, operator: px.Operator
):
    def never(report, operator):
        raise AssertionError("it trained although there is nowhere to write")

    with pytest.raises(px.FileError, match="Cannot write to the folder"):
        px.learn(wells, steps=1, out=below_a_file, watch=never, **tiny)
    with pytest.raises(px.FileError, match="Cannot write to the folder"):
        operator.save(below_a_file / "mine.safetensors")
    with pytest.raises(px.FileError, match="Cannot write"):
        append_rows(below_a_file / "rows.jsonl", [{"a": 1}])
    assert below_a_file.parent.read_text() == "not a folder"


def test_a_folder_in_the_place_of_a_file(operator: px.Operator, tmp_path: Path):
    (tmp_path / "mine.safetensors").mkdir()
    with pytest.raises(px.FileError, match="is a folder: give the name of a file"):
        operator.save(tmp_path / "mine.safetensors")
    with pytest.raises(px.FileError, match="is a folder: give the name of a file"):
        append_rows(tmp_path, [{"a": 1}])


def test_what_is_no_file_is_not_replaced_by_one(operator: px.Operator, tmp_path: Path):
    """A pipe, which stands for /dev/null and all other devices here, and a link to one."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        with pytest.raises(px.FileError, match="is a pipe or a device: give the name of a file"):
            operator.save(path)
        with pytest.raises(px.FileError, match="is a pipe or a device"):
            append_rows(path, [{"a": 1}])
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_a_link_stays_and_leads_to_what_is_written(operator: px.Operator, tmp_path: Path):
    link = tmp_path / "mine.safetensors"
    link.symlink_to(tmp_path / "shelf" / "there.safetensors")
    operator.save(link)
    assert link.is_symlink()
    assert (tmp_path / "shelf" / "there.safetensors").is_file()
    assert px.load(link, "cpu").applications == operator.applications


def test_a_failing_save_keeps_the_old_file(
    operator: px.Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = operator.save(tmp_path / "mine.safetensors")
    before = path.read_bytes()

    def disk_full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.Path, "write_bytes", disk_full)
    with torch.no_grad():
        next(operator.parameters()).add_(1.0)
    with pytest.raises(px.FileError, match="No space left on device"):
        operator.save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["mine.safetensors"]


def test_a_writer_killed_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch):
    path = write_atomically(tmp_path / "rows.txt", "old")

    def killed(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert path.read_text() == "old"


def test_rows_that_cannot_be_read(tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(px.FileError, match="Cannot read rows from"):
        read_rows(tmp_path / "rows.jsonl")
    with pytest.raises(px.FileError, match="Cannot read rows from"):
        read_rows(tmp_path / "none.jsonl")


def test_every_error_is_of_one_family():
    errors = [getattr(px, name) for name in px.__all__ if name.endswith("Error")]
    assert len(errors) >= 6
    assert all(issubclass(error, px.ProxlearnError) for error in errors)


@pytest.mark.usefixtures("any_type")
def test_the_path_of_an_operator_is_none():
    with pytest.raises(px.InputError, match=r"px.load\(path\), not 'x'"):
        px.symmetries(torch.rand(200, 3), operator="x")
    with pytest.raises(px.InputError, match=r"px.load\(path\), not 'x'"):
        px.detect(torch.rand(8, 8, 3), "x")
