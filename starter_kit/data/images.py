"""Page images, re-encoded: small enough to train on, known to open, without the source's metadata."""

import os
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageFont
from PIL.JpegImagePlugin import JpegImageFile

from evaluator.progress import OnProgress, ignore_progress
from starter_kit.data.summary import Finding, Findings

LONGEST_PX = 1000
JPEG_QUALITY = 85
FORMATS = ("JPEG", "PNG")  # PNG under a .jpg name is met; Pillow's rarer parsers stay closed
# What Pillow raises on damaged, truncated, foreign or absurdly large files.
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error, Image.DecompressionBombError)

# The one part of a JPEG beside its picture that says nothing more: the marker of its format.
PLAIN = {"APP0"}

Size = tuple[int, int]


def import_images(
    sources: Mapping[str, Path],
    target: Path,
    findings: Findings,
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Size]:
    """Write every readable image to `target` as <page>.jpg, RGB, its long side at most `LONGEST_PX`.

    Returns:
        Page -> width and height of the source, for the pages that have an image now; the others are noted.
    """
    target.mkdir(parents=True, exist_ok=True)
    sizes: dict[str, Size] = {}

    def shrink(item: tuple[str, Path]) -> Size | None:
        page, source = item
        return _shrink(source, target / f"{page}.jpg")

    # Threads: Pillow decodes and encodes without the interpreter's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, ((page, source), size) in enumerate(
            zip(sources.items(), pool.map(shrink, sources.items()), strict=True), 1
        ):
            if size is not None:
                sizes[page] = size
            else:
                findings.note(Finding.BROKEN_IMAGE if source.exists() else Finding.MISSING_IMAGE, source.name)
            on_progress(done, len(sources))
    return sizes


def store_image(content: bytes, target: Path) -> bool:
    """Write an image from within another file, and return whether it could be read.

    A JPEG that needs no change, as `import_images` writes them, stays as it is, bit for bit.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with Image.open(BytesIO(content), formats=FORMATS) as image:
            image.load()
            plain = isinstance(image, JpegImageFile) and {name for name, _ in image.applist} <= PLAIN
            if plain and image.mode == "RGB" and max(image.size) <= LONGEST_PX:
                target.write_bytes(content)
                return True
            page = image.convert("RGB")
    except UNREADABLE:
        return False
    _save(page, target)
    return True


def read_image(path: Path) -> tuple[Image.Image, Size] | None:
    """Return the image in RGB, decoded at no less than `LONGEST_PX`, and its size in the file; None if it is
    unreadable."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            size = image.size
            image.draft("RGB", (LONGEST_PX, LONGEST_PX))
            return image.convert("RGB"), size
    except UNREADABLE:
        return None


@lru_cache(maxsize=32)
def font_of(size_px: int) -> ImageFont.FreeTypeFont:
    """Return the font of drawn pages in a size: Pillow's own, the same on every machine."""
    font = ImageFont.load_default(size=size_px)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType: it can't draw text of a given size.")
    return font


def _shrink(source: Path, target: Path) -> Size | None:
    read = read_image(source)
    if read is None:
        return None
    page, size = read
    _save(page, target)
    return size


def _save(page: Image.Image, target: Path) -> None:
    page.thumbnail((LONGEST_PX, LONGEST_PX))
    # Pillow would write the source's comment again.
    page.info.clear()
    page.save(target, quality=JPEG_QUALITY)
