"""What a training changes about an image: which part of it is seen, mirrored or not, and its
colours (paper, D.8). All that is random is drawn first; boxes follow their images."""

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor
from torch.nn import functional

from proxlearn.images.boxes import areas, corners, from_corners, in_front, real

ZOOM = (0.5, 1.25)  # width of what is seen, in parts of the image; beyond the image it is grey
SLANT = 0.2  # how far width and height may differ in that, as a logarithm
CONTRAST = 0.25  # most that contrast changes, as a logarithm
SHIFT = 0.1  # most that red, green and blue change, each by itself
VISIBLE = 1 / 3  # the share of a box that has to be seen for it to be one

Window = Float[Tensor, "i 4"]  # of an image: left, top, width, height of what is seen


def plain(count: int, device: torch.device) -> dict[str, Tensor]:
    """Views of images as they are: windows, and what colours are multiplied by and shifted."""
    window = torch.tensor([0.0, 0.0, 1.0, 1.0], device=device).expand(count, 4).contiguous()
    contrast, shift = torch.ones(count, 1, device=device), torch.zeros(count, 3, device=device)
    return {"window": window, "contrast": contrast, "shift": shift}


def views(count: int, generator: Generator) -> dict[str, Tensor]:
    """Random ones, half of them mirrored: a window of negative width begins at the right."""
    draw = torch.rand(count, 9, generator=generator, device=generator.device)
    low, high = ZOOM
    zoom = low * (high / low) ** draw[:, :1]
    slant = torch.exp(SLANT * (draw[:, 1:2] - 0.5))
    size = torch.cat((zoom * slant, zoom / slant), 1)
    start = draw[:, 2:4] * (1 - size)  # inside the image, or around it
    mirrored = draw[:, 4:5] < 0.5
    left = torch.where(mirrored, start[:, :1] + size[:, :1], start[:, :1])
    width = torch.where(mirrored, -size[:, :1], size[:, :1])
    return {
        "window": torch.cat((left, start[:, 1:], width, size[:, 1:]), 1),
        "contrast": torch.exp(CONTRAST * (2 * draw[:, 5:6] - 1)),
        "shift": SHIFT * (2 * draw[:, 6:] - 1),
    }


def seen(images: Float[Tensor, "i 3 s s"], view: dict[str, Tensor]) -> Float[Tensor, "i 3 s s"]:
    """Images as they are in a view, of the same size and in [0, 1]."""
    window, side = view["window"], images.shape[-1]
    unit = (torch.arange(side, device=images.device, dtype=images.dtype) + 0.5) / side
    across, down = (window[:, k, None] + window[:, k + 2, None] * unit for k in (0, 1))  # (i s)
    full = images[:, 0].shape
    grid = torch.stack((across[:, None].expand(full), down[..., None].expand(full)), -1)
    contrast, shift = view["contrast"][..., None, None], view["shift"][..., None, None]
    looked = functional.grid_sample(images - 0.5, 2 * grid - 1, align_corners=False)
    return (contrast * looked + 0.5 + shift).clamp(0, 1)


def boxes_seen(
    boxes: Float[Tensor, "i k 4"], count: Int[Tensor, " i"], window: Window
) -> tuple[Float[Tensor, "i k 4"], Int[Tensor, " i"]]:
    """Boxes in parts of the window, clipped to it; those of which little is seen are none. Again
    the first `count` are real."""
    sides = corners(boxes)
    start, size = window[:, None, :2], window[:, None, 2:]
    some, other = ((each - start) / size for each in sides.split(2, -1))
    low, high = torch.minimum(some, other), torch.maximum(some, other)
    whole = (high - low).prod(-1)
    clipped = from_corners(torch.cat((low.clamp(0, 1), high.clamp(0, 1)), -1))
    kept = real(count, boxes.shape[1]) & (areas(clipped) > VISIBLE * whole)
    return in_front(kept, clipped), kept.sum(1)
