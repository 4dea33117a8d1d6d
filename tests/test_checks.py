"""What users give, in every form: converted where it means one thing, else a sentence."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import proxlearn as px
from proxlearn.common import checks

pytestmark = pytest.mark.usefixtures("any_type")

TAU = [0.3, 0.0, 0.5, 0.0, 0.0, -1.0]
ROWS = [[0.5, -0.25], [1.0, 0.75]]
HUGE = 10**400


def as_masked(rows: Any, masked: bool = True) -> np.ma.MaskedArray:
    return np.ma.array(rows, mask=np.full(np.shape(rows), masked))


@pytest.fixture(scope="module")
def operator() -> px.Operator:
    return px.pretrained("conic", "cpu")


@pytest.mark.parametrize(
    "given",
    [
        tuple(map(tuple, ROWS)),
        np.array(ROWS, ">f4"),
        np.array(ROWS[::-1])[::-1],
        np.array(ROWS, object),
        np.array(ROWS, np.longdouble),
        np.asfortranarray(ROWS),
        [[Fraction(1, 2), Decimal("-0.25")], [1, np.float32(0.75)]],
        [np.array(each) for each in ROWS],
        [torch.tensor(each) for each in ROWS],
        as_masked(ROWS, masked=False),
        torch.tensor(ROWS).to_sparse(),
        torch.tensor(ROWS, dtype=torch.bfloat16),
        torch.tensor(ROWS, dtype=torch.float64, requires_grad=True),
    ],
    ids=lambda given: type(given).__name__,
)
def test_arrays_of_any_form_are_the_same_numbers(given: Any):
    found = checks.floats("x", given, "rows")
    assert found.dtype == torch.float32
    assert found.layout == torch.strided
    assert torch.equal(found, torch.tensor(ROWS))


NO_ARRAYS = {
    "none": (None, "no number"),
    "word": ("abc", "no number"),
    "words": (["1", "2"], "no number"),
    "bytes": (b"ab", "no number"),
    "dictionary": ({"a": 1}, "no number"),
    "ragged": ([[1, 2], [3]], "not of one length"),
    "complex": (np.array([1 + 2j]), "complex; they must be real"),
    "complex tensor": (torch.tensor([1j]), "complex; they must be real"),
    "masked": (as_masked(ROWS), "some of it is masked"),
    "masked rows": ([as_masked(each) for each in ROWS], "some of it is masked"),
    "meta": (torch.zeros(2, device="meta"), "'meta' holds no numbers"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "no number"),
    "huge": ([HUGE], "x must be rows, not"),
    "infinite": ([np.inf], "NaN or infinite"),
    "beyond single precision": ([1e300], "NaN or infinite"),
}


@pytest.mark.parametrize(("given", "why"), NO_ARRAYS.values(), ids=NO_ARRAYS)
def test_what_is_no_array_of_numbers_is_said_with_why(given: Any, why: str):
    with pytest.raises(px.InputError, match=why) as error:
        checks.floats("x", given, "rows")
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    "five",
    [5, np.int8(5), np.uint64(5), np.array(5), torch.tensor(5)],
    ids=lambda x: type(x).__name__,
)
def test_whole_numbers_of_any_kind(five: Any):
    assert checks.whole("n", five) == checks.count("n", five) == checks.seed_of(five) == 5
    assert checks.positive("n", five) == checks.number("n", five) == 5.0


@pytest.mark.parametrize(
    "given", [None, "5", 5.0, True, np.True_, 1j, [5], 2**64, torch.tensor([5]), float("nan")]
)
def test_what_is_no_whole_number(given: Any):
    with pytest.raises(px.InputError, match=r"^seed must be a whole number, not "):
        checks.seed_of(given)


@pytest.mark.parametrize("given", [None, "1", True, 1j, HUGE, float("inf"), [1.0], b"1"])
def test_what_is_no_number(given: Any):
    for check in (checks.number, checks.positive, checks.at_least_zero):
        with pytest.raises(px.InputError, match=r"^rate must be a "):
            check("rate", given)


def test_a_number_of_ten_thousand_digits_is_said_in_a_sentence():
    with pytest.raises(px.InputError, match="not a int"):
        checks.count("n", 10**10_000)


def test_flags():
    assert checks.flag("open", np.True_) is True
    assert checks.flag("open", 0) is False
    for given in ("no", None, 2, [True]):
        with pytest.raises(px.InputError, match="open must be True or False"):
            checks.flag("open", given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "must be a path"),
        (3, "must be a path"),
        (b"a", "must be a path"),
        ("", "empty or has a zero byte"),
        ("a\0b", "empty or has a zero byte"),
        ("a" * 300, "too long"),
        ("é" * 200, "too long"),
        ("a/" * 3_000, "too long"),
    ],
    ids=str,
)
def test_what_is_no_path(given: Any, why: str, operator: px.Operator):
    for use in (px.load, operator.save, px.Solutions.load):
        with pytest.raises(px.InputError, match=why):
            use(given)


def test_a_name_is_as_long_as_can_be(operator: px.Operator, tmp_path: Path):
    """Also while it is written, under a name that is longer."""
    longest = "a" * (checks.LONGEST_NAME - 16 - len(".safetensors")) + ".safetensors"
    assert px.load(operator.save(tmp_path / longest), "cpu").finite
    with pytest.raises(px.InputError, match="too long"):
        operator.save(tmp_path / f"a{longest}")


FORMS = {
    "big-endian": lambda x: np.array(x, ">f8"),
    "object": lambda x: np.array(x, object),
    "backwards": lambda x: np.array(x)[::-1].copy()[::-1],
    "sparse": lambda x: torch.tensor(x).to_sparse(),
    "fractions": lambda x: np.vectorize(Fraction, otypes=[object])(x).tolist(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_tau_and_starts_in_any_form_are_solved_alike(form: Any, operator: px.Operator):
    usual = operator.solve(TAU, starts=ROWS)
    assert torch.equal(operator.solve(form(TAU), starts=form(ROWS)).points, usual.points)


@pytest.mark.parametrize("name", ["none", "words", "ragged", "complex", "masked", "meta", "huge"])
def test_tau_starts_and_points_that_are_none(name: str, operator: px.Operator):
    given, _ = NO_ARRAYS[name]
    with pytest.raises(px.InputError, match="tau"):
        operator.solve(given if name != "none" else [None] * 6, starts=4)
    with pytest.raises(px.InputError, match=r"^starts must be a whole number, points or 'auto'"):
        operator.solve(TAU, starts=given)
    with pytest.raises(px.InputError, match=r"^x must be points"):
        operator(given, TAU)


def test_a_lam_of_any_kind_is_the_same(operator: px.Operator):
    usual = operator.solve(TAU, starts=4).points
    lam = operator.lam
    for given in (np.float32(lam), torch.tensor(lam), Decimal(str(lam)), np.array(lam)):
        assert torch.equal(operator.solve(TAU, starts=4, lam=given).points, usual)
    several = operator.solve(TAU, starts=4, steps=3, lam=np.array([lam, lam])).points
    assert torch.equal(several, operator.solve(TAU, starts=4, steps=3).points)
    for given in (b"ab", "1", True, 1j, [], [[lam]], [True]):
        with pytest.raises(px.InputError, match="lam must be a positive number, or several"):
            operator.solve(TAU, starts=4, lam=given)


@pytest.mark.parametrize("seed", [None, 1.0, True, "a", 2**64])
def test_a_seed_is_a_whole_number(seed: Any, operator: px.Operator):
    conic = px.problem("conic")
    for use in (operator.solve, lambda tau, **how: px.solve(conic, tau, **how)):
        with pytest.raises(px.InputError, match="seed must be a whole number"):
            use(TAU, starts=4, seed=seed)
    with pytest.raises(px.InputError, match="seed must be a whole number"):
        px.learn(conic, steps=1, seed=seed)


@pytest.mark.parametrize("device", [None, 3, "mps", "meta", "", "cuda:99"])
def test_a_device_is_one_that_is_there(device: Any):
    with pytest.raises(px.InputError, match=r"use auto|torch sees"):
        px.solve(px.problem("conic"), TAU, starts=4, device=device)


@pytest.mark.parametrize(
    "make",
    [
        lambda: px.Box(np.float32(0), np.float32(1), dim=2),
        lambda: px.Box(np.int64(0), torch.tensor(1), dim=np.int64(2)),
        lambda: px.Box(Fraction(0), Decimal(1), dim=2),
        lambda: px.Box(np.zeros(2), torch.ones(2)),
        lambda: px.Box([0, 0], np.ones(2, ">i2")),
    ],
)
def test_a_box_of_any_numbers(make: Any):
    assert make() == px.Box(0.0, 1.0, dim=2)
    assert all(type(each) is float for each in (*make().low, *make().high))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: px.Box("a", "b"), "low of a Box must be a number"),
        (lambda: px.Box([], []), "a number for each coordinate"),
        (lambda: px.Box(0, HUGE, dim=2), "high of a Box must be a number"),
        (lambda: px.Box(0, 1, dim=1.5), "dim of a Box must be a whole number"),
        (lambda: px.Box(0, 1, dim=10**12), "1,000,000 is the most"),
        (lambda: px.Box(0, 1, dim=2, open="no"), "open must be True or False"),
        (lambda: px.Circles(1.5), "n of Circles must be a whole number, not 1.5"),
        (lambda: px.Sphere(2.5), "dim of Sphere must be a whole number, not 2.5"),
        (lambda: px.Planes("a"), "reach of Planes must be a positive number"),
        (lambda: px.Product(3), "3 is none"),
    ],
)
def test_spaces_that_cannot_be(make: Any, words: str):
    with pytest.raises(px.InputError, match=words):
        make()


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"depth": None}, "depth must be a positive number"),
        ({"depth": True}, "depth must be a positive number"),
        ({"steps": 2.5}, "steps must be a whole number"),
        ({"sampling": None}, "sampling must be one of pool, unfold"),
        ({"precision": 3}, "precision must be one of"),
        ({"rate": HUGE}, "rate must be a positive number"),
        ({"lam": "a"}, r"lam must be a number from 0 to 1e\+30, or a range \(low, high\)"),
        ({"lam": [1, 2, 3]}, "0 < low < high"),
        ({"architecture": {"width": "a"}}, "width of Coupling must be a whole number"),
        ({"architecture": {"gated": "a"}}, "gated of Coupling must be True or False"),
        ({"architecture": {3: 4}}, "no size of a network '3'"),
        ({"out": 3}, "folder out= must be a path"),
        ({"out": "a" * 300}, "too long"),
        ({"resume": "a"}, "resume must be True or False"),
        ({"watch": 3}, "watch= must be a function"),
    ],
    ids=str,
)
def test_settings_of_a_training_that_cannot_be(setting: dict[str, Any], words: str):
    with pytest.raises(px.ProxlearnError, match=words):
        px.learn(px.problem("conic"), **{"steps": 1, "progress": False} | setting)


@pytest.mark.parametrize(
    "settings", [{"rate": "a"}, {"adam": 2}, {"falling": None}, {"steps": 1.0}], ids=str
)
def test_settings_of_a_method_that_cannot_be(settings: dict[str, Any]):
    (name,) = settings
    with pytest.raises(px.InputError, match=f"^{name} must be"):
        px.solve(px.problem("conic"), TAU, "descent", starts=4, **settings)


def test_metrics_say_what_cannot_be():
    points, box = torch.zeros(3, 2), px.Box(-1, 1, dim=2)
    for given in (
        {"witnesses": torch.zeros(3, 4)},
        {"found": "a"},
        {"deltas": [None]},
        {"threshold": "a"},
        {"space": None},
    ):
        usual = {"found": points, "truth": points, "witnesses": points, "space": box}
        with pytest.raises(px.InputError):
            px.metrics.witnessed(**usual | given)
    with pytest.raises(px.InputError, match="hits must be numbers of starts"):
        px.unseen(["a"])
