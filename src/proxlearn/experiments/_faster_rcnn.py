"""Faster R-CNN (Ren et al., 2015), the paper's yardstick for boxes (D.8): that of torchvision, with
ResNet-50 and a feature pyramid, trained on the same images as an operator. It is told no classes: a
box is that of a thing, or of none."""

import math
import time
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from proxlearn.common.batch import Batch
from proxlearn.common.seeds import generator_for
from proxlearn.detections.distinct import DistinctBoxes
from proxlearn.errors import FileError, InputError, ProxlearnError, TrainingError
from proxlearn.gpu.devices import pick_device
from proxlearn.images.boxes import corners, from_corners
from proxlearn.measure.detection import AT_ONCE, truth_of
from proxlearn.problems.base import Problem, sampled
from proxlearn.training.optimizer import schedule
from proxlearn.training.progress import Bar
from proxlearn.training.session import REPORT_SECONDS, Report

CLASSES = 2  # things, and what is none
ANCHORS = tuple(2.0**-k for k in range(4, -1, -1))  # of each level, in sides of the image
SHAPES = (0.5, 1.0, 2.0)  # of the anchors: height to width
STAGES, TUNED = 5, 3  # of the backbone: all, and those that are trained where it begins trained
SMALLEST = 1.0  # pixels of a side of a box, to learn from it
DECAY, LONGEST = 1e-4, 10.0  # of the weights; of a gradient


class MissingTorchvisionError(ProxlearnError, ImportError):
    """torchvision is not installed."""


def faster_rcnn(side: int, weights: str | Path | None = None) -> nn.Module:
    """The untrained detector for images of this side; `weights`: a file with the state dict of
    torchvision's ResNet-50, to begin with."""
    try:
        from torchvision.models.detection import FasterRCNN  # pyright: ignore[reportMissingImports]
        from torchvision.models.detection.anchor_utils import AnchorGenerator  # pyright: ignore[reportMissingImports]
        from torchvision.models.detection.backbone_utils import resnet_fpn_backbone  # pyright: ignore[reportMissingImports]
        from torchvision.ops.misc import FrozenBatchNorm2d  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingTorchvisionError(
            "Faster R-CNN is that of torchvision, which is not installed: pip install torchvision."
        ) from None
    begun: dict[str, Any] = {"norm_layer": nn.BatchNorm2d, "trainable_layers": STAGES}
    if weights is not None:
        begun = {"norm_layer": FrozenBatchNorm2d, "trainable_layers": TUNED}
    backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None, **begun)
    if weights is not None:
        _read(backbone.body, weights)
    sizes = tuple((side * each,) for each in ANCHORS)
    anchors = AnchorGenerator(sizes, (SHAPES,) * len(sizes))
    return FasterRCNN(backbone, CLASSES, min_size=side, max_size=side, rpn_anchor_generator=anchors)


def _read(body: nn.Module, path: str | Path) -> None:
    """The weights of a file into the backbone, all but those of its classes."""
    try:
        known = torch.load(path, map_location="cpu", weights_only=True)
        own = {name: known[name] for name in body.state_dict()}
        body.load_state_dict(own)
    except LookupError as error:
        raise FileError(
            f"{path} holds no weights of torchvision's ResNet-50: it lacks {error}."
        ) from None
    except (OSError, RuntimeError, TypeError, EOFError, ValueError, UnpicklingError) as error:
        raise FileError(
            f"{path} cannot be read as weights of torchvision's ResNet-50: "
            f"{str(error).splitlines()[0]}"
        ) from None


def learn_faster_rcnn(
    problem: Problem,
    *,
    steps: int | None = None,
    seconds: float | None = None,
    weights: str | Path | None = None,
    rate: float = 2e-4,
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
    model = faster_rcnn(side, weights).to(picked).train()
    learned = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=rate, weight_decay=DECAY)
    started, reported, step, spent = time.monotonic(), 0.0, 0, 0.0
    with Bar("Faster R-CNN", progress) as bar:
        while spent < 1:
            for group in optimizer.param_groups:
                group["lr"] = rate * schedule(spent)
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
    for some in images.split(AT_ONCE):
        answers += model(list(some.to(device)))
    boxes = pad_sequence([each["boxes"] for each in answers], batch_first=True)
    score = pad_sequence([each["scores"] for each in answers], batch_first=True)
    many = torch.tensor([len(each["scores"]) for each in answers], device=device)
    real = torch.arange(score.shape[1], device=device) < many[:, None]
    boxes = from_corners(boxes / images.shape[-1])
    return DistinctBoxes(boxes, real, torch.zeros_like(score), score).to(images.device)
