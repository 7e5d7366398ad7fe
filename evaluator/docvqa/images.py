"""Page images to the pixels that the image tower reads."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from evaluator.docvqa.dataset import malformed
from evaluator.docvqa.page_images import UNREADABLE, read_page_image


def read_page(path: Path, size: int) -> Tensor:
    """Return the page image as pixels (3, size, size), float32 in [-1, 1].

    A JPEG of more pixels than are decoded at once is decoded at a fraction of its size.

    Raises `ProblemError` (`E_DATASET_FORMAT`) where the file is no image that can be read, or too large a one.
    """
    try:
        return to_pixels(read_page_image(path, needed_px=size, reduce=False).image, size)
    except UNREADABLE as error:
        raise malformed(f"images/{path.name}", "a page image", error) from error


def to_pixels(image: Image.Image, size: int) -> Tensor:
    """Return `image` in RGB, resized to size × size (bilinear) with mean 0.5 and deviation 0.5, as DiT expects it."""
    resized = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(resized)).permute(2, 0, 1)
    return pixels.to(torch.float32).div(255).sub(0.5).div(0.5)
