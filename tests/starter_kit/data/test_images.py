import os
from pathlib import Path
from threading import Barrier

import pytest
from PIL import Image

from starter_kit.data import images
from starter_kit.data.images import import_images
from starter_kit.data.summary import Findings


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

    def wait_for_four_others(*_: object) -> tuple[int, int]:
        together.wait()
        return 1, 1

    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(images, "_shrink", wait_for_four_others)
    sources = {f"page{number}": tmp_path for number in range(10)}
    assert import_images(sources, tmp_path / "out", Findings()) == dict.fromkeys(sources, (1, 1))
