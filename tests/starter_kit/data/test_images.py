import os
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from PIL import Image, ImageChops, ImageDraw

from evaluator.docvqa.images import to_pixels
from evaluator.docvqa.page_images import PageImage, read_page_image
from starter_kit.data import images
from starter_kit.data.images import image_file, import_images, store_image
from starter_kit.data.summary import Finding, Findings


def test_an_imported_image_has_no_comment_of_its_source(tmp_path: Path) -> None:
    source = tmp_path / "source.jpg"
    Image.new("RGB", (20, 20)).save(source, comment=b"who scanned it")
    import_images({"page": source}, tmp_path / "out", Findings())
    assert b"who scanned it" in source.read_bytes()
    assert b"who scanned it" not in (tmp_path / "out" / "page.jpg").read_bytes()


def test_as_many_images_are_encoded_at_once_as_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Barrier(5, timeout=60)

    read = PageImage(Image.new("RGB", (1, 1)), (1, 1), True, False, False, False, False)

    def wait_for_four_others(*_: object) -> PageImage:
        together.wait()
        return read

    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(images, "_shrink", wait_for_four_others)
    sources = {f"page{number}": tmp_path for number in range(10)}
    assert import_images(sources, tmp_path / "out", Findings()) == dict.fromkeys(sources, (1, 1))


def page(mode: str = "RGB") -> Image.Image:
    """A white page, its upper left quarter dark."""
    drawn = Image.new("RGB", (240, 160), "white")
    ImageDraw.Draw(drawn).rectangle((0, 0, 119, 79), fill=(40, 0, 80))
    return drawn.convert(mode)


def bright(mode: str) -> Image.Image:
    """The same page on nothing: what is white there lets through what lies below."""
    drawn = Image.new("RGBA", (240, 160), (0, 0, 0, 0))
    ImageDraw.Draw(drawn).rectangle((0, 0, 119, 79), fill=(40, 0, 80, 255))
    return drawn.convert(mode)


def turned(orientation: int, method: Image.Transpose, kind: str = "JPEG") -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return stored(page().transpose(method), kind, exif=exif)


def stored(image: Image.Image, kind: str, **options: object) -> bytes:
    content = BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def palette() -> bytes:
    drawn = Image.new("P", (240, 160), 0)
    drawn.putpalette([0, 0, 0, 40, 0, 80])
    ImageDraw.Draw(drawn).rectangle((0, 0, 119, 79), fill=1)
    return stored(drawn, "PNG", transparency=0)


SEEN = [
    pytest.param(lambda: stored(page(), "TIFF"), None, id="TIFF"),
    pytest.param(lambda: stored(page("1"), "TIFF", compression="group4"), None, id="a fax"),
    pytest.param(lambda: stored(page(), "WEBP", lossless=True), None, id="WebP"),
    pytest.param(lambda: stored(bright("RGBA"), "PNG"), Finding.TRANSPARENT, id="RGBA"),
    pytest.param(lambda: stored(bright("LA"), "PNG"), Finding.TRANSPARENT, id="LA"),
    pytest.param(lambda: stored(bright("RGBA"), "WEBP", lossless=True), Finding.TRANSPARENT, id="WebP, RGBA"),
    pytest.param(palette, Finding.TRANSPARENT, id="a palette with transparency"),
    pytest.param(lambda: turned(6, Image.Transpose.ROTATE_90), Finding.TURNED, id="on its side"),
    pytest.param(lambda: turned(8, Image.Transpose.ROTATE_270, "PNG"), Finding.TURNED, id="PNG on its side"),
    pytest.param(lambda: turned(6, Image.Transpose.ROTATE_90, "TIFF"), Finding.TURNED, id="TIFF on its side"),
    pytest.param(lambda: turned(3, Image.Transpose.ROTATE_180), Finding.TURNED, id="upside down"),
    pytest.param(lambda: turned(2, Image.Transpose.FLIP_LEFT_RIGHT), Finding.TURNED, id="mirrored"),
    pytest.param(
        lambda: stored(page(), "TIFF", save_all=True, append_images=[page()]),
        Finding.FURTHER_PAGES,
        id="two pages",
    ),
]


@pytest.mark.parametrize(("made", "finding"), SEEN)
def test_a_page_is_imported_and_scored_as_people_see_it_and_what_was_done_is_counted(
    tmp_path: Path, made: Callable[[], bytes], finding: Finding | None
) -> None:
    source, content = tmp_path / "source_0.jpg", made()
    source.write_bytes(content)
    findings = Findings()
    assert import_images({"page_0": source}, tmp_path / "out", findings) == {"page_0": (240, 160)}
    assert store_image(content, tmp_path / "out" / "other_0.jpg", findings)
    assert findings.counts == ({finding: 2} if finding else {})
    # A fax and grays keep no color.
    shades = page("L")
    for path in (source, tmp_path / "out" / "page_0.jpg", tmp_path / "out" / "other_0.jpg"):
        read = read_page_image(path, needed_px=32, reduce=False).image
        assert read.size == shades.size
        difference = ImageChops.difference(read.convert("L").resize((24, 16)), shades.resize((24, 16)))
        assert np.asarray(difference).max() < 45


def test_a_page_that_ends_early_is_imported_as_it_is_scored(tmp_path: Path) -> None:
    whole = Image.effect_noise((600, 800), 80).convert("RGB")
    content = stored(whole, "JPEG")[:-4000]
    source = tmp_path / "source_0.jpg"
    source.write_bytes(content)
    findings = Findings()
    import_images({"page_0": source}, tmp_path / "out", findings)
    store_image(content, tmp_path / "out" / "other_0.jpg", findings)
    assert findings.counts == {Finding.ENDS_EARLY: 2}
    scored = to_pixels(read_page_image(source, needed_px=32, reduce=False).image, 32)
    for name in ("page_0.jpg", "other_0.jpg"):
        imported = read_page_image(tmp_path / "out" / name, needed_px=32)
        assert not imported.ends_early
        assert (to_pixels(imported.image, 32) - scored).abs().max() < 0.05


def test_an_image_is_found_whatever_its_format(tmp_path: Path) -> None:
    (tmp_path / "page_0.tif").write_bytes(stored(page(), "TIFF"))
    assert image_file(tmp_path, "page_0") == tmp_path / "page_0.tif"
    assert image_file(tmp_path, "other_0") == tmp_path / "other_0.jpg"
