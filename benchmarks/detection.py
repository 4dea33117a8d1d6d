"""Boxes in images: images a second, from pixels to distinct boxes.

    python benchmarks/detection.py [--weights FILE] [--operator FILE]

Images have 256 x 256 pixels, 32 go at a time, and every start is applied 20 times. The networks are
untrained, with the backbone `small` and, given its weights, EfficientNet-Lite0: they let boxes stay
where they begin, so that telling apart as many boxes as there are starts takes longer than where
boxes gather. A trained operator (--operator) takes the time that one takes. Solving alone is timed,
too.
"""

from functools import partial
from pathlib import Path

import torch
from _shared import Benchmark, options, show
from _timing import Call, interleaved

import proxlearn as px
from proxlearn.common.seeds import generator_for
from proxlearn.detections.detected import side_of, solved
from proxlearn.detections.starts import starting_boxes
from proxlearn.measure.detection import found_by
from proxlearn.networks.boxes import Boxes
from proxlearn.operators.load import load
from proxlearn.problems.detection import Detection

SIDE, APPLICATIONS = 256, 20
LAMS = (0.5, 20.0)


def operators(run: Benchmark, side: int) -> dict[str, px.Operator]:
    """What is timed, by its backbone."""
    asked, problem = run.asked, Detection(side=side)
    networks = {"small": Boxes()}
    if asked.weights:
        networks["efficientnet_lite0"] = Boxes("efficientnet_lite0", weights=asked.weights)
    every = {
        name: px.Operator.untrained(problem, network, 3.0, LAMS).eval().to(run.device)
        for name, network in networks.items()
    }
    if asked.operator:
        every["of the operator"] = load(asked.operator, str(run.device))
    return every


def calls(operator: px.Operator, images: int, starts: int) -> dict[str, Call]:
    """What is done to a batch of random images."""
    device, side = operator.device, side_of(operator)
    noise = torch.rand(images, 3, side, side, generator=generator_for(0, "images"))
    noise = noise.to(device)
    points = starting_boxes(operator, starts, 0)
    return {
        "solved": partial(solved, noise, operator, points, APPLICATIONS),
        "distinct boxes": partial(found_by, operator, noise, starts, steps=APPLICATIONS),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--weights", type=Path, help="of EfficientNet-Lite0 (.pth)")
    parser.add_argument("--operator", type=Path, help="the file of a trained operator")
    run = Benchmark("detection", parser.parse_args(arguments))
    side, images, rounds = (64, 2, 2) if run.quick else (SIDE, 32, 7)
    for name, operator in operators(run, side).items():
        for starts in (8, 16) if run.quick else (256, 1024):
            own = calls(operator, images, starts)
            for done, timing in interleaved(own, run.device, rounds, 0.5 * (not run.quick)).items():
                about = {"backbone": name, "images": images, "side": side_of(operator)}
                about |= {"starts": starts, "applications": APPLICATIONS, "done": done}
                a_second = images / timing.median
                run.add(**about, **timing.fields(), images_per_second=a_second)
    keys = ("backbone", "starts", "done", "seconds", "images_per_second")
    lines = [[each[key] for key in keys] for each in run.rows]
    show("Boxes in images", ("backbone", "starts", "done", "seconds", "images a second"), lines)
    run.save()


if __name__ == "__main__":
    main()
