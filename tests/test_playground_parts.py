"""The part to turn, in the playground: in a real browser, beside what Python says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _browsing import SETTLED
from playing import CLOSE, drag, made

import proxlearn as px
from proxlearn.meshes.distance import Surface
from proxlearn.meshes.read import read_shape
from proxlearn.playground.parts import SHOWN, shown_parts, turned
from proxlearn.shapes.answer import Symmetries
from proxlearn.spaces import Planes

pytestmark = pytest.mark.whole
SPACE = Planes()


@pytest.fixture(scope="module")
def turning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page with the parts to turn."""
    return made(tmp_path_factory.mktemp("turning"), [turned(px.pretrained("symmetry", "cpu"))])


AFTER_ALL = "([tau, x]) => App.answer(tau, x)"
AFTER_TWO = """async ([tau, x]) => {
    const { about } = App.state;
    const usual = about.applications;
    about.applications = 2;
    const answer = await App.answer(tau, x);
    about.applications = usual;
    return answer;
}"""


def test_the_mirrors_of_a_turned_part_are_those_that_python_finds(
    turning: Path, visit: Callable[..., Any]
):
    page = visit((turning / "index.html").as_uri())
    operator, parts = px.pretrained("symmetry", "cpu"), dict(zip(SHOWN, shown_parts()))
    operator.precision = "fp32"
    for which, (name, part) in enumerate(parts.items()):
        if name not in ("flange", "washer with a collar", "ratchet"):
            continue
        tau = [which, 20.0 + 50 * which, -35.0, 70.0]
        x = operator.space.sample(1, 200, generator=torch.Generator().manual_seed(which))
        given = [tau, x.flatten().tolist()]
        near, told = page.evaluate(AFTER_TWO, given), page.evaluate(AFTER_ALL, given)
        turn, cloud = page.evaluate("tau => [Pose.rotation(tau), [...Pose.observed(tau)]]", tau)
        # Which of two matches is nearer may be a rounding, of which there are more with every
        # application: planes on their way part, and those that arrive are the same.
        found = operator.solve(torch.tensor(cloud).view(-1, 6), starts=x, steps=2).points[0]
        far = SPACE.squared_distance(torch.tensor(near["points"]).view_as(found), found)
        assert (far.sqrt() < CLOSE).float().mean() > 0.97
        vertices = part.vertices.double() @ torch.tensor(turn).double().mT
        assert_same(told["optima"], px.symmetries((vertices, part.faces), axes=False))


def assert_same(told: list[dict[str, Any]], expected: Symmetries) -> None:
    """The mirrors that are listed, and the axes of families."""
    own = torch.tensor([each["point"] for each in told if each["kind"] == "point"]).view(-1, 4)
    normals = torch.tensor([each.normal for each in expected.planes]).view(-1, 3)
    offsets = torch.tensor([each.offset for each in expected.planes])[:, None] / expected.size
    apart = SPACE.pairwise(own, torch.cat((normals, offsets), 1))
    assert apart.shape[0] == apart.shape[1]
    if len(apart):
        assert apart.amin(0).max() < 2e-3
        assert apart.amin(1).max() < 2e-3
    axes = [each["axis"] for each in told if each["kind"] == "continuum"]
    assert len(axes) == len(expected.families)
    for one, family in zip(axes, expected.families):
        assert abs(np.dot(one, family.axis)) == pytest.approx(1, abs=1e-4)
    assert all(each["value"] <= expected.tolerance for each in told)


def test_a_part_is_dragged_and_its_mirrors_turn_with_it(turning: Path, visit: Callable[..., Any]):
    page = visit((turning / "index.html").as_uri())
    box, tau = page.locator("#picture").bounding_box(), page.evaluate("App.state.tau")
    mirrors = page.evaluate("App.state.answer.optima.map((each) => each.point)")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    drag(page, x, y, x + box["width"] / 4, y)
    page.wait_for_function(SETTLED)
    moved = page.evaluate("App.state.tau")
    assert moved[1] == pytest.approx(tau[1] + 45, abs=1)  # to the right: about the upright axis
    assert moved[2:] == pytest.approx(tau[2:], abs=1e-6)
    before, after = page.evaluate("taus => taus.map(Pose.rotation)", [tau, moved])
    turn = torch.tensor(after) @ torch.tensor(before).mT
    now = torch.tensor(page.evaluate("App.state.answer.optima.map((each) => each.point)"))
    assert len(now) == len(mirrors) == 6
    for mirror in torch.tensor(mirrors):
        expected = torch.cat((turn @ mirror[:3], mirror[3:]))
        assert SPACE.pairwise(expected[None], now).min() < 2e-3
    page.get_by_label("roll").press("ArrowRight")
    page.wait_for_function("before => App.state.tau[3] > before", arg=moved[3])


def test_a_part_of_ones_own_is_taken_from_a_file(
    turning: Path, tmp_path: Path, visit: Callable[..., Any]
):
    page = visit((turning / "index.html").as_uri())
    corners = "".join(f"v {x} {y} {z}\n" for x in (0, 5) for y in (0, 3) for z in (0, 2))
    sides = ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4))
    box = tmp_path / "box.obj"
    box.write_text(corners + "".join(f"f {' '.join(map(str, side))}\n" for side in sides))
    page.set_input_files("#file", box)
    page.wait_for_function("App.state.tau[0] === 8")
    page.wait_for_function(SETTLED)
    assert page.inner_text("#status").startswith("3 mirror planes from 256 starts")
    assert page.input_value("#preset") == "box.obj"
    text = tmp_path / "notes.stl"
    text.write_text("nothing of the kind")
    page.set_input_files("#file", text)
    page.wait_for_function("document.getElementById('status').textContent.includes('damaged')")


DISTANCES = """([vertices, faces, places]) => {
    const solid = new Solid(vertices, faces);
    return places.map((each) => Math.sqrt(solid.nearest(each).square));
}"""


def test_distances_to_a_part_are_those_of_python(turning: Path, visit: Callable[..., Any]):
    page = visit((turning / "index.html").as_uri(), "() => true")
    draw = torch.Generator().manual_seed(3)
    for mesh in shown_parts()[:4]:
        places = torch.rand(200, 3, generator=draw) - 0.5
        surface = Surface([mesh], "cpu")
        near = surface.distance(places[None], torch.zeros(1, dtype=torch.long))[0]
        given = [mesh.vertices.flatten().tolist(), mesh.faces.flatten().tolist(), places.tolist()]
        told = page.evaluate(DISTANCES, given)
        torch.testing.assert_close(torch.tensor(told), near, atol=1e-5, rtol=0)


def test_files_of_meshes_are_read_as_python_reads_them(
    turning: Path, tmp_path: Path, visit: Callable[..., Any]
):
    page = visit((turning / "index.html").as_uri(), "() => true")
    mesh = shown_parts()[3]
    corners = mesh.vertices[mesh.faces].numpy()
    solid = np.zeros(len(corners), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("", "<u2")])
    solid["corners"] = corners
    binary = bytes(80) + len(corners).to_bytes(4, "little") + solid.tobytes()
    words = "facet normal 0 0 0\nouter loop\n" + "vertex {} {} {}\n" * 3 + "endloop\nendfacet\n"
    text = "".join(words.format(*each) for each in corners.reshape(-1, 9))
    for name, content in (("binary.stl", binary), ("a.stl", f"solid\n{text}endsolid\n".encode())):
        file = tmp_path / name
        file.write_bytes(content)
        told = page.evaluate(
            "([name, bytes]) => Meshes.read(name, new Uint8Array(bytes))",
            [name, list(file.read_bytes())],
        )
        again = read_shape(file)
        got = torch.tensor(told[0]).view(-1, 3)[torch.tensor(told[1])].view(-1, 3, 3)
        torch.testing.assert_close(got, again.vertices[again.faces].to(got), atol=1e-6, rtol=0)
