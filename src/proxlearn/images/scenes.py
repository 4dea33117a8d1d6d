"""Generated images: shapes of plain colours on textured grounds, with exact boxes. A scene is all
that is random in one, a few numbers; it is painted at any size, and on any device."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor
from torch.nn import functional

from proxlearn.common.memory import afford
from proxlearn.images.boxes import areas, in_front, shared_areas

MOST = 10  # shapes in an image; the fewest is 1
SMALLEST, LARGEST = 0.005, 0.5  # area of a box, in parts of the image
FULLEST = 1.0  # area of all boxes together, at most
ASPECT = 0.8  # most that width and height differ, as a logarithm
LONGEST = 0.95  # side of a box
HIDDEN = 0.1  # most that two boxes have in common, in parts of the smaller one
PLACES = 16  # that are tried for a shape
COLOURS = 6  # of which a shape has the one that is least like the ground
WAVES, GRAIN = 4, 16  # of a ground: plane waves, and cells of noise along a side
IN_PAINTING = 60  # bytes of a pixel
ROUGH = 0.05  # how strong each of these is
STEEPEST = 40.0  # radians that a wave goes through along a side


def scenes(count: int, generator: Generator) -> dict[str, Tensor]:
    """So many random scenes, on the generator's device."""
    own = {"generator": generator, "device": generator.device}
    boxes, number = _placed(count, generator)
    ground = 0.15 + 0.7 * torch.rand(count, 3, **own)
    colours = torch.rand(count, MOST, COLOURS, 3, **own)
    unlike = (colours - ground[:, None, None]).norm(dim=-1).argmax(-1)
    chosen = unlike[..., None, None].expand(count, MOST, 1, 3)
    waves = STEEPEST * (2 * torch.rand(count, WAVES, 3, **own) - 1)
    return {
        "boxes": boxes,
        "count": number,
        "kind": torch.randint(len(KINDS), (count, MOST), **own),
        "form": torch.rand(count, MOST, **own),
        "colours": colours.gather(2, chosen)[:, :, 0],
        "ground": ground,
        "waves": waves,
        "tints": ROUGH * torch.randn(count, WAVES, 3, **own),
        "grain": ROUGH * torch.randn(count, 3, GRAIN, GRAIN, **own),
    }


def painted(scene: dict[str, Tensor], side: int) -> Float[Tensor, "i 3 s s"]:
    """Images of scenes in [0, 1]: large shapes first, so that small ones are in front."""
    device = scene["boxes"].device
    unit = (torch.arange(side, device=device, dtype=torch.float32) + 0.5) / side
    if device.type == "cpu":  # a GPU may not be asked while its step is captured
        count = len(scene["boxes"])
        what = f"{count:,} images of {side:,} x {side:,} pixels"
        afford(IN_PAINTING * count * side**2, what, "give a smaller side=")
    image = _grounds(scene, unit)
    for k in range(MOST):
        box = scene["boxes"][:, k, :, None, None]
        half = (box[:, 2:] / 2).clamp(min=1e-6)
        across, down = (unit - box[:, 0]) / half[:, 0], (unit[:, None] - box[:, 1]) / half[:, 1]
        level = _level(across, down, scene["kind"][:, k], scene["form"][:, k])
        sharp = side * half.amin(1)  # from a share of the half box to pixels
        cover = ((1 - level) * sharp + 0.5).clamp(0, 1)
        cover = cover * (scene["count"] > k)[:, None, None]
        image = image + cover[:, None] * (scene["colours"][:, k, :, None, None] - image)
    return image


def _placed(count: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Boxes (i, MOST, 4) from large to small, and how many there are: each is put where it covers
    the others least, and left out if that is still too much."""
    own = {"generator": generator, "device": generator.device}
    wanted = torch.randint(1, MOST + 1, (count, 1), **own)
    largest = (FULLEST / wanted).clamp(max=LARGEST)
    area = SMALLEST * (largest / SMALLEST) ** torch.rand(count, MOST, **own)
    order = torch.arange(MOST, device=generator.device)
    area = torch.where(order < wanted, area, 0.0).sort(1, descending=True).values
    aspect = torch.exp(ASPECT * (2 * torch.rand(count, MOST, **own) - 1))
    size = torch.stack(((area * aspect).sqrt(), (area / aspect).sqrt()), -1).clamp(max=LONGEST)
    spots = torch.rand(count, MOST, PLACES, 2, **own)
    boxes, there = area.new_zeros(count, MOST, 4), order < 0
    there = there.expand(count, MOST)
    for k in range(MOST):
        wide = size[:, k, None].expand(count, PLACES, 2)
        tried = torch.cat((wide / 2 + spots[:, k] * (1 - wide), wide), -1)
        smaller = torch.minimum(areas(tried)[..., None], areas(boxes)[:, None])
        hidden = (shared_areas(tried, boxes) / smaller.clamp(min=1e-9)).amax(-1)
        least, best = hidden.min(1)
        fits = (least < HIDDEN) & (k < wanted[:, 0])
        box = tried.gather(1, best[:, None, None].expand(count, 1, 4))
        new = fits[:, None] & (order == k)
        boxes, there = torch.where(new[..., None], box, boxes), there | new
    return in_front(there, boxes), there.sum(1)


def _grounds(scene: dict[str, Tensor], unit: Tensor) -> Float[Tensor, "i 3 s s"]:
    """Waves and noise around a colour."""
    across, down, begin = scene["waves"][..., None, None].unbind(2)  # factors, and a phase
    waves = torch.sin(across * unit + down * unit[:, None] + begin)  # (i, WAVES, s, s)
    tinted = torch.einsum("iwyx,iwc->icyx", waves, scene["tints"])
    grain = functional.interpolate(scene["grain"], len(unit), mode="bilinear")
    return (scene["ground"][..., None, None] + tinted + grain).clamp(0, 1)


def _level(across: Tensor, down: Tensor, kind: Tensor, form: Tensor) -> Float[Tensor, "i s s"]:
    """Below 1 inside a shape that fills the box from -1 to 1 and touches its four sides."""
    x, y = torch.broadcast_tensors(across, down)
    form, kind = form[:, None, None], kind[:, None, None]
    levels = [each(x, y, form) for each in KINDS]
    chosen = levels[0]
    for k, level in enumerate(levels[1:], 1):
        chosen = torch.where(kind == k, level, chosen)
    return chosen


def _ellipse(x: Tensor, y: Tensor, form: Tensor) -> Tensor:
    return torch.hypot(x, y)


def _rectangle(x: Tensor, y: Tensor, form: Tensor) -> Tensor:
    return torch.maximum(x.abs(), y.abs())


def _diamond(x: Tensor, y: Tensor, form: Tensor) -> Tensor:
    return x.abs() + y.abs()


def _ring(x: Tensor, y: Tensor, form: Tensor) -> Tensor:
    inner = 0.4 + 0.2 * form
    radius = torch.hypot(x, y)
    return torch.maximum(radius, 1 + inner - radius)


def _cross(x: Tensor, y: Tensor, form: Tensor) -> Tensor:
    thin = 1 - (0.25 + 0.2 * form)
    arms = torch.minimum(x.abs(), y.abs()) + thin
    return torch.maximum(arms, _rectangle(x, y, form))


def _triangle(x: Tensor, y: Tensor, form: Tensor) -> Tensor:
    """Its tip is up, at -1 to 1 along the box."""
    tip = 2 * form - 1
    left, right = (tip - (1 + tip) * (1 + y) / 2), (tip + (1 - tip) * (1 + y) / 2)
    return 1 + torch.maximum(torch.maximum(left - x, x - right), y - 1)


KINDS = (_ellipse, _rectangle, _diamond, _ring, _cross, _triangle)
