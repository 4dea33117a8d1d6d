"""Faster R-CNN (Ren et al., 2015), the paper's yardstick for boxes (D.8): that of torchvision, with
a feature pyramid on the same backbone as an operator, and trained on the same images. It is told no
classes: a box is that of a thing, or of none."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from proxlearn.common.batch import Batch
from proxlearn.common.seeds import generator_for
from proxlearn.detections.distinct import DistinctBoxes
from proxlearn.errors import InputError, ProxlearnError, TrainingError
from proxlearn.gpu.devices import pick_device
from proxlearn.gpu.precision import halved_on_gpu, products_in
from proxlearn.images.boxes import corners, from_corners
from proxlearn.measure.detection import AT_ONCE, truth_of
from proxlearn.networks.backbones import Backbone, backbones
from proxlearn.problems.base import Problem, sampled
from proxlearn.training.optimizer import schedule
from proxlearn.training.progress import Bar
from proxlearn.training.session import REPORT_SECONDS, Report

CLASSES = 2  # things, and what is none
ANCHORS = tuple(2.0**-k for k in range(4, -1, -1))  # of each level, in sides of the image
SHAPES = (0.5, 1.0, 2.0)  # of the anchors: height to width
SMALLEST = 1.0  # pixels of a side of a box, to learn from it
DECAY, LONGEST = 1e-4, 10.0  # of the weights; of a gradient


class MissingTorchvisionError(ProxlearnError, ImportError):
    """torchvision is not installed."""


def faster_rcnn(
    side: int, backbone: str = "resnet50", weights: str | Path | None = None
) -> nn.Module:
    """The untrained detector for images of this side, on a file of networks/backbones; `weights`:
    those that the backbone begins with."""
    try:
        from torchvision.models.detection import FasterRCNN  # pyright: ignore[reportMissingImports]
        from torchvision.models.detection.anchor_utils import AnchorGenerator  # pyright: ignore[reportMissingImports]
        from torchvision.ops import FeaturePyramidNetwork  # pyright: ignore[reportMissingImports]
        from torchvision.ops.feature_pyramid_network import LastLevelMaxPool  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingTorchvisionError(
            "Faster R-CNN is that of torchvision, which is not installed: pip install torchvision."
        ) from None
    body = Pyramid(backbones[backbone](), FeaturePyramidNetwork, LastLevelMaxPool())
    if weights is not None:
        body.backbone.read(weights)
    sizes = tuple((side * each,) for each in ANCHORS)
    anchors = AnchorGenerator(sizes, (SHAPES,) * len(sizes))
    as_they_are: dict[str, Any] = {"image_mean": (0.0,) * 3, "image_std": (1.0,) * 3}
    return FasterRCNN(
        body, CLASSES, min_size=side, max_size=side, rpn_anchor_generator=anchors, **as_they_are
    )


class Pyramid(nn.Module):
    """The maps of a backbone, to which the coarser ones are added, and a coarser one still."""

    out_channels = 256

    def __init__(self, backbone: Backbone, pyramid: Callable[..., nn.Module], last: nn.Module):
        super().__init__()
        self.backbone = backbone
        self.pyramid = pyramid([*backbone.channels], self.out_channels, extra_blocks=last)

    def forward(self, images: Float[Tensor, "i 3 s t"]) -> dict[str, Tensor]:
        with halved_on_gpu(images.device):
            maps = self.backbone(images)
        return self.pyramid({str(k): each.float() for k, each in enumerate(maps)})


def learn_faster_rcnn(
    problem: Problem,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    backbone: str = "resnet50",
    weights: str | Path | None = None,
    rate: float = 3e-4,
    instances: int = 16,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
) -> nn.Module:
    """Train it on the images of a problem whose boxes are known, for so many steps or seconds."""
    if not (steps or seconds):
        raise InputError("Give steps or seconds: the length of the training.")
    picked = pick_device(device)
    torch.manual_seed(seed)
    generator = generator_for(seed, "train", picked)
    side = problem.observe(sampled(problem, 1, "train", generator)).shape[-1]
    model = faster_rcnn(side, backbone, weights).to(picked).train()
    learned = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(groups(model), lr=rate, weight_decay=DECAY)
    started, reported, step, spent = time.monotonic(), 0.0, 0, 0.0
    with Bar("Faster R-CNN", progress) as bar, products_in("tf32"):
        while spent < 1:
            for group in optimizer.param_groups:
                group["lr"] = rate * schedule(spent) * group["factor"]
            loss = _loss(model, problem, sampled(problem, instances, "train", generator))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learned, LONGEST)
            optimizer.step()
            step, elapsed = step + 1, time.monotonic() - started
            spent = elapsed / seconds if seconds else step / (steps or 1)
            if elapsed - reported > REPORT_SECONDS or spent >= 1:
                bar.show(Report(step, elapsed, spent, {"loss": _number(loss)}))
                reported = elapsed
    return model.eval()


def groups(model: nn.Module) -> list[dict[str, Any]]:
    """What is trained, the backbone with a rate of its own."""
    body: Any = model.backbone
    own = [each for each in body.backbone.parameters() if each.requires_grad]
    known = {id(each) for each in own}
    others = [e for e in model.parameters() if e.requires_grad and id(e) not in known]
    return [
        {"params": own, "factor": body.backbone.rate_factor},
        {"params": others, "factor": 1.0},
    ]


def _loss(model: nn.Module, problem: Problem, tau: Batch) -> Tensor:
    """The sum of torchvision's losses: of proposals and of boxes."""
    images, (boxes, real) = problem.observe(tau), truth_of(problem, tau)
    sides = images.shape[-1] * corners(boxes)
    kept = real & ((sides[..., 2:] - sides[..., :2]) >= SMALLEST).all(-1)
    targets = [
        {"boxes": each[some], "labels": torch.ones_like(each[some, 0], dtype=torch.long)}
        for each, some in zip(sides, kept)
    ]
    return torch.stack([*model(list(images), targets).values()]).sum()


def _number(loss: Tensor) -> float:
    number = loss.item()
    if not math.isfinite(number):
        raise TrainingError("The loss of Faster R-CNN is no number: try a smaller rate.")
    return number


@torch.no_grad()
def found_by_faster_rcnn(model: nn.Module, images: Float[Tensor, "i 3 s s"]) -> DistinctBoxes:
    """Its boxes, the best first, with its own scores; there are no starts that could share them."""
    device, answers = next(model.parameters()).device, []
    with products_in("tf32"):
        for some in images.split(AT_ONCE):
            answers += model(list(some.to(device)))
    boxes = pad_sequence([each["boxes"] for each in answers], batch_first=True)
    score = pad_sequence([each["scores"] for each in answers], batch_first=True)
    many = torch.tensor([len(each["scores"]) for each in answers], device=device)
    real = torch.arange(score.shape[1], device=device) < many[:, None]
    boxes = from_corners(boxes / images.shape[-1])
    return DistinctBoxes(boxes, real, torch.zeros_like(score), score).to(images.device)
