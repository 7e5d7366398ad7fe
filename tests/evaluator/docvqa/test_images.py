from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile

from evaluator.docvqa.images import read_page, to_pixels
from evaluator.docvqa.page_images import read_page_image
from evaluator.errors import ErrorCode, ProblemError


def noise(width: int, height: int) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def test_black_is_minus_one_and_white_is_one() -> None:
    assert to_pixels(Image.new("RGB", (50, 70), "black"), 8).eq(-1).all()
    assert to_pixels(Image.new("L", (50, 70), 255), 8).eq(1).all()


def test_pixels_are_channels_rows_columns_in_float32() -> None:
    image = Image.new("RGB", (16, 16), (255, 0, 0))
    image.paste((0, 0, 255), (0, 8, 16, 16))
    pixels = to_pixels(image, 16)
    assert (pixels.shape, pixels.dtype) == ((3, 16, 16), torch.float32)
    assert pixels[0, :8].eq(1).all()
    assert pixels[2, :8].eq(-1).all()
    assert pixels[2, 8:].eq(1).all()


@pytest.mark.parametrize("mode", ["RGBA", "P", "L", "1", "CMYK"])
def test_every_color_mode_is_read_as_rgb(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "page.tif"
    noise(20, 30).convert(mode).save(path)
    assert read_page(path, 16).shape == (3, 16, 16)


def test_a_truncated_page_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path, cut = tmp_path / "page.jpg", tmp_path / "cut.jpg"
    noise(256, 256).save(path)
    data = path.read_bytes()
    cut.write_bytes(data[: len(data) * 3 // 4])
    whole, part = read_page(path, 256), read_page(cut, 256)
    assert torch.equal(part[:, :128], whole[:, :128])
    assert not torch.equal(part, whole)


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"quality": 95, "restart_marker_rows": 1}])
def test_whole_and_damaged_pages_are_read_as_before_to_the_bit(
    monkeypatch: pytest.MonkeyPatch, mode: str, options: dict[str, object]
) -> None:
    """What Pillow reads if its process-wide switch accepts truncated files."""
    content = BytesIO()
    noise(90, 70).convert(mode).save(content, "JPEG", **options)
    whole, rng = content.getvalue(), np.random.default_rng(1)
    # Behind the header of the first scan.
    start = whole.index(b"\xff\xda") + 14
    variants = [whole, whole + b"behind", *(whole[:cut] for cut in rng.integers(start, len(whole), 12))]
    places = rng.integers(start, len(whole), 12)
    variants += [whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :] for place in places]
    read = [read_page_image(variant, needed_px=16, reduce=False).image for variant in variants]
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    expected = [Image.open(BytesIO(variant)).convert("RGB") for variant in variants]
    assert [image.tobytes() for image in read] == [image.tobytes() for image in expected]


def test_reading_pages_changes_no_switch_of_the_process(tmp_path: Path) -> None:
    noise(20, 30).save(tmp_path / "page.png")
    read_page(tmp_path / "page.png", 16)
    assert (ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS) == (False, 89478485)


@pytest.mark.parametrize("content", [None, b"", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_a_page_that_is_no_image_is_rejected_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "doc_0.jpg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProblemError) as error:
        read_page(path, 16)
    assert error.value.problem.code is ErrorCode.DATASET_FORMAT
    assert error.value.problem.where == "images/doc_0.jpg"
