"""Where the instances of training steps come from: drawn on the device, looked up in a store there,
or read from files ahead of the steps. No step ever sees what another one drew."""

import itertools
from pathlib import Path

import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.common.batch import leaves
from proxlearn.common.seeds import generator_for
from proxlearn.training.instances import check_sample
from proxlearn.training.session import Session
from proxlearn.training.settings import training_from

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip
every_device = pytest.mark.parametrize("device", DEVICES)
SMALL = {"instances": 6, "points": 4, "depth": 2, "lam": 1.0, "applications": 2}
SIZES = {"architecture": {"blocks": 1, "width": 16, "shared": 16}}


class Files(px.Problem):
    """Wells that are read from a file, one number a line."""

    name = "files"
    space = px.Box(-2.0, 2.0, dim=2)
    parameters = px.Box(0.5, 1.5, dim=2)
    sampled_on = "cpu"

    def __init__(self, path: Path):
        self.path = path
        path.write_text("\n".join(f"{0.5 + k / 1000:.4f}" for k in range(1000)))

    def sample(self, count, split, generator):
        assert generator.device.type == "cpu"
        lines = self.path.read_text().splitlines()
        rows = torch.randint(len(lines), (count, 2), generator=generator)
        return torch.tensor([[float(lines[k]) for k in row] for row in rows.tolist()])

    def objective(self, x, tau):
        return (x.square() - tau[:, None].square()).square().sum(-1)


class Stored(Files):
    """The same out of a store on the device; what waits is an index, and how far to shift."""

    sampled_on = "device"

    def __init__(self, device: str):
        self.store = torch.linspace(0.5, 1.5, 1000, device=device)[:, None].expand(-1, 2)

    def sample(self, count, split, generator):
        device = generator.device
        index = torch.randint(len(self.store), (count,), generator=generator, device=device)
        shift = 0.01 * torch.rand(count, 1, generator=generator, device=device)
        return {"index": index, "shift": shift}

    def look_up(self, drawn):
        return self.store[drawn["index"]] + drawn["shift"]


def session(problem: px.Problem, device: str, **settings) -> Session:
    return Session(problem, training_from(SMALL | SIZES | settings), torch.device(device))


def trained_on(session: Session, steps: int) -> list[Tensor]:
    """The instances that the loss was of, step after step, read from where the step wrote them."""
    seen, own = torch.zeros(steps, 6, 2, device=session.device), session.loss
    step = torch.zeros(1, dtype=torch.long, device=session.device)

    def loss(y: Tensor, x: Tensor, tau: Tensor, lam: Tensor):
        seen.index_copy_(0, step, tau[None])
        step.add_(1)
        return own(y, x, tau, lam)

    session.loss = loss
    for _ in itertools.islice(session.run(), 10**6):
        pass
    assert int(step) == steps
    return list(seen.cpu())


@every_device
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")  # on a GPU it is captured
def test_instances_from_files_are_those_drawn_for_each_step(device: str, tmp_path: Path):
    """Of six instances, two are new in each step, and these are what the seed says of the step
    before, beside which they were put in their places."""
    problem = Files(tmp_path / "wells.txt")
    made = session(problem, device, steps=40, sampling="pool", seed=3)
    seen = trained_on(made, 40)
    for k, batch in enumerate(seen[1:], 1):
        drawn = problem.sample(2, "train", generator_for(3, f"train/{k - 1}"))
        group = k // made.sampler.chunks % 3  # of the batch, which starts afresh
        assert torch.equal(batch[2 * group : 2 * group + 2], drawn)
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise(seen))


@every_device
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")
def test_a_store_on_the_device_is_looked_up_by_indices(device: str):
    problem = Stored(device)
    made = session(problem, device, steps=40)
    assert made.sampler.drawn.keys() == {"index", "shift"}  # the pool holds no instances
    assert made.sampler.drawn["index"].dtype == torch.long
    seen = trained_on(made, 40)
    assert not any(torch.equal(a, b) for a, b in itertools.pairwise(seen))
    new = torch.cat(
        [batch[2 * g : 2 * g + 2] for k, batch in enumerate(seen) for g in (k // 8 % 3,)]
    )
    assert len(new.unique(dim=0)) > 70  # of 80: every step has drawn its own


@every_device
@pytest.mark.parametrize("sampling", ["pool", "unfold"])
def test_a_training_on_files_resumes_with_the_same_instances(
    device: str, sampling: str, tmp_path: Path, report_each_step, interrupt_at, same_weights
):
    problem = Files(tmp_path / "wells.txt")
    how = SMALL | SIZES | {"steps": 20, "sampling": sampling, "device": device, "progress": False}
    straight = px.learn(problem, **how)
    px.learn(problem, out=tmp_path, watch=interrupt_at(7), **how)
    resumed = px.learn(problem, out=tmp_path, resume=True, **how)
    assert same_weights(straight, resumed)


def test_a_loader_that_ignores_its_generator_is_refused():
    class Loader(Files):
        sampled_on = "device"

        def __init__(self):
            self.next = itertools.count()

        def sample(self, count, split, generator):
            return torch.tensor([[float(next(self.next))] * 2 for _ in range(count)])

    with pytest.raises(px.InputError, match="two different draws for the same generator"):
        check_sample(Loader(), torch.device("cpu"))
    with pytest.raises(px.InputError, match="two different draws for the same generator"):
        px.learn(Loader(), steps=1, device="cpu", progress=False)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_is_drawn_on_the_cpu_without_saying_so_is_refused(tmp_path: Path):
    problem = Files(tmp_path / "wells.txt")
    problem.sampled_on = "device"
    problem.sample = lambda count, split, generator: torch.full((count, 2), 0.7)
    with pytest.raises(px.InputError, match=r"gave tensors on cpu .* sampled_on"):
        px.learn(problem, steps=1, device="cuda", progress=False)


# Codes that are kept


class Coded(Files):
    """Pictures of wells, for an encoder with weights."""

    sampled_on = "device"

    def __init__(self):
        pass

    def sample(self, count, split, generator):
        return self.parameters.sample(count, generator=generator, device=generator.device)


@every_device
def test_a_step_encodes_as_many_instances_as_asked_for(device: str, monkeypatch):
    counts, encode = [], px.Operator.encode

    def counted(self, observed):
        counts.append(len(leaves(observed)[0]))
        return encode(self, observed)

    monkeypatch.setattr(px.Operator, "encode", counted)
    for encodes, expected in ((None, 6), (1, 2), (2, 2), (3, 4), (6, 6), (99, 6)):
        counts.clear()
        made = session(Coded(), device, steps=3, encodes=encodes)
        for _ in range(3):
            made._one_step()
        assert counts[-3:] == [expected] * 3


def test_kept_codes_of_an_encoder_without_weights_change_nothing(same_weights):
    """A vector's code is the vector: what was kept is what would be computed."""
    how = SMALL | SIZES | {"steps": 60, "device": "cpu", "progress": False}
    every, some = (px.learn(Coded(), encodes=encodes, **how) for encodes in (None, 2))
    assert same_weights(every, some)


def test_kept_codes_survive_a_resume(tmp_path: Path, report_each_step, interrupt_at, same_weights):
    how = SMALL | SIZES | {"steps": 40, "device": "cpu", "progress": False, "encodes": 2}
    straight = px.learn(Coded(), **how)
    px.learn(Coded(), out=tmp_path, watch=interrupt_at(11), **how)
    assert same_weights(straight, px.learn(Coded(), out=tmp_path, resume=True, **how))


def test_codes_are_kept_by_the_pool_alone():
    with pytest.raises(px.InputError, match="encodes applies only to sampling='pool'"):
        px.learn(Coded(), steps=1, sampling="unfold", encodes=2, device="cpu", progress=False)
