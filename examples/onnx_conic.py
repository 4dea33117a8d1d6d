"""The points of a conic with nothing but onnxruntime and NumPy: no proxlearn, no PyTorch.

proxlearn export conic conic.onnx
python examples/onnx_conic.py conic.onnx
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

file = Path(sys.argv[1] if len(sys.argv) > 1 else "conic.onnx")
about = json.loads(Path(f"{file}.json").read_text())  # what is where
sessions = {
    name: onnxruntime.InferenceSession(file.with_name(graph["file"]))
    for name, graph in about["graphs"].items()
}


def run(graph, known):
    """What a graph makes of those of the known arrays that it takes, by name."""
    names = about["graphs"][graph]
    given = {name: known[name] for name in names["inputs"]}
    return dict(zip(names["outputs"], map(np.asarray, sessions[graph].run(None, given))))


tau = np.array([[0.3, 0, 0.5, 0, 0, -1]], np.float32)  # an ellipse: 0.3 x^2 + 0.5 y^2 = 1
low, high = about["space"]["low"], about["space"]["high"]
starts = np.random.default_rng(0).uniform(low, high, (1, 1000, 2)).astype(np.float32)

prepared = run("prepare", {"tau": tau})  # once per tau
state = {
    "x": starts,
    "best": starts,
    "level": np.zeros((1, 1000), np.float32),
    "waited": np.full((1, 1000), -1, np.float32),  # -1: not judged yet
    "left": np.zeros((1, 1000), bool),
    "goes": np.ones((1, 1000), bool),
}
points, applications = starts, 0
while state["goes"].any() and applications < about["most_applications"]:
    applied = run("apply", state | prepared)  # y: where every point goes
    judged = run("arrival", state | prepared | applied)  # which of them go on
    points = judged["found"]
    state = {name: judged[f"next_{name}"] for name in state}
    applications += 1

value = run("objective", {"x": points, "tau": tau})["value"]
print(f"{points.shape[1]} points after at most {applications} applications")
print(f"median value {np.median(value):.1e}, of the starts it was", end=" ")
print(f"{np.median(run('objective', {'x': starts, 'tau': tau})['value']):.1f}")
