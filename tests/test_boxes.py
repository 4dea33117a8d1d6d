"""The operator that looks under its box, and the paper's, which sees one code of the image: on
pictures of coloured squares. All that the problem is lies in this file."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn

import proxlearn as px
from proxlearn.instances.image import Images
from proxlearn.networks import boxes as module
from proxlearn.networks.backbones import backbones
from proxlearn.networks.boxes import Boxes
from proxlearn.networks.encoders.image import Image, sinusoids
from proxlearn.operators.rising import Rising
from proxlearn.training.loss import Loss, Proximal, of_ratings
from proxlearn.training.sampling import SAMPLINGS

SIDE = 32
SMALL = Boxes(width=32, channels=8, mixed=16)
LAMS = (0.5, 10.0)
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU"
))]  # fmt: skip


class Squares(px.Problem):
    """Two boxes in each image, which are rectangles of one colour on black."""

    name = "squares"
    space = px.Box(0.0, 1.0, dim=4)
    instances = Images(SIDE)
    lam = 2.0
    architecture = SMALL

    def sample(self, count, split, generator):
        device = generator.device
        sides, place, colour = (
            torch.rand(count, 2, k, generator=generator, device=device) for k in (2, 2, 3)
        )
        sides = 0.25 + 0.25 * sides
        centre = sides / 2 + (1 - sides) * place
        pixels = (torch.arange(SIDE, device=device) + 0.5) / SIDE
        inside = (pixels - centre[..., None]).abs() < sides[..., None] / 2  # (i 2 axes pixels)
        across, down = inside.unbind(2)
        filled = (down[..., :, None] & across[..., None, :])[:, :, None]
        image = (filled * (0.4 + 0.6 * colour)[..., None, None]).amax(1)
        boxes = torch.cat((centre, sides), -1)
        return {"image": image, "boxes": boxes, "count": torch.full((count,), 2, device=device)}

    def observe(self, tau):
        return tau["image"]

    def objective(self, x, tau):
        return (x[:, :, None] - tau["boxes"][:, None]).abs().sum(-1).amin(-1)

    def quality(self, x, tau):
        return iou(x[:, :, None], tau["boxes"][:, None]).amax(-1)


class Unrated(Squares):
    """The same where it cannot be told how good a box is."""

    def quality(self, x, tau):
        return None


def iou(a: Tensor, b: Tensor) -> Tensor:
    """The overlap of boxes, as a share of what both cover."""
    low = torch.maximum(*(each[..., :2] - each[..., 2:] / 2 for each in (a, b)))
    high = torch.minimum(*(each[..., :2] + each[..., 2:] / 2 for each in (a, b)))
    both = (high - low).clamp(min=0).prod(-1)
    return both / (a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - both).clamp(min=1e-9)


def squares(count: int = 3, seed: int = 0) -> dict:
    return Squares().sample(count, "test", torch.Generator().manual_seed(seed))


def drawn(sizes: Boxes = SMALL, lams=LAMS, **more) -> px.Operator:
    """An operator that has not been trained and does not stay where it is."""
    torch.manual_seed(0)
    operator = px.Operator.untrained(Squares(), sizes, 2.0, lams, precision="fp32", **more)
    network = operator.network
    for each in (network.move, network.rate):
        nn.init.normal_(each.weight, std=0.3)
    return operator


def prepared_of(operator: px.Operator, images: Tensor, lam: float = 2.0) -> dict:
    return operator.prepare(operator.encode(images), lam)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A file that a backbone can begin with."""
    torch.manual_seed(1)
    torch.save(backbones["efficientnet_lite0"]().state_dict(), tmp_path / "lite0.pth")
    return tmp_path / "lite0.pth"


@pytest.mark.parametrize("stride", [4, 8])
def test_a_map_for_each_image_and_a_place_for_each_box(stride: int):
    operator = drawn(Boxes(width=32, channels=8, mixed=16, stride=stride))
    code = operator.encode(squares(3)["image"])
    assert code["map"].shape == (3, 8, SIDE // stride, SIDE // stride)
    prepared = operator.prepare(code, 2.0)
    x = operator.space.sample(3, 5)
    y, ratings = operator.rated_step(x, prepared)
    assert torch.equal(operator.step(x, prepared), y)
    assert ratings.shape == (3, 5)
    assert operator.space.contains(y).all()
    assert (y - x).abs().max() > 0.01


def test_boxes_begin_by_staying_and_are_rated_half_good():
    operator = px.Operator.untrained(Squares(), SMALL, 2.0)
    found = operator.solve(squares()["image"], starts=8, steps=3)
    torch.testing.assert_close(found.points, found.starts)
    assert (found.quality == 0.5).all()


def test_a_box_moves_by_lengths_of_its_own():
    """`c + wh r + t` and `wh exp(s) + t`, and never by less than if it were a hundredth wide."""
    network = px.Operator.untrained(Squares(), SMALL, 2.0).network
    r, s, t = [0.5, -0.25], [0.7, -3.0], [0.01, 0.02, 0.03, 0.04]
    network.move.bias.data = torch.tensor([*r, *s, *(2 * each for each in t)])
    x = torch.tensor([[[0.5, 0.4, 0.2, 0.1], [0.5, 0.4, 0.0, 0.1]]])
    y = (network.moved(2 * x - 1, torch.zeros(1, 2, 32)) + 1) / 2
    for (cx, cy, w, h), found in zip(x[0].tolist(), y[0]):
        w = max(w, 0.01)
        grown = torch.tensor([0.7, -2.0]).exp().tolist()  # s is at least -2
        wide = x[0, 1, 2] + w * (grown[0] - 1) if w == 0.01 else w * grown[0]
        true = [cx + 0.5 * w + 0.01, cy - 0.25 * h + 0.02, float(wide) + 0.03, h * grown[1] + 0.04]
        assert found.tolist() == pytest.approx(true, abs=1e-6)


def test_a_box_sees_what_is_under_it_and_a_half_more():
    """On a map whose features are where they are."""
    operator = drawn(Boxes(channels=2, places=3, width=18))
    network = operator.network
    network.of_seen = nn.Identity()
    at = (torch.arange(64) + 0.5) / 32 - 1
    map = torch.stack(torch.meshgrid(at, at, indexing="xy"))[None]  # x and y, -1 to 1
    box = torch.tensor([[[0.1, -0.2, 0.3 - 1, 0.2 - 1]]])  # sides 0.3 and 0.2 of 2
    seen = network.looked(box, map).view(2, 3, 3)
    across, down = torch.tensor([-1.0, 0.0, 1.0]) * 0.225, torch.tensor([-1.0, 0.0, 1.0]) * 0.15
    torch.testing.assert_close(seen[0], (0.1 + across).expand(3, 3))
    torch.testing.assert_close(seen[1], (-0.2 + down)[:, None].expand(3, 3))


def test_features_move_with_what_is_in_the_image():
    """An object that is moved far from the edges, and a box with it: the box sees the same."""
    operator, side = drawn(), 512
    seen = []
    for shift in (0, 64):
        image = torch.zeros(1, 3, side, side)
        image[..., 200 + shift : 232 + shift, 180 + shift : 228 + shift] = torch.rand(
            3, 32, 48, generator=torch.Generator().manual_seed(0)
        )
        box = torch.tensor([[[204.0 + shift, 216.0 + shift, 48.0, 32.0]]]) / side
        map = operator.encode(image)["map"]
        seen.append(operator.network.looked(2 * box - 1, map))
    torch.testing.assert_close(seen[0], seen[1], rtol=1e-4, atol=1e-5)
    elsewhere = operator.network.looked(2 * box - 1.5, map)
    assert (elsewhere - seen[1]).abs().max() > 0.01


def test_every_weight_learns_and_frozen_ones_do_not(weights: Path):
    operator = drawn(Boxes("efficientnet_lite0", weights, width=32, channels=8, mixed=16))
    problem, tau = Squares(), squares()
    x = problem.space.sample(3, 6)
    y, ratings = operator.rated_step(x, prepared_of(operator, tau["image"]))
    (y.square().sum() + ratings.sum()).backward()
    frozen = {name for name, each in operator.named_parameters() if not each.requires_grad}
    assert {name.split(".")[2] for name in frozen} == {"_conv_stem", "_blocks"}
    for name, each in operator.named_parameters():
        assert name in frozen or each.grad.abs().max() > 0, name


def test_lam_says_how_far_to_go():
    operator, tau = drawn(), squares(1)
    x = operator.space.sample(1, 8)
    once = [operator.solve(tau["image"], x, steps=1, lam=lam) for lam in (0.5, 2.0, 10.0)]
    assert (once[0].points - once[1].points).abs().max() > 1e-3
    assert (once[1].points - once[2].points).abs().max() > 1e-3
    one = drawn(lams=None)
    low, high = (one.step(x, prepared_of(one, tau["image"], lam)) for lam in (0.5, 10.0))
    assert torch.equal(low, high)  # there is but one, which it need not be told


def test_images_and_boxes_go_in_parts_where_there_are_many(monkeypatch: pytest.MonkeyPatch):
    operator, tau = drawn(), squares()
    x = operator.space.sample(3, 50)
    whole = operator.step(x, prepared_of(operator, tau["image"]))
    assert whole.requires_grad
    monkeypatch.setattr(module, "AT_ONCE", 21)
    monkeypatch.setattr(module, "IMAGES_AT_ONCE", 2)
    with torch.no_grad():
        parts = operator.step(x, prepared_of(operator, tau["image"]))
    torch.testing.assert_close(parts, whole.detach())


@pytest.mark.parametrize("backbone", ["small", "efficientnet_lite0"])
def test_products_of_16_bit_numbers_come_close(backbone: str, weights: Path):
    files = None if backbone == "small" else weights
    operator = drawn(Boxes(backbone, files, width=32, channels=8, mixed=16))
    images, x = squares()["image"], operator.space.sample(3, 9)
    exact = operator.step(x, prepared_of(operator, images))
    operator.precision = "bf16"
    code = operator.encode(images)
    assert {each.dtype for each in code.values()} == {torch.float32}
    torch.testing.assert_close(
        operator.step(x, operator.prepare(code)), exact, rtol=0.05, atol=0.05
    )


def test_an_operators_file_holds_the_backbone_and_not_its_path(weights: Path, tmp_path: Path):
    operator = drawn(Boxes("efficientnet_lite0", weights))
    path = operator.save(tmp_path / "boxes.safetensors")
    weights.unlink()
    assert path.stat().st_size < 30e6
    with safe_open(path, framework="pt") as file:
        header = file.metadata()["header"]
    assert "lite0.pth" not in header
    assert json.loads(header)["architecture"]["backbone"] == "efficientnet_lite0"
    found = operator.solve(squares()["image"], starts=8, steps=2)
    loaded = px.load(path, "cpu")
    again = loaded.solve(squares()["image"], found.starts, steps=2)
    assert torch.equal(again.points, found.points)
    assert torch.equal(again.quality, found.quality)


@pytest.mark.usefixtures("report_each_step")
def test_a_training_goes_on_and_forgets_where_its_backbone_came_from(
    weights: Path, tmp_path: Path, interrupt_at, same_weights
):
    settings = {"steps": 3, "instances": 4, "points": 4, "depth": 1, "applications": 2}
    settings |= {"device": "cpu", "progress": False}
    settings["architecture"] = Boxes("efficientnet_lite0", weights, width=32, channels=8, mixed=16)
    at_once = px.learn(Squares(), **settings)
    px.learn(Squares(), out=tmp_path / "run", watch=interrupt_at(2), **settings)
    px.learn(Squares(), out=tmp_path / "run", resume=True, **settings)
    weights.unlink()
    loaded = px.load(tmp_path / "run", "cpu")
    assert same_weights(loaded, at_once)
    assert "lite0.pth" not in json.dumps(loaded.provenance)
    assert b"lite0.pth" not in (tmp_path / "run" / "checkpoint.pt").read_bytes()


@pytest.mark.parametrize(
    ("problem", "sizes", "said"),
    [
        (px.problem("conic"), {}, "it is for Box.* and images, not for"),
        (Squares(), {"backbone": "resnet50"}, "resnet50 has to begin with trained weights"),
        (Squares(), {"backbone": "resnet51"}, "Did you mean 'resnet50'"),
        (Squares(), {"stride": 5}, "stride must be 4 or 8, not 5"),
        (Squares(), {"width": 0}, "width must be a positive number"),
        (Squares(), {"places": 2.5}, "places of Boxes must be a whole number, not 2.5"),
        (Squares(), {"weights": "nowhere.pth"}, "no weights of a backbone at nowhere.pth"),
    ],
)
@pytest.mark.usefixtures("any_type")
def test_what_does_not_fit_says_why(problem: px.Problem, sizes: dict, said: str):
    with pytest.raises(px.ProxlearnError, match=said):
        px.Operator.untrained(problem, {"kind": "boxes"} | sizes)


def test_ratings_are_learned_by_cross_entropy():
    problem, tau = Squares(), squares()
    x = (tau["boxes"] + 0.05).requires_grad_()
    ratings = torch.randn(3, 2, requires_grad=True)
    off, slope = of_ratings(problem, ratings, x, tau)
    good, said = problem.quality(x, tau).detach(), ratings.sigmoid()
    true = -(good * said.log() + (1 - good) * (1 - said).log()).mean()
    torch.testing.assert_close(off, true.detach())
    torch.testing.assert_close(slope, torch.autograd.grad(true, ratings)[0])
    with pytest.raises(px.InputError, match=r"define quality.* or take .* rates=False"):
        of_ratings(Unrated(), ratings, x, tau)


def terms_of(problem: px.Problem, **settings) -> dict[str, float]:
    """What the loss of the last of two steps was made of."""
    rows = []
    px.learn(
        problem,
        steps=2,
        instances=6,
        points=4,
        depth=1,
        applications=2,
        device="cpu",
        progress=False,
        watch=lambda report, _: rows.append(report.terms),
        **settings,
    )
    return rows[-1]


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_ratings_are_another_term_of_the_loss(sampling: str):
    terms = terms_of(Squares(), sampling=sampling)
    parts = terms["value"] + terms["proximal"] + terms["quality"]
    assert terms["loss"] == pytest.approx(parts, rel=1e-5)


def test_a_problem_that_rates_no_points_needs_a_network_that_does_not():
    with pytest.raises(px.InputError, match="define quality"):
        terms_of(Unrated())
    silent = Boxes(width=32, channels=8, mixed=16, rates=False)
    assert terms_of(Unrated(), architecture=silent).keys() == {"loss", "value", "proximal"}
    found = drawn(silent).solve(squares()["image"], starts=4, steps=1)
    assert found.quality is None


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_other_networks_learn_what_they_did(sampling: str, tiny: dict):
    """Bit for bit: one application is that of `step`, and its loss that of the rule."""
    problem = px.problem("conic")
    torch.manual_seed(0)
    operator = px.Operator.untrained(problem, tiny["architecture"], 1.0, precision="fp32")
    loss, device = Loss(Proximal(1.0), problem), torch.device("cpu")

    def sampler():
        return SAMPLINGS[sampling](problem, 6, 4, 2, (1.0, 1.0), 0, device)

    applied, terms = sampler().apply(operator, loss)
    seen = []

    def watching(y, x, tau, lam):
        terms, slope = loss(y, x, tau, lam)
        seen.append((y, terms, slope))
        return terms, slope

    sampler().apply(operator, watching)
    assert len(applied) == len(seen) == (3 if sampling == "unfold" else 1)
    for (y, slope), (own, own_terms, own_slope) in zip(applied, seen):
        assert torch.equal(y, own)
        assert torch.equal(slope, own_slope / len(seen))
        assert own_terms.keys() == terms.keys() == {"loss", "value", "proximal"}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.filterwarnings("error::proxlearn.errors.SpeedWarning")  # on a GPU it is captured
def test_boxes_are_found_rated_and_stopped(device: str, tmp_path: Path):
    rows = []
    operator = px.learn(
        Squares(),
        steps=250,
        instances=15,
        points=12,
        depth=2,
        rate=4e-3,
        lam=LAMS,
        device=device,
        progress=False,
        watch=lambda report, _: rows.append(report.terms),
    )
    assert rows[-1]["loss"] < 0.9 * rows[len(rows) // 4]["loss"]
    problem, tau = Squares(), squares(8, seed=3)
    found = {k: operator.solve(tau, starts=32, steps=k).cpu() for k in (0, 4, None)}
    good = {k: problem.quality(each.points, tau) for k, each in found.items()}
    assert good[0].mean() < 0.2
    assert good[4].mean() > 0.6
    assert good[None].mean() > good[4].mean() - 0.02
    for k, each in found.items():
        assert (each.quality - good[k]).abs().mean() < 0.12, k
    assert found[None].arrived.float().mean() > 0.9
    assert found[None].applications.float().mean() < 20
    reached = iou(found[None].points[:, None], tau["boxes"][:, :, None]).amax(-1)
    assert (reached > 0.5).float().mean() > 0.8  # of the true boxes

    saved = px.Solutions.load(found[4].save(tmp_path / "found.npz"))
    assert torch.equal(saved.quality, found[4].quality)
    again = px.load(operator.save(tmp_path / "squares.safetensors"), device)
    torch.testing.assert_close(again.solve(tau["image"], 32).cpu().quality, found[None].quality)
    operator.provenance["training"]["applications"] = 3  # asked for: then that many it is
    operator.applications = 3
    assert (operator.solve(tau, starts=4).applications == 3).all()


def test_px_solve_says_how_good_boxes_are():
    operator, tau, problem = drawn(), squares(), Squares()
    whole = px.solve(problem, tau, "operator", operator=operator, starts=6, steps=2, device="cpu")
    assert torch.equal(whole.quality, operator.solve(tau, 6, steps=2).quality)
    assert whole[1:].quality.shape == (2, 6)
    many = px.solve(problem, tau, "arriving", operator=operator, starts=6, steps=3, device="cpu")
    assert many.quality.shape == many.arrived.shape == (3, 6)
    (streamed,) = operator.stream(tau["image"], starts=whole.starts[0], steps=2)
    torch.testing.assert_close(streamed.quality[0], whole.quality[0])


def paper(**settings) -> px.Operator:
    """The published network on the code of an image."""

    class Coded(Squares):
        def encoder(self):
            return Image(self.instances, size=16, **settings)

    torch.manual_seed(0)
    return px.Operator.untrained(Coded(), "paper", 1.0)


def test_the_papers_encoder_is_kept_with_its_weights(weights: Path, tmp_path: Path):
    operator = paper(backbone="efficientnet_lite0", weights=weights)
    path, images = operator.save(tmp_path / "paper.safetensors"), squares()["image"]
    weights.unlink()
    assert operator.encode(images).shape == (3, 16)
    again, found = px.load(path, "cpu"), operator.solve(images, starts=8, steps=2)
    assert torch.equal(again.solve(images, found.starts, steps=2).points, found.points)
    assert found.quality is None
    with safe_open(path, framework="pt") as file:
        assert "lite0.pth" not in file.metadata()["header"]


def test_the_papers_code_tells_where_things_are():
    """The same object elsewhere has another code, though the code is a mean over pixels."""
    operator, images = paper(), torch.zeros(2, 3, SIDE, SIDE)
    images[0, :, 4:12, 4:12] = images[1, :, 20:28, 20:28] = 1.0
    code = operator.encode(images)
    assert (code[0] - code[1]).abs().max() > 0.01


def test_sinusoids_tell_pixels_apart():
    waves = sinusoids(torch.zeros(1, 5, 7, 32))
    assert waves.shape == (5, 7, 32)
    apart = torch.cdist(waves.flatten(0, 1), waves.flatten(0, 1))
    assert (apart + torch.eye(35)).min() > 0.1
    down, right = torch.tensor([3.0, 2.0])
    expected = torch.stack((down.sin(), down.cos(), right.sin(), right.cos()))
    torch.testing.assert_close(waves[3, 2, ::8], expected)


def test_a_box_stops_where_it_no_longer_gets_better():
    """Rated by a network that says ever less of one box after .5; of the other .6, .605, .6, which
    is as good: it is left where it went last."""
    once = [[0.2, 0.3], [0.5, 0.6], [0.4, 0.605], [0.3, 0.6], [0.3, 0.6], [0.1, 0.6]]
    said = iter(once)

    def judged(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, torch.tensor([next(said)])

    method = Rising(drawn(), Squares.space)
    state = method.init(judged, torch.zeros(1, 2, 4))
    went = []
    for _ in once[1:]:
        state = method.one_step(judged, state)
        went.append(method.moving(state)[0].tolist())
    assert went == [[True, True]] * 4 + [[False, False]]
    assert method.found(judged, state)[0, :, 0].tolist() == [1.0, 5.0]
