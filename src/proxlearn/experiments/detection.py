"""Boxes in images (paper, 5.5 and D.8): POL that looks, pooled POL, GOL, FN and Faster R-CNN.

The images are generated, or those of a list as COCO has it (`--data`). All methods have the same
backbone, which begins with the weights of a file (`--weights`) or with nothing, and are trained for
the same time; the operator that looks, once more for longer. Scores from which boxes are listed are
chosen on training images.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from torch import nn

from proxlearn.common.provenance import Row
from proxlearn.common.weight_files import read_weights, write_weights
from proxlearn.detections.detected import DETECTION
from proxlearn.detections.distinct import DistinctBoxes, distinct_boxes
from proxlearn.errors import InputError
from proxlearn.experiments._detection_figures import (
    COLUMNS,
    SIZES,
    draw_page,
    draw_recall,
    draw_stages,
)
from proxlearn.experiments._faster_rcnn import (
    faster_rcnn,
    found_by_faster_rcnn,
    learn_faster_rcnn,
)
from proxlearn.experiments._pictures import (
    Begun,
    Finder,
    Pictures,
    Pooled,
    problem_of,
    to_test_on,
)
from proxlearn.experiments._shared import (
    SEED,
    Folder,
    all_published,
    check_same,
    markdown,
    trained_for,
)
from proxlearn.gpu.devices import pick_device
from proxlearn.measure.detection import (
    Calibration,
    best_threshold,
    found_by,
    row_of,
    wd_threshold,
)
from proxlearn.networks.backbones import backbones
from proxlearn.networks.boxes import Boxes
from proxlearn.operators.operator import Operator
from proxlearn.problems.detection import Detection
from proxlearn.solvers.fixed_number.learn import learn_fixed_number
from proxlearn.solvers.fixed_number.network import FixedNumber, load_fixed_number

DATA = "a folder or a JSON file as COCO has it, or packed images (.npz)"
WEIGHTS = "a file with the weights of EfficientNet-Lite0 (.pth)"
SURE = (0.8, 0.95)  # scores from which the boxes of Faster R-CNN are listed, as published
METHODS, STARTS = "methods", "where training points begin"  # the parts of the table
SHOWN, PAGE = 4, 24  # test images in the figures


@dataclass(frozen=True)
class Sizes:
    length: dict[str, float]  # of every training that is compared: seconds, or steps
    longer: dict[str, float]  # of one more training of the operator that looks
    recipe: dict[str, Any]  # of every operator, beside its network
    network: dict[str, Any]  # sizes of the one that looks
    fixed: dict[str, Any]  # of FN
    begun: tuple[tuple[float, str], ...]  # where else points begin: near, and the sampling
    applications: tuple[int, ...] = (20,)  # besides until boxes stop
    pooled_applications: tuple[int, ...] = (20, 100)
    starts: int = 1024
    side: int | None = None  # of the images; None: as packed, or 128 of generated ones
    images: int | None = None  # to test on; None: all, or 1,000 of generated ones
    calibrated: int = 512  # training images on which scores are chosen


FULL = Sizes(
    length={"seconds": 80.0},
    longer={"seconds": 360.0},
    recipe={
        "sampling": "unfold",
        "depth": 3,
        "lam": (0.5, 20.0),
        "instances": 32,
        "points": 96,
        "near": 0.5,
        "rate": 1.5e-3,
    },
    network={},
    fixed={"precision": "tf32"},
    begun=((0.0, "unfold"), (1.0, "unfold"), (0.5, "pool")),
)
QUICK = Sizes(
    length={"seconds": 30.0},
    longer={"seconds": 60.0},
    recipe=FULL.recipe | {"depth": 2, "instances": 16, "points": 24},
    network={"mixed": 64, "channels": 32, "width": 64},
    fixed={"instances": 16},
    begun=((0.0, "unfold"),),
    applications=(5,),
    pooled_applications=(5,),
    starts=48,
    side=64,
    images=32,
    calibrated=32,
)
LEFT_OUT = (
    "It trains for 30 and 60 seconds instead of 80 and 360 on a GPU, with few boxes in a step, on "
    "images of 64 x 64 pixels, and measures 32 of them from 48 starts instead of 1,000 from 1,024, "
    "so that its numbers are not those of the full run."
)


def run(sizes: Sizes, folder: Folder) -> tuple[list[Row], str]:
    problem, said = problem_of(folder, sizes.side)
    device, (backbone, weights) = pick_device(folder.device), Begun.of(folder)
    if weights:
        backbones[backbone]().read(weights)  # says at once if that cannot be done
    trained = Pictures.of(problem, "train", sizes.calibrated, device)
    tested = Pictures.of(problem, "test", to_test_on(problem, sizes.images), device)
    measuring = Measuring(problem, trained, tested, sizes, folder)
    rows = folder.in_parts({name: partial(PARTS[name], measuring) for name in parts()})
    if last := {r["label"].partition(",")[0]: r for r in rows if r["measure"] == METHODS}:
        with folder.figure("recall.png", 8.0, 4.0) as figure:
            draw_recall(figure.subplots(), [*last.values()])
    return rows, table(rows, said) if rows else f"{said}\n"


def parts() -> tuple[str, ...]:
    """All that can be run alone; Faster R-CNN only where there is torchvision."""
    return tuple(each for each in PARTS if each != FASTER or find_spec("torchvision"))


def of_looking(run: "Measuring") -> list[Row]:
    """The operator that looks, trained for as long as all others."""
    near, sampling = (run.sizes.recipe[name] for name in ("near", "sampling"))
    rows = looked(run, "looking", run.sizes.length)
    return [*rows, rows[-1] | {"measure": STARTS, "label": begun_label(near, sampling)}]


def of_longer(run: "Measuring") -> list[Row]:
    """The same, trained longer."""
    return looked(run, "looking longer", run.sizes.longer)


def looked(run: "Measuring", label: str, length: dict[str, float]) -> list[Row]:
    """An operator that looks, with its figures."""
    folder, name = run.folder, label.replace(" ", "-")
    operator = folder.train(name, run.problem, run.looks | length)
    rows = run.of_operator(label, operator, run.sizes.applications)
    rows.append(run.until_stopped(f"{label}, until they stop", operator, METHODS))
    operator.save(folder.path / name / "operator.safetensors")  # with its threshold
    draw_looking(run, operator)
    return rows


def of_pooled(run: "Measuring") -> list[Row]:
    """The paper's operator, which sees an image as one vector."""
    sizes, often = run.sizes, {"applications": run.sizes.pooled_applications[-1]}
    operator = run.folder.train("pooled", run.pooled, sizes.recipe | sizes.length | often)
    return run.of_operator("pooled", operator, sizes.pooled_applications)


def of_gol(run: "Measuring") -> list[Row]:
    """The same network, trained by gradient steps."""
    sizes, often = run.sizes, {"applications": run.sizes.pooled_applications[-1]}
    ranged = {name: each for name, each in sizes.recipe.items() if name != "lam"}
    how = ranged | sizes.length | often | {"rule": "gradient"}
    operator = run.folder.train("gol", run.pooled, how)
    return run.of_operator("GOL, pooled", operator, sizes.pooled_applications)


def of_fixed_number(run: "Measuring") -> list[Row]:
    network = trained_network(run.pooled, run.sizes, run.folder)
    find, about = partial(named, network), trained_for(network.provenance)
    _, *scores = run.calibrated(find)
    return [run.row(METHODS, f"FN, {network.count} boxes", find, *scores, **about)]


def of_faster_rcnn(run: "Measuring") -> list[Row]:
    find = partial(found_by_faster_rcnn, trained_detector(run.problem, run.sizes, run.folder))
    about = {f"trained_{name}": each for name, each in run.sizes.length.items()}
    return [run.row(METHODS, f"Faster R-CNN, {t:.2f}", find, t, t, **about) for t in SURE]


def of_starts(run: "Measuring") -> list[Row]:
    """The operator that looks, with training points that begin elsewhere."""
    rows = []
    for near, sampling in run.sizes.begun:
        label = begun_label(near, sampling)
        how = run.looks | run.sizes.length | {"near": near, "sampling": sampling}
        operator = run.folder.train(label.replace(", ", "-").replace(" ", ""), run.problem, how)
        rows.append(run.until_stopped(label, operator, STARTS))
    return rows


def begun_label(near: float, sampling: str) -> str:
    return f"near {near:g}, {sampling}"


FASTER = "faster-rcnn"
PARTS: dict[str, Callable[["Measuring"], list[Row]]] = {
    "looking": of_looking,
    "pooled": of_pooled,
    "gol": of_gol,
    "fn": of_fixed_number,
    FASTER: of_faster_rcnn,
    "starts": of_starts,
    "longer": of_longer,
}


@dataclass(frozen=True)
class Measuring:
    """A run: its images, and rows of what methods find in those to test on."""

    problem: Detection
    trained: Pictures
    tested: Pictures
    sizes: Sizes
    folder: Folder

    @property
    def looks(self) -> dict[str, Any]:
        """How the operator that looks is trained, but for how long."""
        network = Boxes(**Begun.of(self.folder)._asdict(), **self.sizes.network)
        return self.sizes.recipe | {"architecture": network}

    @property
    def pooled(self) -> Pooled:
        """The same images for networks that see them as one vector."""
        return Pooled(self.problem, Begun.of(self.folder))

    def of_operator(self, label: str, operator: Operator, every: tuple[int, ...]) -> list[Row]:
        """A row for each number of applications."""
        about, rows = trained_for(operator.provenance), []
        for steps in every:
            find = self.finder(operator, steps)
            about |= {"starts": self.sizes.starts, "applications": steps}
            name = f"{label}, {steps} applications"
            _, *scores = self.calibrated(find)
            rows.append(self.row(METHODS, name, find, *scores, **about))
        return rows

    def until_stopped(self, label: str, operator: Operator, part: str) -> Row:
        """A row of the boxes where they stop; the operator then knows from which score they are
        best listed."""
        find, about = self.finder(operator, None), trained_for(operator.provenance)
        best, *scores = self.calibrated(find)
        if best:
            on = {"images": len(self.trained), "starts": self.sizes.starts}
            operator.provenance[DETECTION] = best._asdict() | on
        about |= {"starts": self.sizes.starts}
        return self.row(part, label, find, *scores, **about)

    def finder(self, operator: Operator, steps: int | None) -> Finder:
        return partial(found_by, operator, starts=self.sizes.starts, seed=SEED, steps=steps)

    def calibrated(self, find: Finder) -> "Calibrated":
        """The best scores on training images."""
        found = self.trained.found(find).boxes
        try:
            best = best_threshold(found, self.trained.truth)
        except InputError:  # no box is right
            best = None
        near = wd_threshold(found, self.trained.truth, SEED)
        return Calibrated(best, best.threshold if best else 0.0, near)

    def row(
        self, part: str, label: str, find: Finder, listed: float, near: float, **about: Any
    ) -> Row:
        """All metrics of a method, whose boxes are listed from a score on, and, for the witnessed
        metrics, from another one on."""
        found = self.tested.found(find)
        seen = row_of(found.boxes, self.tested.truth, listed, SEED, near)
        known = {"measure": part, "label": label, "seconds": found.seconds, **about}
        return self.folder.row(**known, **seen)


class Calibrated(NamedTuple):
    """Scores from which boxes are listed, as training images say."""

    best: Calibration | None  # for F1; None where no box is right
    listed: float  # the same; 0 where no box is right: all are listed
    near: float  # for the witnessed divergence


def named(network: FixedNumber, images: Any) -> DistinctBoxes:
    """The boxes that FN names."""
    return distinct_boxes(network.solutions(images))


def trained_network(problem: Pooled, sizes: Sizes, folder: Folder) -> FixedNumber:
    """FN trained into the folder, or the one already there."""
    file, asked = folder.path / "fn" / "fixed-number.safetensors", sizes.length | sizes.fixed
    if folder.resume and file.is_file():
        network = load_fixed_number(file, folder.device)
        check_same(file, network.provenance["training"], asked)
        return network
    how: dict[str, Any] = {"device": folder.device, "progress": folder.progress, **asked}
    network = learn_fixed_number(problem, **how)
    network.save(file)
    return network


def trained_detector(problem: Detection, sizes: Sizes, folder: Folder) -> nn.Module:
    """Faster R-CNN trained into the folder, or the one already there."""
    file, kind = folder.path / FASTER / f"{FASTER}.safetensors", (FASTER, 1)
    begun = Begun.of(folder)
    if folder.resume and file.is_file():
        asked, weights = read_weights(file, *kind)
        check_same(file, asked, sizes.length)
        model = faster_rcnn(problem.instances.side, begun.backbone)
        model.load_state_dict(weights)
        return model.to(pick_device(folder.device)).eval()
    how: dict[str, Any] = {"device": folder.device, "progress": folder.progress, **sizes.length}
    model = learn_faster_rcnn(problem, **begun._asdict(), **how)
    write_weights(file, *kind, dict(sizes.length), model.state_dict())
    return model


def draw_looking(run: Measuring, operator: Operator) -> None:
    """What the looking operator does to test images that are drawn at random."""
    problem = run.problem
    some = run.tested.by_chance(SHOWN)
    with run.folder.figure("stages.png", 11.0, 2.2 * SHOWN) as figure:
        draw_stages(figure, problem, operator, some)
    some = run.tested.by_chance(PAGE)
    with run.folder.figure("page.png", 13.0, 2.1 * PAGE / COLUMNS) as figure:
        draw_page(figure, problem, operator, some, run.sizes.starts)


def table(rows: list[Row], said: str) -> str:
    """Our methods and those published, then where training points begin."""
    first, published = rows[0], all_published("detection")
    text = (
        f"{said}\n\n{first['images']:,} test images with {first['boxes']:,} boxes; t is infinite. "
        "Recall is also that of true boxes by their area, in parts of the image. Seconds are those "
        "of an image, of many together, until its boxes are told apart. Published numbers are of "
        f"other data: {published['protocol']}.\n"
    )
    header = ("method", "WD", "WP^0.1", "precision", "recall", "AP50", *SIZES, "seconds")
    names = ("wd", "wp@0.1", "precision", "recall", "ap50", *(f"recall@{s}" for s in SIZES))
    theirs = [
        {"label": f"{label}, published", "measure": METHODS} | numbers
        for label, numbers in published.items()
        if isinstance(numbers, dict)
    ]
    for part in (METHODS, STARTS):
        some = [each for each in rows + theirs if each["measure"] == part]
        lines = [[each.get(name) for name in ("label", *names, "seconds")] for each in some]
        if lines:
            text += f"\n## {part.capitalize()}\n\n{markdown(header, lines)}"
    return text
