"""Page images, re-encoded: small enough to train on, known to open, without the source's metadata."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageFont

from evaluator.docvqa.page_images import SUFFIXES, UNREADABLE, PageImage, read_page_image
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import malformed
from starter_kit.data.summary import Finding, Findings
from starter_kit.extras import import_extra

LONGEST_PX = 1000
JPEG_QUALITY = 85
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

    def shrink(item: tuple[str, Path]) -> PageImage | None:
        page, source = item
        return _shrink(source, target / f"{page}.jpg")

    # Threads: Pillow decodes and encodes without the interpreter's lock.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, ((page, source), read) in enumerate(
            zip(sources.items(), pool.map(shrink, sources.items()), strict=True), 1
        ):
            if read is not None:
                sizes[page] = read.size
                _note(read, findings, source.name)
            else:
                findings.note(Finding.BROKEN_IMAGE if source.exists() else Finding.MISSING_IMAGE, source.name)
            on_progress(done, len(sources))
    return sizes


def import_pdf_pages(
    source: Path, page_count: int, pages: Mapping[int, str], target: Path, findings: Findings
) -> dict[str, Size]:
    """Draw pages of a PDF, by their numbers from 0, and write them to `target` as `import_images` does.

    Returns:
        Page -> width and height, in points, of the pages that have an image now; the others are noted.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if the PDF hasn't `page_count` pages. `E_CONFIGURATION`, if no library that
            draws PDFs is installed.
    """
    pdfium = import_extra("pypdfium2", "docile", "pypdfium2")
    target.mkdir(parents=True, exist_ok=True)
    sizes: dict[str, Size] = {}
    try:
        with closing(pdfium.PdfDocument(source)) as document:
            if len(document) != page_count:
                raise malformed(source, f"{page_count} pages, as in the annotation", len(document))
            for number, page in pages.items():
                width, height = document[number].get_size()
                image = document[number].render(scale=LONGEST_PX / max(width, height)).to_pil()
                _save(image.convert("RGB"), target / f"{page}.jpg")
                sizes[page] = (round(width), round(height))
    except (FileNotFoundError, pdfium.PdfiumError):
        for page in pages.values() - sizes.keys():
            findings.note(Finding.BROKEN_IMAGE if source.exists() else Finding.MISSING_IMAGE, page)
    return sizes


def image_file(folder: Path, name: str) -> Path:
    """Return the image of that name, whichever of the known formats it has; the JPEG's path where there is none."""
    paths = [folder / f"{name}{suffix}" for suffix in SUFFIXES]
    return next((path for path in paths if path.exists()), paths[0])


def store_image(content: bytes, target: Path, findings: Findings) -> bool:
    """Write an image from within another file, and return whether it could be read.

    A JPEG that needs no change, as `import_images` writes them, stays as it is, bit for bit.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        page = read_page_image(content, needed_px=LONGEST_PX, reduce=False)
    except UNREADABLE:
        return False
    _note(page, findings, target.stem)
    if page.is_plain and not page.ends_early and max(page.size) <= LONGEST_PX:
        target.write_bytes(content)
    else:
        _save(page.image, target)
    return True


def is_readable(path: Path) -> bool:
    """Return whether the file is a page image."""
    try:
        read_page_image(path, needed_px=LONGEST_PX)
    except UNREADABLE:
        return False
    return True


@lru_cache(maxsize=32)
def font_of(size_px: int) -> ImageFont.FreeTypeFont:
    """Return the font of drawn pages in a size: Pillow's own, the same on every machine."""
    font = ImageFont.load_default(size=size_px)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType: it can't draw text of a given size.")
    return font


def _shrink(source: Path, target: Path) -> PageImage | None:
    """Write the page smaller, and return what was read; None where it can't be."""
    try:
        read = read_page_image(source, needed_px=LONGEST_PX)
    except UNREADABLE:
        return None
    _save(read.image, target)
    # The pixels of all pages would not fit into memory.
    return replace(read, image=Image.new("RGB", (1, 1)))


def _note(read: PageImage, findings: Findings, where: str) -> None:
    """Count what was done to show a page as people see it."""
    done = {
        Finding.ENDS_EARLY: read.ends_early,
        Finding.TRANSPARENT: read.was_transparent,
        Finding.TURNED: read.was_turned,
        Finding.FURTHER_PAGES: read.has_more,
    }
    for finding in (finding for finding, happened in done.items() if happened):
        findings.note(finding, where)


def _save(page: Image.Image, target: Path) -> None:
    page.thumbnail((LONGEST_PX, LONGEST_PX))
    # Pillow would write the source's comment again.
    page.info.clear()
    page.save(target, quality=JPEG_QUALITY)
