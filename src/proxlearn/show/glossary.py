"""What the columns of rows and the abbreviations in tables mean, for readers who do not know the
paper. Reports and the screen show the entries that they need."""

import re
from collections.abc import Iterable

# Columns of rows, by the beginning of their name.
BEGINNINGS = {
    "wd": "witnessed divergence, how far solutions and true ones lie apart, as seen from random "
    "points of the space; smaller is better",
    "wp": "witnessed precision; wp@0.05 is the share of those points for which that is less than "
    "0.05; 1 is best",
    "rho": "the share of solutions that count, being inside the space and at most as high as the "
    "threshold; rho_gt is that of the true ones",
    "card_": "by the operator's own card: on held-out instances, when it was trained",
    "seconds_": "the shortest and the longest of the times of all rounds",
}
# Columns by their whole name.
COLUMNS = {
    "ap50": "COCO's average precision of boxes; one is right if it overlaps with a true one by an "
    "IoU (intersection over union) of 0.5",
    "applications": "how often the operator was applied, each a learned proximal step",
    "as_boundary": "listed as a minimum on the edge of the box",
    "at_optimum": "the share of held-out starts that end at an optimum",
    "at_rest": "the share of solutions at a minimum, where no step leads lower",
    "best_known": "the best value in the literature",
    "best_value": "the lowest value found",
    "covered": "the share of instances whose 95% interval holds the number of optima there are",
    "delta": "the distance within which a witness counts",
    "dim": "the dimension of x",
    "distinct": "how many different minima there are among the solutions",
    "doubtful": "what its own training says against the operator",
    "estimated": "how many optima there are, as the starts that hit each let one estimate",
    "evaluations": "how often the objective or its gradient was computed, for each start",
    "f1": "the harmonic mean of precision and recall",
    "false": "optima listed that are none",
    "false_optima": "optima listed that are none",
    "found": "how many of the true optima, or what share of them, were found",
    "inside": "the share of solutions inside the space",
    "known": "how many true optima there are",
    "label": "what was measured",
    "lam": "the proximal weight lambda: the loss of a step is f(y) + lam/2 |y - x|^2",
    "measure": "which kind of measurement a row is",
    "method": "the solver, as px.solve calls it",
    "ms": "milliseconds",
    "of_best": "the value as a share of the best that any method found",
    "of_known": "the value as a share of the best in the literature",
    "peak_mib": "the most memory in use, in mebibytes (MiB, 1,048,576 bytes)",
    "peak_ratio": "the share of the true optima that were found",
    "q05": "the value that 5% of the solutions are below (q50: half of them, q95: 95%)",
    "q50": "the value that half of the solutions are below",
    "q95": "the value that 95% of the solutions are below",
    "quick": "whether it is the quick version, with smaller sizes",
    "reference": "the method whose solutions are taken as the truth",
    "seed": "what fixes everything that was drawn at random",
    "starts": "how many random points each solver begins with",
    "std": "standard deviation",
    "step": "steps of the training so far",
    "threshold": "the value up to which a solution counts; of boxes, the score from which they do",
    "trained_seconds": "how long the operator was trained",
    "trained_steps": "how many steps the operator was trained for",
    "trials": "how often a measurement was repeated, each time with other random points",
    "unconverged": "the share of starts that ended at no optimum",
    "unseen_mass": "the estimated chance that one more start finds a new optimum",
    "value": "the mean objective value of the solutions inside the space",
    "wd_threshold": "the score from which boxes count for the witnessed metrics",
    "wins": "on how many instances it found the best value of all methods",
    "witnesses": "how many random points of the space found and true optima are compared from",
}
# In headings and words of tables.
WORDS = {
    "bf16": "numbers of 16 bits with the range of 32 (bfloat16)",
    "AP50": COLUMNS["ap50"],
    "COCO": "common objects in context, a collection of photographs with boxes (Lin et al., 2014)",
    "CPU": "the computer's processor",
    "DGCNN": "dynamic graph convolutional neural network, which makes a code of a cloud of points "
    "(Wang et al., 2019)",
    "FN": "a network that names a fixed number of points",
    "fp32": "numbers of 32 bits",
    "GOL": "gradient-based operator learning, a network that imitates gradient descent, the "
    "paper's baseline",
    "GPU": "graphics processor",
    "L-BFGS": "the limited-memory quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno",
    "IoU": "intersection over union, how far two boxes overlap",
    "MCP": "minimax concave penalty",
    "MSE": "mean squared error",
    "PCA": "principal component analysis",
    "PD": "particle descent, gradient descent from every start, long enough to be the reference",
    "PGD": "proximal gradient descent",
    "POL": "proximal operator learning, the paper's method and this one's",
    "published": "as the authors of the paper published it",
    "R-CNN": "a network that looks at regions of an image (Faster R-CNN, Ren et al., 2015)",
    "rho": BEGINNINGS["rho"],
    "SOAP": "an optimizer of weights, Adam in the eigenbasis of Shampoo",
    "t": "the threshold: the value up to which a solution counts",
    "tf32": "products of 32-bit numbers with 10 bits behind the point, on a GPU",
    "WD": BEGINNINGS["wd"],
    "WP": BEGINNINGS["wp"],
}


def explained(column: str) -> str | None:
    """What a column of rows is; None where its name says enough."""
    begins = (said for name, said in BEGINNINGS.items() if column.startswith(name))
    return COLUMNS.get(column) or next(begins, None)


def of_columns(columns: Iterable[str]) -> dict[str, str]:
    """The explanations of columns; columns that share one are explained once."""
    found: dict[str, str] = {}
    for column in columns:
        if (said := explained(column)) and said not in found.values():
            found[column] = said
    return found


def of_words(text: str) -> dict[str, str]:
    """The explanations of the abbreviations in a text."""
    return {word: said for word, said in WORDS.items() if _is_in(word, text)}


def _is_in(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None
