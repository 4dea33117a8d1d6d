"""Faster R-CNN of torchvision, where it is installed."""

from pathlib import Path

import pytest
import torch
from test_detection_metrics import Rectangles

import proxlearn as px
from proxlearn.experiments._faster_rcnn import (
    MissingTorchvisionError,
    faster_rcnn,
    found_by_faster_rcnn,
    learn_faster_rcnn,
)
from proxlearn.measure.detection import row_of, truth_of

try:
    import torchvision
except ImportError:
    torchvision = None
needed = pytest.mark.skipif(torchvision is None, reason="torchvision is not installed")


@pytest.mark.skipif(torchvision is not None, reason="torchvision is installed")
def test_without_torchvision_an_error_says_what_to_install():
    with pytest.raises(MissingTorchvisionError, match="pip install torchvision"):
        faster_rcnn(64)


def test_a_training_needs_a_length():
    with pytest.raises(px.InputError, match="Give steps or seconds"):
        learn_faster_rcnn(Rectangles())


@needed
def test_a_short_training_gives_boxes_that_can_be_measured():
    problem = Rectangles()
    model = learn_faster_rcnn(problem, steps=2, instances=2, device="cpu", progress=False)
    tau = problem.look_up({"which": torch.tensor([1, 2, 2])})
    found = found_by_faster_rcnn(model, tau["image"])
    assert found.boxes.shape[0] == 3
    assert found.boxes.shape[:2] == found.real.shape == found.score.shape
    assert (found.score.diff(dim=1) <= 0).all()
    assert row_of(found, truth_of(problem, tau))["images"] == 3


@needed
def test_weights_of_a_backbone_are_read_from_a_file(tmp_path: Path):
    from torchvision.models import resnet50

    known = resnet50(weights=None).state_dict()
    torch.save(known, tmp_path / "resnet50.pth")
    model = faster_rcnn(64, tmp_path / "resnet50.pth")
    own = model.backbone.body.state_dict()
    assert all(torch.equal(own[name], known[name]) for name in own)
    assert not model.backbone.body.conv1.weight.requires_grad
    torch.save({"a": torch.zeros(1)}, tmp_path / "other.pth")
    with pytest.raises(px.FileError, match=r"it lacks 'conv1.weight'"):
        faster_rcnn(64, tmp_path / "other.pth")
    with pytest.raises(px.FileError, match="cannot be read as weights"):
        faster_rcnn(64, tmp_path / "missing.pth")
