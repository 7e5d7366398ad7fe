"""Page images, re-encoded: small enough to train on, known to open, without the source's metadata."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from starter_kit.data.summary import Finding, Findings

LONGEST_PX = 1000
JPEG_QUALITY = 85
# What Pillow raises on damaged, truncated, foreign or absurdly large files.
UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)

Size = tuple[int, int]


def import_images(
    sources: Mapping[str, Path],
    target: Path,
    findings: Findings,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    longest_px: int = LONGEST_PX,
) -> dict[str, Size]:
    """Write every readable image to `target` as <page>.jpg, RGB, its long side at most `longest_px`.

    Returns:
        Page -> width and height of the source, for the pages that have an image now; the others are noted.
    """
    target.mkdir(parents=True, exist_ok=True)
    sizes: dict[str, Size] = {}

    def shrink(item: tuple[str, Path]) -> Size | None:
        page, source = item
        return _shrink(source, target / f"{page}.jpg", longest_px)

    with ThreadPoolExecutor(max_workers=2) as pool:  # Pillow decodes and encodes without the interpreter's lock
        for done, ((page, source), size) in enumerate(
            zip(sources.items(), pool.map(shrink, sources.items()), strict=True), 1
        ):
            if size is not None:
                sizes[page] = size
            else:
                findings.note(Finding.BROKEN_IMAGE if source.exists() else Finding.MISSING_IMAGE, source.name)
            on_progress(done, len(sources))
    return sizes


def _shrink(source: Path, target: Path, longest_px: int) -> Size | None:
    try:
        with Image.open(source) as image:
            size = image.size
            image.draft("RGB", (longest_px, longest_px))
            page = image.convert("RGB")
    except UNREADABLE:
        return None
    page.thumbnail((longest_px, longest_px))
    page.save(target, quality=JPEG_QUALITY)
    return size
