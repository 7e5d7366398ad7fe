"""Page images to the pixels that the image tower reads."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFile
from torch import Tensor

from evaluator.docvqa.dataset import malformed

# Known pages of the dataset end early. What is there of a page is read, the rest is gray, for every submission
# alike. Pillow knows these settings only for the whole process; its own limit of pixels is replaced by the one below.
ImageFile.LOAD_TRUNCATED_IMAGES = True
Image.MAX_IMAGE_PIXELS = None

# The most pixels that are decoded, 200 MB in RGB: an A4 page at 800 dots per inch.
MAX_PIXELS = 2**26


def read_page(path: Path, size: int) -> Tensor:
    """Return the page image as pixels (3, size, size), float32 in [-1, 1].

    A JPEG of more than `MAX_PIXELS` is decoded at an eighth of its size, or the next larger one that suffices.

    Raises `ProblemError` (`E_DATASET_FORMAT`) where the file is no image that Pillow can open, or too large a one.
    """
    try:
        with Image.open(path) as image:
            if image.width * image.height > MAX_PIXELS:
                _reduce(image, size)
            return to_pixels(image, size)
    except (OSError, SyntaxError, ValueError, MemoryError) as error:
        raise malformed(f"images/{path.name}", "a page image", error) from error


def to_pixels(image: Image.Image, size: int) -> Tensor:
    """Return `image` in RGB, resized to size × size (bilinear) with mean 0.5 and deviation 0.5, as DiT expects it."""
    resized = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(resized)).permute(2, 0, 1)
    return pixels.to(torch.float32).div(255).sub(0.5).div(0.5)


def _reduce(image: Image.Image, size: int) -> None:
    """Have `image` decoded at a fraction of its size. Raises ValueError where its format can't, or not enough."""
    width, height = image.size
    # A progressive JPEG is held as a whole while it is decoded, whatever comes out.
    if not image.info.get("progressive"):
        image.draft("RGB", (size, size))
    if image.width * image.height > MAX_PIXELS:
        raise ValueError(f"{width} × {height} pixels, more than the {MAX_PIXELS} that are decoded at once")
