"""Page images to the pixels that the image tower reads."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFile
from torch import Tensor

from evaluator.errors import ErrorCode, refuse

# Known pages of the dataset end early. What is there of a page is read, the rest is grey, for every submission
# alike. Pillow knows this setting only for the whole process.
ImageFile.LOAD_TRUNCATED_IMAGES = True


def read_page(path: Path, size: int) -> Tensor:
    """The page image as pixels (3, size, size), float32 in [-1, 1].

    Raises `ProblemError` (`E_DATASET_FORMAT`) where the file is no image that Pillow can open.
    """
    try:
        with Image.open(path) as image:
            return to_pixels(image, size)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise refuse(
            ErrorCode.DATASET_FORMAT, where=f"images/{path.name}", expected="a page image", found=error
        ) from error


def to_pixels(image: Image.Image, size: int) -> Tensor:
    """`image` in RGB, resized to size × size (bilinear) with mean 0.5 and deviation 0.5, as DiT expects it."""
    resized = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(resized)).permute(2, 0, 1)
    return pixels.to(torch.float32).div(255).sub(0.5).div(0.5)
