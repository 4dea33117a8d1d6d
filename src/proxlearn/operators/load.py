"""Reading an operator's file, of this version or an earlier one."""

from pathlib import Path
from typing import Any

from proxlearn.common.checks import path_of
from proxlearn.common.contents import brief
from proxlearn.common.module_weights import built, filled, readable
from proxlearn.common.registry import is_usable_number
from proxlearn.common.weight_files import Header, Weights, read_weights
from proxlearn.gpu.devices import pick_device
from proxlearn.gpu.precision import PRECISIONS
from proxlearn.instances import kinds
from proxlearn.networks import architecture_from
from proxlearn.networks.arrival import Arrival
from proxlearn.networks.encoders import encoder_from
from proxlearn.networks.encoders.base import Encoder
from proxlearn.operators.operator import LARGEST_COUNT, VERSION, Operator
from proxlearn.spaces import space_from

SEALED_FROM = 4  # the first version of whose files each has a checksum
SHARES = ("at_optimum", "found")  # that a card has to have
RATED = ("called_good", "rightly")  # shares that it has to have both, or neither


def load(
    path: str | Path,
    device: str = "auto",
    *,
    space: Any = None,
    instances: Any = None,
    encoder: Encoder | None = None,
    architecture: Any = None,
) -> Operator:
    """Read an operator that `Operator.save` wrote. That takes no problem's code, and nothing is
    unpickled.

    Args:
        path: the file, or the folder of the training that wrote it
        device: auto (the GPU where there is one), cpu or cuda
        space: your own space, as the class or as a value, if the operator was trained with one
        instances: likewise your own kind of instances
        encoder: likewise your own encoder, as a module
        architecture: likewise your own architecture
    """
    path, picked = path_of(path, "file of an operator"), pick_device(device)
    header, weights = read_weights(path, "operator", VERSION, SEALED_FROM)
    own = {"space": space, "instances": instances, "encoder": encoder}
    own["architecture"] = architecture
    with readable(path):
        if "instances" not in header:
            header, weights = _upgraded(header, weights)
        if header["arrival"] and "patience" not in header["arrival"]:
            header, weights = _without_arrival(header, weights)
        check_header(header)
        operator = built(lambda: rebuilt(header, own), weights)
        operator.space.sample(1)  # fails for a space of impossible sizes
    return filled(operator, weights, path).eval().to(picked)


def check_header(header: Header) -> None:
    """An error where the header has a value of the wrong type, or out of its range."""
    lam, lams, arrival = header["lam"], header["lams"], header["arrival"]
    said = header["provenance"]
    card = said.get("card") if isinstance(said, dict) and _is_said(said) else None
    wrong = {
        "lam": not (is_usable_number(lam) and lam >= 0),
        "lams": lams is not None and not (_are_numbers(lams) and 0 < lams[0] < lams[1]),
        "applications": not _is_whole(header["applications"], LARGEST_COUNT),
        "precision": header["precision"] not in PRECISIONS,
        "arrival": arrival is not None and not _is_whole(arrival["patience"], 100),
        "provenance": not (isinstance(said, dict) and _is_said(said)),
        "card": card is not None and not _is_card(card),
    }
    if any(wrong.values()):
        names = [name for name, is_wrong in wrong.items() if is_wrong]
        values = ", ".join(f"{name} = {brief(header.get(name, card))}" for name in names)
        raise ValueError(f"there is no operator with {values}")
    for name in ("architecture", "encoder"):
        if "weights" in (header[name] or {}):  # the path of another file, which is not to be read
            raise ValueError(f"the {name} names a file of weights")


def _is_card(card: dict[str, Any]) -> bool:
    """Whether all that is read of it is what it should be."""
    names = SHARES + (RATED if any(name in card for name in RATED) else ())
    return (
        all(is_usable_number(card.get(name)) and 0 <= card[name] <= 1 for name in names)
        and is_usable_number(card.get("false"))
        and _is_whole(card.get("instances"), LARGEST_COUNT)
        and isinstance(card.get("doubtful"), str | None)
    )


def _is_said(provenance: dict[str, Any]) -> bool:
    """Whether the parts of a provenance that are read have the types that they should."""
    kinds_of = {"problem": str, "training": dict, "card": dict}
    return all(isinstance(provenance.get(k) or kind(), kind) for k, kind in kinds_of.items())


def _are_numbers(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(map(is_usable_number, pair))


def _is_whole(value: object, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def rebuilt(header: Header, own: dict[str, Any]) -> Operator:
    """The operator that a file's header describes, without its weights; `own`: those of its parts
    that are the user's."""
    space = space_from(header["space"], own.get("space"))
    instances = kinds.rebuild(header["instances"], own.get("instances"))
    architecture = architecture_from(header["architecture"], own.get("architecture"))
    about = header["encoder"]
    encoder = None if about is None else encoder_from(about, instances, own.get("encoder"))
    lam = float(header["lam"])  # JSON may write it as a whole number of any length
    ends = header["lams"]
    lams = (float(ends[0]), float(ends[1])) if ends else None
    network = architecture.build(space, instances, lams, encoder)
    rest = {name: header[name] for name in ("applications", "precision", "provenance")}
    operator = Operator(space, instances, network, lam, lams, **rest)
    if about := header["arrival"]:
        operator.arrival = Arrival.of(network, space.dim, about)
    return operator


def _without_arrival(header: Header, weights: Weights) -> tuple[Header, Weights]:
    """Earlier versions taught by other rules when a point has arrived; those no longer hold, so
    that such an operator is applied its usual number of times."""
    kept = {name: each for name, each in weights.items() if not name.startswith("arrival.")}
    return header | {"arrival": None}, kept


def _upgraded(header: Header, weights: Weights) -> tuple[Header, Weights]:
    """The header and weights of version 3 from those of version 1 or 2, where an encoder was also
    what a tau is, and one class held the sizes of every network."""
    encoder, sizes = dict(header["encoder"]), dict(header["architecture"])
    kind, network = encoder.pop("kind"), sizes.pop("kind", "coupling")
    kept = {"picture": ("channels", "height", "width"), "graph": ("vertices", "any_size")}
    named = {"vector": "vector", "gram": "vector", "picture": "picture", "graph": "graph"}
    if kind not in named:
        raise LookupError(f"an encoder {kind!r} of version 2 of the format: train it again")
    of_tau = {name: encoder.pop(name) for name in kept.get(kind, ("low", "high"))}
    encoder = {"kind": "pairs" if kind == "graph" else kind, **encoder}
    if network == "graph":
        encoder, names = None, ("blocks", "width", "start_at_identity")
        sizes = {"kind": "cut_circles"} | {name: sizes[name] for name in names}
    arrival = header.get("arrival")
    return header | {
        "instances": {"kind": named[kind], **of_tau},
        "encoder": encoder,
        "architecture": {"kind": "coupling", **sizes},
        "precision": header.get("precision", "tf32"),
        "lams": header.get("lams"),
        "arrival": arrival and {name: arrival[name] for name in arrival if name != "kind"},
    }, {f"network.{k}" if k.startswith("encoder.") else k: v for k, v in weights.items()}
