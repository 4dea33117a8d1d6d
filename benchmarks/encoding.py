"""What it costs to keep codes: a training that encodes every instance of a step anew, and trainings
that encode some of them and keep the codes of the others (`encodes=`), in the same time.

    python benchmarks/encoding.py

tau is a picture of 64 x 64 pixels with up to four dots, encoded by convolutions, which take most of
a step. Quality is the share of dots on test pictures that have a solution within 2% of the picture.
"""

from typing import Any

import torch
from _shared import Benchmark, options, show

import proxlearn as px
from proxlearn.instances.picture import Pictures
from proxlearn.networks.encoders.picture import Picture
from proxlearn.problems.base import held_out

SIDE, MOST = 64, 4
PICTURES = Pictures(1, SIDE, SIDE)
STEP: dict[str, Any] = {"instances": 96, "points": 64, "depth": 5, "lam": 4.0, "applications": 10}


class Dots(px.Problem):
    """`f(x)` = squared distance to the nearest of 1 to 4 dots in a picture."""

    name = "large-dots"
    space = px.Box(0.0, 1.0, dim=2)
    instances = PICTURES

    def sample(self, count, split, generator):
        device = generator.device
        dots = 0.1 + 0.8 * torch.rand(count, MOST, 2, generator=generator, device=device)
        number = torch.randint(1, MOST + 1, (count, 1), generator=generator, device=device)
        present = torch.arange(MOST, device=device) < number
        pixels = (torch.arange(SIDE, device=device) + 0.5) / SIDE
        across, down = ((-(pixels - dots[..., k, None]).square() / 0.005).exp() for k in (0, 1))
        blobs = present[..., None, None] * down[..., :, None] * across[..., None, :]
        return {"picture": blobs.amax(1, keepdim=True), "dots": dots, "present": present}

    def observe(self, tau):
        return tau["picture"]

    def encoder(self):
        return Picture(PICTURES, size=128, features=64)

    def objective(self, x, tau):
        squares = (x[:, :, None] - tau["dots"][:, None]).square().sum(-1)
        return squares.masked_fill(~tau["present"][:, None], torch.inf).amin(-1)

    def truth(self, tau):
        return [dots[present] for dots, present in zip(tau["dots"], tau["present"])]


def main(arguments: list[str] | None = None) -> None:
    run = Benchmark("encoding", options(__doc__).parse_args(arguments))
    problem, device = Dots(), run.device.type
    tau = held_out(problem, 8 if run.quick else 256, 1, run.device)
    small: dict[str, Any] = {"instances": 12, "points": 8} if run.quick else {}
    for encodes in (None, 48, 16):
        how = STEP | small | {"seconds": 1.0 if run.quick else 25.0, "encodes": encodes}
        operator = px.learn(problem, device=device, progress=False, **how)
        found = operator.solve(tau, starts=256)
        hits, known = px.metrics.recall(found, problem.truth(tau), 0.02 * problem.space.diameter)
        run.add(
            encodes=encodes or "all",
            steps=operator.provenance["steps"],
            seconds=operator.provenance["seconds"],
            found=hits / known,
        )
    lines = [(each["encodes"], each["steps"], each["found"]) for each in run.rows]
    show("Pictures of a step that are encoded", ("encoded", "steps", "dots found"), lines)
    run.save()


if __name__ == "__main__":
    main()
