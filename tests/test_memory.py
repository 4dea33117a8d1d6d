"""What needs more memory than there is is refused before any work is done, in a sentence."""

import subprocess
import sys

import pytest
import torch

import proxlearn as px
from proxlearn.answers.starts import from_starts, starting_points
from proxlearn.common import memory, module_weights
from proxlearn.instances.picture import Pictures
from proxlearn.measure.evaluate import evaluate
from proxlearn.problems.base import held_out
from proxlearn.problems.detection.detection import Detection


def test_what_does_not_fit_is_refused_with_the_numbers():
    with pytest.raises(
        px.InputError, match=r"^A trillion would need about 1,000,000 GB of memory, "
    ):
        memory.afford(1e15, "A trillion", "give fewer")
    memory.afford(1e6, "A few", "give fewer")


def test_starts_are_refused_before_they_are_drawn():
    conic = px.problem("conic")
    tau = torch.tensor([[0.3, 0, 0.5, 0, 0, -1]])
    operator = px.pretrained("conic", "cpu")
    with pytest.raises(px.InputError, match=r"10,000,000,000 starts would need .*: give fewer"):
        operator.solve(tau[0], starts=10**10)
    many = tau.expand(10**7, -1)  # which take no memory
    for starts in (4_096, torch.zeros(4_096, 2)):
        with pytest.raises(px.InputError, match=r"of 10,000,000 taus .*operator\.stream"):
            starting_points(conic.space, starts, len(many), 0, "cpu")
    with pytest.raises(px.InputError, match="10,000,000,000 starts would need"):
        next(operator.stream(tau, starts=10**10))
    with pytest.raises(px.InputError, match="256 starts for each of 1,000,000,000 taus"):
        from_starts(lambda starts: pytest.fail("solved"), conic.space, 10**9, "auto", 0, "cpu")


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ({"width": 10**6}, "memory.*: give a smaller architecture="),
        ({"shared": 10**8}, "A network of 200,000,000 weights or more would need about 3.2 GB"),
        ({"blocks": 10**6}, "A network of more than 200 layers is too large: give a smaller"),
    ],
    ids=str,
)
def test_a_network_that_is_too_large_is_refused_before_it_takes_memory(
    tiny: dict, monkeypatch: pytest.MonkeyPatch, size, words
):
    monkeypatch.setattr(memory, "free", lambda device="cpu": 10**9)
    monkeypatch.setattr(module_weights, "MOST_MADE", 200)
    tiny["architecture"] = {"blocks": 1, "width": 8, "shared": 8} | size
    with pytest.raises(px.InputError, match=words):
        px.learn(px.problem("conic"), steps=1, **tiny)


def test_instances_witnesses_and_samples_are_refused_before_they_are_drawn():
    conic, tau = px.problem("conic"), [0.3, 0, 0.5, 0, 0, -1]
    few = {"reference": ("lbfgs", {"steps": 1}), "starts": 4, "device": "cpu"}
    with pytest.raises(px.InputError, match=r"10,000,000,000 instances .* would need"):
        evaluate(conic, [("a", "lbfgs", {})], instances=10**10, **few)
    with pytest.raises(px.InputError, match=r"30,000,000,000 witnesses of each .* would need"):
        evaluate(conic, [("a", "lbfgs", {})], instances=1, witnesses=10**10, trials=3, **few)
    with pytest.raises(px.InputError, match="10,000,000,000 samples of a path would need"):
        px.trace(conic, tau, [0.31, *tau[1:]], samples=10**10)


def test_a_training_that_runs_out_of_memory_says_so(tiny: dict):
    class Greedy(px.Problem):
        name, space, instances = "greedy", px.Box(-1, 1, dim=2), Pictures(1, 4, 4)

        def sample(self, count, split, generator):
            return torch.rand(count, 2**58, generator=generator)

    with pytest.raises(px.InputError, match="not enough memory for this training: give a smaller"):
        px.learn(Greedy(), steps=1, **tiny)
    with pytest.raises(px.InputError, match=r"1 images of 800,000 x 800,000 pixels would need"):
        held_out(Detection(side=800_000), 1)


def test_sizes_in_words():
    assert [memory.size(n) for n in (2e6, 2.5e9, 3e11)] == ["2 MB", "2.5 GB", "300 GB"]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_a_limit_of_the_process_counts():
    program = (
        "import resource; from proxlearn.common import memory; before = memory._of_process();"
        "resource.setrlimit(resource.RLIMIT_AS, (2**35, resource.RLIM_INFINITY));"
        "print(before == memory.UNKNOWN, memory.free() < 2**35)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_the_limit_of_a_container_counts(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert memory._of_container() == memory.UNKNOWN
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._of_container() == memory.UNKNOWN
    for name, text in {"max": "1000", "current": "700", "stat": "anon 5\ninactive_file 50"}.items():
        (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    assert memory.free() == 350
