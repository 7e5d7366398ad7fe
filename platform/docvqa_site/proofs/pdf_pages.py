"""The pages of a PDF as images and text: what the site has `evaluator.sandbox` run on a privacy proof.

`draw` runs in the sandboxed process, and is all that ever opens the file. What it sends comes from a process that a
hostile file may have taken over: the caller validates it as `DrawnPage` and `Drawn`. The PDFium that pypdfium2 brings
has no JavaScript; forms aren't filled, and actions and attachments aren't looked at.
"""

import base64
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Base64Bytes, BaseModel, Field

from evaluator.sandbox.limits import MIB, Limits

if TYPE_CHECKING:
    from PIL.Image import Image
    from pypdfium2 import PdfPage

# What `draw` imports, for the sandbox to load before it is confined.
LIBRARIES = ("pypdfium2", "PIL.WebPImagePlugin")
POINTS_PER_INCH = 72
RESOLUTION_DPI = 110
MAX_PAGES = 60
# Larger pages, such as posters, are drawn with a lower resolution.
MAX_PIXELS = 2_500_000
MAX_SIDE_PIXELS = 4_000
# A larger image, a photograph for instance, is stored with losses.
MAX_LOSSLESS_BYTES = 1 * MIB
MAX_IMAGE_BYTES = 4 * MIB
MAX_TEXT_CHARACTERS = 20_000
ENCRYPTED = 4  # FPDF_ERR_PASSWORD

# Of one call of `draw`. A page that isn't drawn within the CPU time is never drawn; a busy machine is waited for.
DRAWING_LIMITS = Limits(
    wall_s=30,
    cpu_s=15,
    memory_bytes=384 * MIB,
    address_space_bytes=640 * MIB,
    file_bytes=0,
    open_files=64,
    result_bytes=2 * MAX_IMAGE_BYTES,
)


class DrawingRequest(BaseModel):
    """Which pages to draw: one from `first` (counted from 1) on, and more until `seconds` have passed."""

    path: Path
    first: int = 1
    seconds: float


class DrawnPage(BaseModel):
    """One page as a WebP image of this size in pixels, and its text."""

    number: int = Field(ge=1, le=MAX_PAGES)
    width: int = Field(ge=1, le=MAX_SIDE_PIXELS)
    height: int = Field(ge=1, le=MAX_SIDE_PIXELS)
    text: str = Field(max_length=MAX_TEXT_CHARACTERS)
    image: Annotated[Base64Bytes, Field(max_length=MAX_IMAGE_BYTES)]


class Drawn(BaseModel):
    """How many pages the file has, or why it has none that can be drawn: what was expected and found."""

    total: int = Field(0, ge=0)
    expected: str = Field("", max_length=200)
    found: str = Field("", max_length=200)


def draw(inputs: object, send: Callable[[object], None]) -> dict[str, Any]:
    """Send each page that is drawn as a `DrawnPage`, and return a `Drawn`, both as JSON."""
    import pypdfium2 as pdfium

    began = time.monotonic()
    request = DrawingRequest.model_validate(inputs)
    try:
        document = pdfium.PdfDocument(request.path)
    except pdfium.PdfiumError as error:
        found = "one that is encrypted" if error.err_code == ENCRYPTED else "one that PDFium can't open"
        return Drawn(expected="an unencrypted PDF file", found=found).model_dump()
    # What the file says, which may be wrong: no list of pages is read for it.
    total = len(document)
    if not 1 <= total <= MAX_PAGES:
        return Drawn(expected=f"1 to {MAX_PAGES} pages", found=f"{total:,} pages").model_dump()
    for number in range(request.first, total + 1):
        try:
            send(_drawn(document[number - 1], number))
        except pdfium.PdfiumError:
            return Drawn(
                expected="pages that PDFium can read", found=f"page {number} is damaged"
            ).model_dump()
        if time.monotonic() - began > request.seconds:
            break
    return Drawn(total=total).model_dump()


def _drawn(page: "PdfPage", number: int) -> dict[str, object]:
    image = page.render(scale=_scale(*page.get_size())).to_pil()
    return {
        "number": number,
        "width": image.width,
        "height": image.height,
        "text": readable_text(page.get_textpage().get_text_bounded())[:MAX_TEXT_CHARACTERS],
        "image": base64.b64encode(_webp(image)).decode(),
    }


def _scale(width: float, height: float) -> float:
    """Return the pixels for each point of a page of this size in points."""
    wanted = RESOLUTION_DPI / POINTS_PER_INCH
    # One less, because PDFium rounds up.
    by_side = (MAX_SIDE_PIXELS - 1) / max(width, height, 1)
    return float(min(wanted, by_side, (MAX_PIXELS / max(width * height, 1)) ** 0.5))


def _webp(image: "Image") -> bytes:
    """Return the image without losses if it then has few bytes: text does, in a third of what PNG takes."""
    file = io.BytesIO()
    image.save(file, "WEBP", lossless=True, method=2, quality=50)
    if file.tell() > MAX_LOSSLESS_BYTES:
        file = io.BytesIO()
        image.save(file, "WEBP", method=2, quality=75)
    return file.getvalue()


def readable_text(text: str) -> str:
    """Return the text without control characters and without marks that change its direction."""
    lines = ("".join(c if c.isprintable() else " " for c in line).rstrip() for line in text.splitlines())
    return "\n".join(lines).strip()
