"""What the tests share: a problem with known optima, a training that takes a blink, defaults."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch
from _browsing import SETTLED, NoBrowserError, chromium
from hypothesis import settings
from torch import Tensor

import proxlearn as px
from proxlearn.networks.coupling import Coupling
from proxlearn.training import learn as train
from proxlearn.training import session

# The same examples at every run, and no clock: the machine may be slow.
settings.register_profile("proxlearn", max_examples=40, deadline=None, derandomize=True)
settings.load_profile("proxlearn")

# Without a GPU, Triton's kernels run in its interpreter.
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

# Small tensors gain nothing from a second thread, and lose a lot on a machine that is busy.
torch.set_num_threads(1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the slow tests out unless markers are asked for."""
    if not config.getoption("markexpr"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow: run with `pytest -m slow`"))


def four_wells(x: Tensor, tau: Tensor) -> Tensor:
    """Minima of value 0 at the four points (+-tau_1, +-tau_2)."""
    return (x.square() - tau.square()).square().sum(-1)


@pytest.fixture
def wells() -> px.Problem:
    """A smooth family in the plane whose four optima are known."""
    return px.Problem.from_function(
        four_wells, px.Box(-2.0, 2.0, dim=2), px.Box(0.5, 1.5, dim=2), name="wells"
    )


@pytest.fixture
def tiny() -> dict[str, Any]:
    """Settings of a training whose steps take about a millisecond."""
    return {
        "instances": 12,
        "points": 8,
        "depth": 2,
        "lam": 1.0,
        "applications": 5,
        "architecture": Coupling(blocks=1, width=16, shared=16),
        "device": "cpu",
        "progress": False,
    }


JUDGE, LOOK = train.judge, train.Glances.look


@pytest.fixture(autouse=True, scope="session")
def unjudged() -> Iterator[None]:
    """Trainings of a blink are not judged, which would take longer than they do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "judge", lambda *_: None)
        patch.setattr(train.Glances, "look", lambda *_: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def nobody_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No operators but those shipped, whatever whoever runs the tests has brought in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROXLEARN_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(autouse=True)
def judged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """But they are where a test asks for it (`@pytest.mark.judged`)."""
    if "judged" in request.keywords:
        monkeypatch.setattr(train, "judge", JUDGE)
        monkeypatch.setattr(train.Glances, "look", LOOK)


@pytest.fixture
def report_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports after every step instead of twice a second, checkpoints at every report."""
    monkeypatch.setattr(session, "REPORT_SECONDS", -1.0)
    monkeypatch.setattr(train, "CHECKPOINT_SECONDS", -1.0)


@pytest.fixture
def interrupt_at() -> Callable[[int], Callable]:
    """A `watch` that presses Ctrl-C at a step."""

    def at(step: int) -> Callable:
        def watch(report: session.Report, operator: px.Operator) -> None:
            if report.step == step:
                raise KeyboardInterrupt

        return watch

    return at


@pytest.fixture
def same_weights() -> Callable[[px.Operator, px.Operator], bool]:
    """Whether two operators are the same bit for bit."""

    def same(a: px.Operator, b: px.Operator) -> bool:
        left, right = a.state_dict(), b.state_dict()
        return left.keys() == right.keys() and all(torch.equal(left[k], right[k]) for k in left)

    return same


@pytest.fixture
def below_a_file(tmp_path: Path) -> Path:
    """A folder nobody can make, root included: its parent is a regular file."""
    (tmp_path / "file").write_text("not a folder")
    return tmp_path / "file" / "folder"


@pytest.fixture(autouse=True, scope="module")
def annotations_of_whole_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Files of whole runs (`pytestmark = pytest.mark.whole`) do without the check of annotations,
    which doubles their time; the tests of the parts have it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("whole"):
            patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        yield


@pytest.fixture
def any_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments of any type, as a user may give them: annotations are not enforced."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        with chromium() as found:
            yield found
    except NoBrowserError as missing:
        pytest.skip(str(missing))


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open an address; whatever the page complains of or asks others for fails the test."""
    pages, wrong = [], []

    def opened(address: str, until: str = SETTLED, **settings: Any) -> Any:
        page = browser.new_page(**settings)
        pages.append(page)
        page.on("console", lambda said: wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        inside = (address.partition("#")[0].removesuffix("index.html"), "blob:", "data:")
        page.on("request", lambda ask: ask.url.startswith(inside) or wrong.append(ask.url))
        page.goto(address)
        page.wait_for_function(until, timeout=60_000)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not wrong
