"""Reading an operator's file, of this version or an earlier one."""

from pathlib import Path
from typing import Any

from proxlearn.common.checks import path_of
from proxlearn.common.files import Header, Weights, read_weights
from proxlearn.errors import FileError
from proxlearn.gpu.devices import pick_device
from proxlearn.instances import kinds
from proxlearn.networks import architecture_from
from proxlearn.networks.arrival import Arrival
from proxlearn.networks.encoders import encoders
from proxlearn.networks.encoders.base import Encoder
from proxlearn.operators.operator import VERSION, Operator
from proxlearn.spaces import space_from


def load(
    path: str | Path,
    device: str = "auto",
    *,
    space: Any = None,
    instances: Any = None,
    encoder: Encoder | None = None,
    architecture: Any = None,
) -> Operator:
    """Read an operator that `Operator.save` wrote. Needs no problem code and unpickles nothing.

    * `path`: the file, or the folder of the training that wrote it;
    * `device`: auto (the GPU where there is one), cpu or cuda;
    * `space`, `instances`, `architecture`: of one's own, where the operator was trained with such:
      the class, or the value; `encoder`: likewise the module.
    """
    path, picked = path_of(path, "file of an operator"), pick_device(device)
    header, weights = read_weights(path, "operator", VERSION)
    own = {"space": space, "instances": instances, "encoder": encoder}
    own["architecture"] = architecture
    try:
        if "instances" not in header:
            header, weights = _upgraded(header, weights)
        if header["arrival"] and "patience" not in header["arrival"]:
            header, weights = _without_arrival(header, weights)
        operator = _rebuilt(header, own)
    except (LookupError, TypeError, ValueError) as error:
        raise FileError(f"The header of {path} cannot be read: {error!r}.") from None
    try:
        operator.load_state_dict(weights)
    except RuntimeError as error:
        raise FileError(f"The weights in {path} do not fit its header: {error}") from None
    if not operator.finite:
        raise FileError(
            f"{path} holds weights that are NaN or infinite: the file is damaged, or its training "
            "went wrong. Get the file again, or train the operator again."
        )
    return operator.eval().to(picked)


def _rebuilt(header: Header, own: dict[str, Any]) -> Operator:
    """The operator that a file's header describes, without its weights."""
    space = space_from(header["space"], own["space"])
    instances = kinds.rebuild(header["instances"], own["instances"])
    architecture = architecture_from(header["architecture"], own["architecture"])
    encoder, about = None, header["encoder"]
    if about is not None:
        inside = {"instances": instances} if about["kind"] in encoders.names() else {}
        encoder = encoders.rebuild(about | inside, own["encoder"])
    lams = tuple(header["lams"]) if header["lams"] else None
    network = architecture.build(space, instances, lams, encoder)
    rest = {name: header[name] for name in ("lam", "applications", "precision", "provenance")}
    operator = Operator(space, instances, network, lams=lams, **rest)
    if about := header["arrival"]:
        operator.arrival = Arrival.of(network, space.dim, about)
    return operator


def _without_arrival(header: Header, weights: Weights) -> tuple[Header, Weights]:
    """Earlier versions taught by other rules when a point has arrived, which no longer hold: such
    an operator is applied its usual number of times."""
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
