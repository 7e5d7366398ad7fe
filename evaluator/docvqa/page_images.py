"""Page images as people see them: the one reader of importers, training and scoring.

A page is laid on white where it is transparent, and turned where its EXIF orientation says so. Known pages of the data
set end early: what is there is read, the rest is gray. What was done is part of the result, so that importers count it.

Pillow has process-wide switches for truncated files and for its limit of pixels. They stay as they are: this reader
completes a truncated file itself, and has a limit of its own.
"""

import struct
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, cast

from PIL import Image
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile, jpeg_factory
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

# The most pixels that are decoded, 200 MB in RGB: an A4 page at 800 dots per inch.
MAX_PIXELS = 2**26


def _jpeg(source: Path | BytesIO) -> ImageFile:
    return jpeg_factory(cast("IO[bytes]", source))


# Of a file's first bytes. Pillow's rarer parsers stay closed.
SIGNATURES: Mapping[bytes, Callable[[Path | BytesIO], ImageFile]] = {
    b"\xff\xd8\xff": _jpeg,
    b"\x89PNG\r\n\x1a\n": PngImageFile,
    b"II*\0": TiffImageFile,
    b"MM\0*": TiffImageFile,
    b"RIFF": WebPImageFile,
}
SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp")
# What Pillow raises on damaged, foreign or absurdly large files.
UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    MemoryError,
    struct.error,
    Image.DecompressionBombError,
)
# What it raises on damaged EXIF data, which say nothing then.
BAD_EXIF = (*UNREADABLE, KeyError, TypeError, IndexError)
ORIENTATION = 0x0112
# Orientation -> what turns the page upright; the last four lie on a side.
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
ON_ITS_SIDE = 5
END_OF_JPEG = b"\xff\xd9"
# The modes in which Pillow knows transparency. Those with 16 bits have none that it can apply.
TRANSPARENT_MODES = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa"}


@dataclass(frozen=True)
class PageImage:
    """A page as people see it.

    Attributes:
        image: In RGB.
        size: Width and height in the file, in pixels, after turning; `image` may be smaller.
        is_plain: A JPEG whose file says nothing but its pixels, which are RGB and as the file has them.
        ends_early: The file is truncated or damaged: part of the page is gray, or black in other formats than JPEG.
        was_transparent, was_turned: What was done to show it as people see it.
        has_more: Further pages are in the file, which are not read.
    """

    image: Image.Image
    size: tuple[int, int]
    is_plain: bool
    ends_early: bool
    was_transparent: bool
    was_turned: bool
    has_more: bool


def read_page_image(source: Path | bytes, *, needed_px: int, reduce: bool = True) -> PageImage:
    """Read a JPEG, PNG, TIFF or WebP image, whatever the file's name.

    Args:
        needed_px: The sides that the caller needs at least. A JPEG of more than `MAX_PIXELS` is decoded at an eighth of
            its size, or the next larger one that suffices.
        reduce: Decode smaller JPEGs at a fraction of their size, too.

    Raises:
        UNREADABLE: It is no such image, or too large a one.
    """
    with closing(_opened(source)) as image:
        size, is_tiff = image.size, isinstance(image, TiffImageFile)
        if reduce or size[0] * size[1] > MAX_PIXELS:
            _reduce(image, needed_px)
        # Further frames of a JPEG are previews of the same picture. Pillow turns a TIFF itself, size included.
        has_more = not isinstance(image, JpegImageFile) and getattr(image, "n_frames", 1) > 1
        orientation = _orientation(image) if is_tiff else 1
        ends_early = _decode(image)
        is_plain = isinstance(image, JpegImageFile) and image.mode == "RGB" and image.size == size
        page, was_transparent = _on_white(image)
        if not is_tiff:
            orientation = _orientation(image)
            page = page.transpose(UPRIGHT[orientation]) if orientation in UPRIGHT else page
            size = size[::-1] if orientation >= ON_ITS_SIDE else size
        return PageImage(
            image=page,
            size=size,
            is_plain=is_plain and {name for name, _ in getattr(image, "applist", [])} <= {"APP0"},
            ends_early=ends_early,
            was_transparent=was_transparent,
            was_turned=orientation in UPRIGHT,
            has_more=has_more,
        )


def _opened(source: Path | bytes) -> ImageFile:
    """Return the image by its first bytes, its pixels not yet decoded. Raises `UNREADABLE`."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            begin = file.read(8)
    else:
        begin = source[:8]
    for signature, opened in SIGNATURES.items():
        if begin.startswith(signature):
            return opened(source if isinstance(source, Path) else BytesIO(source))
    raise ValueError("neither JPEG, PNG, TIFF nor WebP")


def _reduce(image: ImageFile, needed_px: int) -> None:
    """Have `image` decoded at a fraction of its size. Raises ValueError where it stays too large."""
    width, height = image.size
    # A progressive JPEG is held as a whole while it is decoded, whatever comes out.
    if not (image.info.get("progressive") and width * height > MAX_PIXELS):
        image.draft("RGB", (needed_px, needed_px))
    if image.width * image.height > MAX_PIXELS:
        raise ValueError(f"{width} × {height} pixels, more than the {MAX_PIXELS} that are decoded at once")


def _decode(image: ImageFile) -> bool:
    """Decode as much as there is, and return whether that isn't all. Raises `UNREADABLE` where there is nothing."""
    ends: list[bytes] = []
    if isinstance(image, JpegImageFile):
        read = image.load_read

        def read_or_end(size: int) -> bytes:
            if (content := read(size)) or ends:
                return content
            # At the end of an image, the decoder fills the rest with gray.
            ends.append(END_OF_JPEG)
            return END_OF_JPEG

        vars(image)["load_read"] = read_or_end
    try:
        image.load()
    except (OSError, SyntaxError, ValueError):
        if not isinstance(image, JpegImageFile | PngImageFile) or image._im is None:
            raise
        # Nothing is left to be decoded: what there is of the page counts.
        image.tile = []
        return True
    return bool(ends)


def _orientation(image: Image.Image) -> int:
    """Return what EXIF says about the page's orientation, from 1 (upright) to 8."""
    try:
        value = image.getexif().get(ORIENTATION)
    except BAD_EXIF:
        return 1
    return value if isinstance(value, int) and value in UPRIGHT else 1


def _on_white(image: Image.Image) -> tuple[Image.Image, bool]:
    """Return the image in RGB, and whether white shows through."""
    if image.has_transparency_data and image.mode in TRANSPARENT_MODES:
        colors = image.convert("RGBA")
        if colors.getchannel("A").getextrema()[0] != 255:
            white = Image.new("RGBA", colors.size, "white")
            return Image.alpha_composite(white, colors).convert("RGB"), True
    return image.convert("RGB"), False
