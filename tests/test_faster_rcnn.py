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
    groups,
    learn_faster_rcnn,
)
from proxlearn.measure.detection import row_of, truth_of
from proxlearn.networks.backbones import backbones

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
    how = {"backbone": "small", "device": "cpu", "progress": False}
    model = learn_faster_rcnn(problem, steps=2, instances=2, **how)
    tau = problem.look_up({"which": torch.tensor([1, 2, 2])})
    found = found_by_faster_rcnn(model, tau["image"])
    assert found.boxes.shape[0] == 3
    assert found.boxes.shape[:2] == found.real.shape == found.score.shape
    assert (found.score.diff(dim=1) <= 0).all()
    assert row_of(found, truth_of(problem, tau))["images"] == 3


@needed
def test_weights_of_a_backbone_are_read_from_a_file(tmp_path: Path):
    known = backbones["small"]()
    torch.save(known.state_dict(), tmp_path / "small.pth")
    model = faster_rcnn(64, "small", tmp_path / "small.pth")
    own = model.get_submodule("backbone.backbone").state_dict()
    assert all(torch.equal(own[name], each) for name, each in known.state_dict().items())
    with pytest.raises(px.FileError, match="is without"):
        faster_rcnn(64, "mobilenet_v2", tmp_path / "small.pth")


@needed
def test_the_backbone_has_a_rate_of_its_own():
    model = faster_rcnn(64, "efficientnet_lite0")
    own, others = groups(model)
    assert (own["factor"], others["factor"]) == (0.4, 1.0)
    assert len(own["params"]) == len([*model.get_submodule("backbone.backbone").parameters()])
    assert len(own["params"]) + len(others["params"]) == len([*model.parameters()])
