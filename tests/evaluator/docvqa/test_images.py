from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evaluator.docvqa.images import read_page, to_pixels
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


@pytest.mark.parametrize("content", [None, b"", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
def test_a_page_that_is_no_image_is_rejected_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "doc_0.jpg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProblemError) as error:
        read_page(path, 16)
    assert error.value.problem.code is ErrorCode.DATASET_FORMAT
    assert error.value.problem.where == "images/doc_0.jpg"
