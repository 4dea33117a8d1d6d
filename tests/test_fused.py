"""The fused kernels against the plain module: values and all gradients, in 64 bits.

Without a GPU the kernels run in Triton's interpreter, so every line of them is tested anywhere.
"""

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from making import imported_as_written
from torch import Tensor

from proxlearn.instances import Vectors
from proxlearn.networks import coupling as network
from proxlearn.networks.coupling import Coupling, CouplingNetwork
from proxlearn.networks.encoders.vector import Vector

pytest.importorskip("triton", reason="the fused kernels need Triton")


fused = imported_as_written("networks.coupling_kernel")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # columns that nobody reads


def network_of(
    architecture: Coupling, dim: int = 2, code: int = 3, precision: str = "fp32"
) -> CouplingNetwork:
    net = CouplingNetwork(dim, Vector(Vectors((-1.0,) * code, (1.0,) * code)), architecture)
    net.precision = precision
    return net


def networks(dim: int, code: int, **sizes) -> tuple[CouplingNetwork, CouplingNetwork]:
    """A network with random weights, and the same in 64 bits."""
    torch.manual_seed(0)
    architecture = Coupling(**sizes, start_at_identity=False)
    plain, exact = (network_of(architecture, dim, code) for _ in range(2))
    exact = exact.double()
    with torch.no_grad():
        for weight in plain.parameters():
            weight += 0.05 * torch.randn(weight.shape)  # some begin as zeros
    exact.load_state_dict(plain.state_dict())
    return plain.to(DEVICE), exact.to(DEVICE)


def results(
    net: CouplingNetwork, apply, x: Tensor, code: Tensor, slope: Tensor
) -> dict[str, Tensor]:
    """The value and every gradient."""
    x, code = (each.clone().requires_grad_() for each in (x, code))
    net.zero_grad()
    y = apply(net, x, net.prepare(code, torch.ones(len(code))))
    y.backward(slope)
    weights = {name: weight.grad for name, weight in net.named_parameters()}
    return {"y": y.detach(), "x": x.grad, "code": code.grad, **weights}


def largest_error(precision: str, instances: int, points: int, dim: int, **sizes) -> float:
    """Over the value and all gradients, relative to the longest entry of each."""
    net, exact = networks(dim, 3, **sizes)
    x = 1.5 * torch.randn(instances, points, dim)  # some of it beyond the reach
    code, slope = torch.randn(instances, 3), torch.randn(x.shape)
    given = [each.to(DEVICE) for each in (x, code, slope)]
    found = results(net, lambda net, x, p: fused.apply(net, x, p["share"], precision), *given)
    expected = results(exact, lambda net, x, p: net(x, p), *(each.double() for each in given))
    return max(
        ((found[name] - each).abs().max() / each.abs().max()).item()
        for name, each in expected.items()
    )


@settings(
    max_examples=12 if DEVICE == "cpu" else 3, phases=[Phase.generate]
)  # both are slow: interpreter, compiler
@given(
    instances=st.integers(1, 3),
    points=st.integers(1, 80),
    dim=st.integers(1, 18),
    blocks=st.integers(1, 2),
    width=st.sampled_from([16, 32]),
    shared=st.sampled_from([16, 64, 128]),
    gated=st.booleans(),
    activation=st.sampled_from(["silu", "relu"]),
)
def test_values_and_gradients_are_those_of_the_plain_module(instances, points, dim, **sizes):
    assert largest_error("fp32", instances, points, dim, **sizes) < 1e-4


def test_without_gradients_nothing_is_kept_and_the_value_is_the_same(monkeypatch):
    net, _ = networks(2, 3, blocks=2, width=16, shared=16)
    x, code = torch.randn(2, 70, 2, device=DEVICE), torch.randn(2, 3, device=DEVICE)
    taken: list[dict] = []
    one = torch.ones(2, device=DEVICE)
    forward = fused._forward

    class Watched:
        def __getitem__(self, grid):
            return lambda *a, **options: (taken.append(options), forward[grid](*a, **options))

    monkeypatch.setattr(fused, "_forward", Watched())
    fused.apply(net, x, net.prepare(code, one)["share"], "fp32")
    with torch.no_grad():
        prepared = net.prepare(code, one)
        share = prepared["share"]
        torch.testing.assert_close(fused.apply(net, x, share, "fp32"), net(x, prepared))
    assert [options["KEEP"] for options in taken] == [True, False]


def test_both_clamp_features_at_the_same_reach():
    assert fused.REACH.value == network.REACH


def test_a_cpu_uses_the_plain_module():
    assert not network_of(Coupling(), precision="tf32")._fits_kernels(torch.zeros(1, 64, 2))


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
@pytest.mark.parametrize(("precision", "bound"), [("tf32", 0.05), ("bf16", 0.05)])
@pytest.mark.parametrize("gated", [True, False])
def test_on_a_gpu_reduced_precision_is_close(precision: str, bound: float, gated: bool):
    assert largest_error(precision, 12, 100, 2, gated=gated) < bound


@pytest.mark.skipif(DEVICE == "cpu", reason="needs a GPU")
def test_a_gpu_uses_the_fused_kernels_where_they_fit():
    x = torch.zeros(1, 64, 2, device=DEVICE)
    assert not network_of(Coupling())._fits_kernels(x)  # exact products were asked for
    assert network_of(Coupling(), precision="tf32")._fits_kernels(x)
    assert network_of(Coupling(), precision="bf16")._fits_kernels(x)
    assert not network_of(Coupling(width=96), precision="tf32")._fits_kernels(x)
    assert not network_of(Coupling(sinusoids=4), precision="tf32")._fits_kernels(x)
    assert not network_of(Coupling(), precision="tf32")._fits_kernels(
        x[:, :8]
    )  # most of a tile is empty
