from pathlib import Path

from PIL import Image

from starter_kit.data.images import import_images
from starter_kit.data.summary import Findings


def test_an_imported_image_has_no_comment_of_its_source(tmp_path: Path) -> None:
    source = tmp_path / "source.jpg"
    Image.new("RGB", (20, 20)).save(source, comment=b"who scanned it")
    import_images({"page": source}, tmp_path / "out", Findings())
    assert b"who scanned it" in source.read_bytes()
    assert b"who scanned it" not in (tmp_path / "out" / "page.jpg").read_bytes()
