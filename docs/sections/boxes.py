"""Section of docs/results.md: boxes in images."""

from proxlearn.common.provenance import Row
from proxlearn.experiments._detection_figures import SIZES
from proxlearn.experiments._shared import all_published, markdown
from proxlearn.experiments.detection import METHODS, STARTS
from sections._section import rows_of, section

NAMES = ("wd", "wp@0.1", "precision", "recall", "ap50", *(f"recall@{each}" for each in SIZES))
HEADER = ("method", "WD", "WP at 0.1", "precision", "recall", "AP50", *SIZES, "trained, s", "ms")


def detection() -> str:
    rows = rows_of("detection")
    first, published = rows[0], all_published("detection")
    lines = [_line(row) for row in rows if row["measure"] == METHODS]
    lines += [
        [f"{name}, published", *(numbers.get(each) for each in NAMES), None, None]
        for name, numbers in published.items()
        if isinstance(numbers, dict)
    ]
    header, *body = markdown(HEADER, lines).rstrip().split("\n")
    begun = [_line(row) for row in rows if row["measure"] == STARTS]
    text = section(
        f"**Boxes in images**: {first['images']:,} images that no training has seen, with "
        f"{first['boxes']:,} true boxes; t is infinite. Precision and recall are those of boxes "
        "that overlap with a true one by an IoU of at least 0.5, and AP50 is COCO's average "
        "precision there. Then follows the recall of true boxes by their area, in parts of the "
        "image. Milliseconds are those of an image, of many together. All methods have the same "
        f"images and backbone, on one {first['machine']}. Published numbers are of other data: "
        f"{published['protocol']}.",
        "\n".join((header, body[0])),
        body[1:],
        "detection",
        first["command"],
    )
    return f"{text}\nWhere training points begin:\n\n{markdown(HEADER, begun)}" if begun else text


def _line(row: Row) -> list[object]:
    numbers = (row.get(name) for name in NAMES)
    trained, each = row.get("trained_seconds"), 1e3 * row["seconds"]
    return [row["label"], *numbers, trained, each]
