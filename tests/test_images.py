"""Images from files, COCO's lists of them, and packed files."""

import io
import json
import os
import struct
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import proxlearn as px
from proxlearn.common import memory
from proxlearn.errors import FileError
from proxlearn.images import read
from proxlearn.images.coco import read_coco
from proxlearn.images.packed import Packed, read_packed
from proxlearn.images.read import opened, pixels, read_image
from proxlearn.instances.image import Images

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

DATA = "PROXLEARN_DETECTION"  # a folder with images and boxes as COCO has them
TURNED = 0x0112  # the EXIF entry that says how an image is to be turned


def left_and_right(width: int = 40, height: int = 20) -> np.ndarray:
    """Red on the left half, blue on the right (height, width, 3)."""
    rows = np.zeros((height, width, 3), np.uint8)
    rows[:, : width // 2, 0] = 255
    rows[:, width // 2 :, 2] = 255
    return rows


def close(image: Tensor, expected: Any, within: int = 2) -> bool:
    """Whether every pixel has this colour, up to what a JPEG changes."""
    wanted = torch.as_tensor(expected, dtype=torch.int16).view(3, 1, 1)
    return bool(((image.short() - wanted).abs() <= within).all())


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    """Writes an image to a file."""

    def save(image: Any, name: str, **settings: Any) -> Path:
        image = Image.fromarray(image) if isinstance(image, np.ndarray) else image
        image.save(tmp_path / name, **settings)
        return tmp_path / name

    return save


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tif", "a.jpg"])
def test_an_image_is_stretched_to_a_square(saved, name: str):
    image = read_image(saved(left_and_right(), name), 16)
    assert image.shape == (3, 16, 16)
    assert image.dtype == torch.uint8
    assert close(image[:, :, :6], (255, 0, 0), 4)
    assert close(image[:, :, 10:], (0, 0, 255), 4)


def test_pixels_of_a_square_image_are_those_of_the_file(saved):
    rows = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    assert np.array_equal(read_image(saved(rows, "a.png"), 8).permute(1, 2, 0).numpy(), rows)


def test_a_shrunken_pixel_is_the_mean_of_those_it_stands_for(saved):
    board = (255 * (np.indices((64, 64)).sum(0) % 2)).astype(np.uint8)
    assert close(read_image(saved(board, "a.png"), 8)[:, 1:-1, 1:-1], (127, 127, 127))


MODES = {
    "L": (np.full((4, 4), 100, np.uint8), (100, 100, 100)),
    "16 bits": (np.full((4, 4), 100 * 256 + 7, np.uint16), (100, 100, 100)),
    "32 bits": (np.full((4, 4), 100 * 256, np.int32), (100, 100, 100)),
    "clear": (np.full((4, 4, 4), (50, 60, 70, 0), np.uint8), (255, 255, 255)),
    "half clear": (np.full((4, 4, 4), (50, 60, 70, 128), np.uint8), (152, 157, 162)),
    "bits": (np.full((4, 4), True), (255, 255, 255)),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_becomes_red_green_and_blue(saved, mode: str):
    rows, expected = MODES[mode]
    name = "a.tif" if mode == "32 bits" else "a.png"
    assert close(read_image(saved(rows, name), 4), expected)


def test_palettes_with_a_clear_colour_and_cmyk_become_red_green_and_blue(saved):
    palette = Image.new("P", (4, 4))
    palette.putpalette([10, 200, 30])
    assert close(read_image(saved(palette, "a.png"), 4), (10, 200, 30))
    clear = saved(palette, "b.gif", transparency=0)
    assert close(read_image(clear, 4), (255, 255, 255))
    cmyk = Image.fromarray(np.full((8, 8, 3), (200, 40, 60), np.uint8)).convert("CMYK")
    assert close(read_image(saved(cmyk, "c.jpg", quality=95), 4), (200, 40, 60), 8)


def test_fractions_are_refused(saved):
    with pytest.raises(px.ProxlearnError, match="pixels are fractions; save it with 8 or 16 bits"):
        read_image(saved(np.full((4, 4), 0.5, np.float32), "a.tif"), 4)


@pytest.fixture
def on_its_side() -> bytes:
    """A JPEG whose EXIF data say that it is to be turned: red is then below, and blue above."""
    exif, file = Image.Exif(), io.BytesIO()
    exif[TURNED] = 8  # a quarter to the left
    Image.fromarray(left_and_right()).save(file, "JPEG", exif=exif, quality=95)
    return file.getvalue()


def test_an_image_is_turned_as_its_exif_data_say(on_its_side: bytes):
    image, size = opened("a.jpg", on_its_side, 20)
    assert size == image.size == (20, 40)
    rows = pixels(image)
    assert close(rows[:, :15], (0, 0, 255), 8)
    assert close(rows[:, 25:], (255, 0, 0), 8)
    assert opened("a.jpg", on_its_side, 20, (20, 40)).size == (20, 40)


def test_an_image_whose_boxes_are_of_it_not_turned_stays_so(on_its_side: bytes):
    image, size = opened("a.jpg", on_its_side, 20, (40, 20))
    assert size == image.size == (40, 20)
    assert close(pixels(image)[:, :, :15], (255, 0, 0), 8)


def test_a_large_jpeg_comes_smaller_but_says_its_size(saved):
    content = saved(left_and_right(800, 400), "a.jpg").read_bytes()
    image, size = opened("a.jpg", content, 32)
    assert size == (800, 400)
    assert 32 <= min(image.size) < 100


def test_a_file_that_is_missing_cut_short_or_no_image_is_said_in_a_sentence(saved, tmp_path: Path):
    whole = saved(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8), "a.jpg")
    (tmp_path / "cut.jpg").write_bytes(whole.read_bytes()[:1500])
    (tmp_path / "text.jpg").write_text("no image at all")
    (tmp_path / "empty.jpg").write_bytes(b"")
    expected = {
        "none.jpg": "There is no file at .*none.jpg: check the path",
        "cut.jpg": "cut.jpg cannot be read as an image: image file is truncated",
        "text.jpg": "text.jpg cannot be read as an image: it is none, or of no kind that is known",
        "empty.jpg": "empty.jpg cannot be read as an image: it is none",
    }
    for name, said in expected.items():
        with pytest.raises(px.ProxlearnError, match=said):
            read_image(tmp_path / name, 8)
    with pytest.raises(px.ProxlearnError, match="is a folder"):
        read_image(tmp_path, 8)


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, of what is damaged
def test_a_damaged_file_is_an_image_or_an_error_of_ours(saved):
    random = np.random.default_rng(0)
    rows = random.integers(0, 256, (24, 24, 3), dtype=np.uint8)
    for name in ("a.png", "a.jpg", "a.gif", "a.tif"):
        content = saved(rows, name).read_bytes()
        for k in range(60):
            damaged = bytearray(content[: random.integers(1, len(content))] if k % 2 else content)
            for at in random.integers(0, min(200, len(damaged)), 3):
                damaged[at] = random.integers(0, 256)
            with suppress(FileError):
                assert opened(name, bytes(damaged), 8).image.mode == "RGB"


def test_an_image_that_says_it_is_huge_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def sized(width: int, height: int) -> Path:
        header = b"IHDR" + struct.pack(">II5B", width, height, 8, 2, 0, 0, 0)
        checked = header + struct.pack(">I", zlib.crc32(header))
        path = tmp_path / "huge.png"
        path.write_bytes(
            b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + checked + bytes(3) + b"\x09IDAT"
        )
        return path

    with pytest.raises(px.FileError, match=r"huge\.png has, by its header, more than .* smaller"):
        read_image(sized(60_000, 60_000), 8)
    monkeypatch.setattr(memory, "free", lambda device: 1e9)
    with pytest.raises(px.InputError, match=r"9,000 x 9,000 pixels, would need about 1\.3 GB"):
        read_image(sized(9_000, 9_000), 8)


@pytest.mark.parametrize("side", [10**6, 2**31])
def test_an_image_is_not_stretched_beyond_memory(saved, side: int):
    with pytest.raises(px.InputError, match=r"An image of .* pixels would need .* smaller side"):
        read_image(saved(left_and_right(), "a.png"), side)


def test_packed_images_of_a_huge_side_are_refused(packed: Packed):
    with pytest.raises(px.InputError, match="images of 1000000000 x 1000000000 pixels would need"):
        packed.decoded(10**9)


def test_without_pillow_a_sentence_says_what_to_install(saved, monkeypatch: pytest.MonkeyPatch):
    path = saved(left_and_right(), "a.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(read.MissingPillowError, match=r"pip install 'proxlearn\[images\]'"):
        read_image(path, 8)


class TestInstances:
    kind = Images(8)

    def test_one_or_many_bytes_or_fractions_are_a_batch(self):
        image = torch.randint(0, 256, (3, 8, 8), dtype=torch.uint8)
        batch = self.kind.batch(image)
        assert batch.shape == (1, 3, 8, 8)
        assert batch.dtype == torch.float32
        assert torch.equal((batch[0] * 255).round().byte(), image)
        for same in (image / 255, image.numpy(), [image], image[None], [image[None] / 255]):
            torch.testing.assert_close(self.kind.batch(same), batch)
        assert self.kind.batch([image, image]).shape == (2, 3, 8, 8)

    @pytest.mark.parametrize(
        ("tau", "said"),
        [
            (torch.zeros(8, 8, 3), r"shape \(8, 8, 3\); expected an image \(3, 8, 8\)"),
            (torch.zeros(3, 9, 9), r"stretches it"),
            (torch.zeros(0, 3, 8, 8), r"shape \(0, 3, 8, 8\)"),
            (torch.full((3, 8, 8), 200.0), "not from 0 to 1: give bytes"),
            (torch.full((3, 8, 8), float("nan")), "not from 0 to 1"),
            (-torch.ones(3, 8, 8), "not from 0 to 1"),
            (None, "tau must be an image .* not None"),
        ],
    )
    def test_what_is_none_is_said_in_a_sentence(self, tau: Any, said: str):
        with pytest.raises(px.InputError, match=said):
            self.kind.batch(tau)

    def test_an_image_file_or_an_array_is_read(self, saved, tmp_path: Path):
        path = saved(left_and_right(), "a.png")
        read = self.kind.read(str(path))
        torch.testing.assert_close(read, read_image(path, 8)[None] / 255)
        np.save(tmp_path / "a.npy", read[0].numpy())
        assert torch.equal(self.kind.read(str(tmp_path / "a.npy")), read)
        with pytest.raises(px.ProxlearnError, match="There is no file at b"):
            self.kind.read("b.png")

    def test_its_description_makes_it_again(self):
        assert self.kind.describe() == {"kind": "image", "side": 8}
        assert Images().side == 256


def listing(folder: Path, **changes: Any) -> dict[str, Any]:
    """Three images of 40 x 20 pixels, with four boxes in all, and their list."""
    images = [{"id": k, "file_name": f"{k}.png", "width": 40, "height": 20} for k in (7, 8, 9)]
    for each in images:
        Image.fromarray(left_and_right()).save(folder / each["file_name"])
    boxes = [(7, [0, 0, 20, 20]), (7, [10, 5, 4, 2]), (8, [20, 10, 20, 10]), (8, [1, 1, 1, 1])]
    rows = [{"image_id": image, "bbox": box} for image, box in boxes]
    return {"images": images, "annotations": rows} | changes


def written(folder: Path, content: Any, name: str = "instances.json") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_list_is_read_with_boxes_in_parts_of_the_image(tmp_path: Path):
    packed, report = read_coco(written(tmp_path, listing(tmp_path)), side=16)
    assert packed.names == ("7.png", "8.png", "9.png")
    assert (len(packed), packed.trained, packed.side) == (3, 3, 16)
    np.testing.assert_allclose(packed.boxes_of(0), [[0.25, 0.5, 0.5, 1], [0.3, 0.3, 0.1, 0.1]])
    assert [len(packed.boxes_of(k)) for k in range(3)] == [2, 2, 0]  # one without boxes is kept
    assert (report.images, report.packed, report.without) == (3, 3, 1)
    assert (report.boxes, report.kept, report.clipped) == (4, 4, 0)
    assert str(report).startswith("3 of 3 images, 1 of them without boxes.\n4 of 4 boxes, 0")
    labelled = packed.decoded()
    assert labelled.pixels.shape == (3, 3, 16, 16)
    assert labelled.count.tolist() == [2, 2, 0]
    assert close(labelled.pixels[0][:, :, :6], (255, 0, 0), 12)
    assert (labelled.boxes[2] == 0).all()
    assert packed.decoded(8).pixels.shape == (3, 3, 8, 8)


def test_boxes_that_are_none_are_left_out_and_counted(tmp_path: Path):
    boxes = {
        "kept": [[0, 0, 10, 10], [0.0, 0.0, 40.2, 20.2]],
        "clipped": [[-10, -10, 20, 20], [30, 10, 100, 100]],
        "none": [[50, 5, 4, 4], [5, 5, 0, 4], [5, 5, -4, 4], [5, 5, 4, 0.1], [1, 2, 3], "box", None]
        + [[1, 2, 3, None], [1, 2, 3, float("nan")]],
    }
    rows = [{"image_id": 7, "bbox": box} for every in boxes.values() for box in every]
    rows += [{"image_id": 7, "bbox": [0, 0, 9, 9], "iscrowd": 1}]
    rows += [{"image_id": 5, "bbox": [0, 0, 9, 9]}, {"image_id": None, "bbox": [0, 0, 9, 9]}]
    path = written(tmp_path, listing(tmp_path, annotations=rows))
    packed, report = read_coco(path, side=16)
    assert report.boxes == len(rows)
    assert (report.kept, report.clipped, report.none) == (4, 2, len(boxes["none"]))
    assert (report.crowds, report.lost) == (1, 2)
    np.testing.assert_allclose(
        packed.boxes_of(0),
        [[0.125, 0.25, 0.25, 0.5], [0.5, 0.5, 1, 1], [0.125, 0.25, 0.25, 0.5]]
        + [[0.875, 0.75, 0.25, 0.5]],
    )


def test_files_that_cannot_be_read_are_skipped_and_counted(tmp_path: Path):
    path = written(tmp_path, listing(tmp_path))
    (tmp_path / "7.png").write_bytes(b"damaged")
    (tmp_path / "9.png").unlink()
    packed, report = read_coco(path, side=16)
    assert packed.names == ("8.png",)
    assert (report.images, report.packed, report.lost) == (3, 1, 2)
    assert set(report.skipped) == {str(tmp_path / "7.png"), str(tmp_path / "9.png")}
    assert "2 images were skipped. The first: " in str(report)
    assert "7.png cannot be read as an image" in str(report)
    (tmp_path / "8.png").unlink()
    with pytest.raises(px.ProxlearnError, match=r"No image of .* can be read. 0 of 3 images"):
        read_coco(path)


def test_sizes_that_are_not_listed_are_those_of_the_files(tmp_path: Path):
    content = listing(tmp_path)
    for each, lacks in zip(content["images"], ("width", "height", "file")):
        each.pop(lacks, None)
    half = {"id": 10, "file_name": "7.png", "width": 20, "height": 10}  # boxes of a smaller copy
    content["images"].append(half)
    content["annotations"].append({"image_id": 10, "bbox": [0, 0, 10, 10]})
    packed, _ = read_coco(written(tmp_path, content), side=16)
    np.testing.assert_allclose(packed.boxes_of(0)[0], [0.25, 0.5, 0.5, 1])
    np.testing.assert_allclose(packed.boxes_of(3)[0], [0.25, 0.5, 0.5, 1])


def test_boxes_of_an_image_not_turned_are_where_they_are_in_it(tmp_path: Path, on_its_side: bytes):
    content = listing(tmp_path)
    content["images"][0] |= {"file_name": "turned.jpg"}
    (tmp_path / "turned.jpg").write_bytes(on_its_side)
    packed, _ = read_coco(written(tmp_path, content), side=16)
    image = packed.decoded().pixels[0]  # its first box is around what is red
    assert close(image[:, :, :6], (255, 0, 0), 16)


def test_a_folder_as_coco_has_it_is_split_by_the_names_of_its_lists(tmp_path: Path):
    for name in ("val2017", "train2017"):
        (tmp_path / name).mkdir()
        content = listing(tmp_path / name)
        written(tmp_path, content, f"annotations/instances_{name}.json")
    packed, report = read_coco(tmp_path, side=8)
    assert (len(packed), packed.trained, report.images) == (6, 3, 6)
    one, _ = read_coco(tmp_path / "annotations" / "instances_val2017.json", side=8)
    assert (len(one), one.trained) == (3, 0)


def test_a_list_can_say_the_split_of_each_image_and_those_to_train_on_come_first(tmp_path: Path):
    content = listing(tmp_path)
    for each, split in zip(content["images"], ("val", "train", "train")):
        each["split"] = split
    packed, _ = read_coco(written(tmp_path, content), side=8)
    assert packed.names == ("8.png", "9.png", "7.png")
    assert packed.trained == 2


def test_the_folder_of_the_images_can_be_given(tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    path = written(tmp_path, listing(tmp_path / "elsewhere"))
    assert read_coco(path, tmp_path / "elsewhere", side=8)[1].packed == 3
    with pytest.raises(px.ProxlearnError, match="There is no folder of images at"):
        read_coco(path, tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read as JSON"),
        ("[1]", 'no list as COCO has them: it needs "images"'),
        ({"images": []}, 'it needs "annotations"'),
        ({"images": [{"id": 1}], "annotations": []}, "Image 0 in .* has no file_name"),
        ({"images": [{"file_name": "a"}], "annotations": []}, "Image 0 in .* has no id"),
        ({"images": [], "annotations": [{"bbox": []}]}, "Annotation 0 in .* lacks an image_id"),
        ({"images": [], "annotations": []}, "No image of .* can be read"),
    ],
)
def test_a_list_that_is_none_is_said_in_a_sentence(tmp_path: Path, content: Any, said: str):
    with pytest.raises(px.ProxlearnError, match=said):
        read_coco(written(tmp_path, content))


def test_where_there_is_no_list_a_sentence_says_so(tmp_path: Path):
    with pytest.raises(px.ProxlearnError, match=r"no list of images in .* it needs annotations/"):
        read_coco(tmp_path)
    with pytest.raises(px.ProxlearnError, match=r"There is nothing at .*none: give a JSON file"):
        read_coco(tmp_path / "none")


@pytest.fixture
def packed(tmp_path: Path) -> Packed:
    return read_coco(written(tmp_path, listing(tmp_path)), side=16)[0]


def test_a_packed_file_holds_all_without_the_images(packed: Packed, tmp_path: Path):
    path = packed.save(tmp_path / "packed.npz")
    for each in tmp_path.glob("*.png"):
        each.unlink()
    again = read_packed(path)
    assert (again.names, again.trained, again.side) == (packed.names, packed.trained, packed.side)
    assert np.array_equal(again.boxes, packed.boxes)
    assert torch.equal(again.decoded().pixels, packed.decoded().pixels)


def test_only_npz_is_written(packed: Packed, tmp_path: Path):
    with pytest.raises(px.ProxlearnError, match=r"must end in .npz"):
        packed.save(tmp_path / "packed.zip")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"offset": None}, "it has no offset"),
        ({"offset": np.array([0, 5, 3, 9])}, "its offsets do not fit"),
        ({"box_offset": np.array([0, 1])}, "its offsets do not fit"),
        ({"boxes": np.full((4, 4), 30.0)}, "not in parts of the image"),
        ({"boxes": np.full((4, 4), np.nan)}, "not in parts of the image"),
        ({"trained": np.array(9)}, "fewer than it says"),
        ({"names": np.array(["a"], object)}, "cannot be read as packed images"),
    ],
)
def test_a_packed_file_that_does_not_fit_is_said_in_a_sentence(
    packed: Packed, tmp_path: Path, change: dict[str, Any], said: str
):
    path = packed.save(tmp_path / "packed.npz")
    arrays = dict(np.load(path)) | change
    np.savez(path, **{name: each for name, each in arrays.items() if each is not None})
    with pytest.raises(px.ProxlearnError, match=said):
        read_packed(path)


def test_a_packed_file_that_is_damaged_is_said_in_a_sentence(packed: Packed, tmp_path: Path):
    path = packed.save(tmp_path / "packed.npz")
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(px.ProxlearnError, match="cannot be read as packed images"):
        read_packed(path)
    with pytest.raises(px.ProxlearnError, match="There is no file"):
        read_packed(tmp_path / "none.npz")
    content = packed.content.copy()
    content[:40] = 0
    broken = Packed(**vars(packed) | {"content": content})
    with pytest.raises(px.ProxlearnError, match=r"7.png among packed images cannot be read"):
        broken.decoded()


@pytest.mark.skipif(DATA not in os.environ, reason=f"${DATA} names no folder of images with boxes")
def test_a_folder_of_photographs_is_read(tmp_path: Path):
    packed, report = read_coco(os.environ[DATA], side=64)
    assert report.packed == report.images > 0
    assert report.kept + report.crowds + report.none + report.lost == report.boxes
    again = read_packed(packed.save(tmp_path / "packed.npz")).decoded()
    assert len(again) == report.packed
    assert (again.pixels.float().flatten(1).std(1) > 1).double().mean() > 0.99
