"""All boxes around the things in an image (paper, 5.5)."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from proxlearn.common.batch import Batch, Device, Points
from proxlearn.common.checks import said, whole
from proxlearn.errors import InputError
from proxlearn.images import boxes, scenes, views
from proxlearn.images.packed import Labelled, Packed, read_packed
from proxlearn.instances.image import Images
from proxlearn.problems.base import Problem, Split
from proxlearn.spaces import Box

SIDE = 128  # of generated images, unless told otherwise
FINEST = 8  # pixels: of other sides, places of the finest map would lie partly outside
AROUND = (0.03, 0.9)  # how far from a true box points begin, in parts of its sides


class Detection(Problem):
    """`f(x) = min_k |b_k - x|_1`: how far a box x = (cx, cy, w, h) is from the nearest of the boxes
    b_k of an image, in parts of the image; tau is the image with its boxes, and an operator sees
    the image alone. An image without boxes has the objective 0.

    `data` are packed images (`proxlearn.images.coco.read_coco`) or the path of a file of them;
    without any, images are generated, new ones each time. `side` is what they are stretched to, a
    multiple of 8: as packed, or 128. Those to train on are seen cropped, mirrored and with other
    colours."""

    name = "detection"
    space = Box(0.0, 1.0, dim=4)
    lam = 3.0
    near = 0.5
    architecture = "boxes"
    costly = True
    instances: Images

    def __init__(self, data: Packed | str | Path | None = None, side: int | None = None):
        self.data = None if data is None else _with_boxes(data)
        if side is None:
            side = SIDE if self.data is None else self.data.side
        self.instances = Images(_checked(side))
        self.stores: dict[torch.device, Labelled] = {}

    @property
    def drawn_from(self):
        if self.data is None:
            return "generated scenes, new ones in every step"
        return f"{self.data.trained:,} images, cropped, mirrored and with other colours"

    def on(self, device: Device) -> Labelled:
        """All images of the data on a device, decoded when they are first asked for."""
        assert self.data is not None
        cpu, device = torch.device("cpu"), torch.device(device)
        if cpu not in self.stores:
            self.stores[cpu] = self.data.decoded(self.instances.side)
        if device not in self.stores:
            self.stores[device] = self.stores[cpu].to(device)
        return self.stores[device]

    def sample(self, count, split, generator):
        """Scenes; or indices and views of the images: of those to test on, none is drawn twice
        before all are."""
        if self.data is None:
            return scenes.scenes(count, generator)
        device, (low, high) = generator.device, _of_split(self.data, split)
        if split == "train":
            which = torch.randint(low, high, (count,), generator=generator, device=device)
            return {"which": which, **views.views(count, generator)}
        rounds = -(-count // (high - low))
        orders = [
            torch.randperm(high - low, generator=generator, device=device) for _ in range(rounds)
        ]
        return {"which": low + torch.cat(orders)[:count], **views.plain(count, device)}

    def look_up(self, drawn):
        if self.data is None:
            image = scenes.painted(drawn, self.instances.side)
            return {"image": image, "boxes": drawn["boxes"], "count": drawn["count"]}
        store, which = self.on(drawn["which"].device), drawn["which"]
        image = views.seen(store.pixels[which].float() / 255, drawn)
        seen, count = views.boxes_seen(store.boxes[which], store.count[which], drawn["window"])
        return {"image": image, "boxes": seen, "count": count}

    def observe(self, tau):
        return tau["image"]

    def is_whole(self, tau):
        return isinstance(tau[0] if isinstance(tau, list) and tau else tau, dict)

    def objective(self, x, tau):
        nearest = self._far(x, tau).amin(-1)
        return torch.where(tau["count"][:, None] > 0, nearest, 0.0)

    def _far(self, x: Points, tau: Batch) -> Float[Tensor, "i n k"]:
        """From every true box, in the 1-norm; infinitely from rows that are none."""
        known, real = self.known(tau)
        far = (x[:, :, None] - known[:, None].to(x)).abs().sum(-1)
        return torch.where(real[:, None], far, torch.inf)

    def quality(self, x, tau):
        """The IoU with the best true box; 0 where there is none."""
        known, real = self.known(tau)
        return torch.where(real[:, None], boxes.overlaps(x, known.to(x)), 0.0).amax(-1)

    def known(self, tau):
        return tau["boxes"], boxes.real(tau["count"], tau["boxes"].shape[1])

    def around(self, known, noise, far):
        """Their sides and their center change by a share of the sides."""
        low, high = AROUND
        sides = known[..., 2:].repeat(1, 1, 2)
        return self.space.project(known + (low * (high / low) ** far)[..., None] * sides * noise)

    def polished(self, x, tau):
        """The nearest true box, which descent leads to: minima are kinks."""
        nearest = self._far(x, tau).argmin(-1)[..., None].expand_as(x)
        return torch.where(
            tau["count"][:, None, None] > 0, tau["boxes"].to(x).gather(1, nearest), x
        )

    def truth(self, tau):
        return [own[:count] for own, count in zip(tau["boxes"], tau["count"].tolist())]


def _of_split(data: Packed, split: Split) -> tuple[int, int]:
    """The first of the images to train or to test on, and the one after the last: all, where there
    are no such images."""
    low, high = (0, data.trained) if split == "train" else (data.trained, len(data))
    return (low, high) if low < high else (0, len(data))


def _with_boxes(given: Any) -> Packed:
    """Packed images, or those of a file of them; an error where there is nothing to learn, or
    nothing to judge by."""
    if not isinstance(given, Packed | str | Path):
        raise InputError(
            "data must be packed images, as read_coco gives them, or the path of a file of them "
            f"(.npz), not {said(given)}."
        )
    data = given if isinstance(given, Packed) else read_packed(given)
    for split in ("train", "test"):
        low, high = _of_split(data, split)
        if data.box_offset[low] == data.box_offset[high]:
            raise InputError(
                f"None of the {high - low:,} images to {split} on has a box that can be used. Give "
                "images with boxes; the report of read_coco says which boxes were left out."
            )
    return data


def _checked(side: Any) -> int:
    """The side of images, in pixels."""
    found = whole("side", side, FINEST)
    if found % FINEST:
        near = FINEST * (1 + found // FINEST)
        raise InputError(f"side must be a multiple of {FINEST}, such as {near}, not {found}.")
    return found
