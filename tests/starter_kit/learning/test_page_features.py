import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.learning import page_features as module
from starter_kit.learning.page_features import (
    FOLDER,
    FeatureFile,
    FeatureRows,
    InMemory,
    Precision,
    _Entry,
    page_features,
)
from starter_kit.learning.trainable_model import TrainableModel
from tests.services.forked import Forked
from tests.starter_kit.pocket_data import make_data


def features_of(
    base: Path,
    data: Path,
    pages: Sequence[str] | None = None,
    *,
    precision: Precision = "float32",
    in_memory_bytes: int = 0,
    on_page: Callable[[int, int], None] = lambda done, total: None,
) -> InMemory | FeatureRows:
    """The features of pages, in groups of two, so that six pages are three groups."""
    module.PAGES_AT_ONCE = 2
    model = TrainableModel(open_reference(base)[0])
    dataset = Dataset(data, "train")
    return page_features(
        model,
        dataset,
        list(dataset.pages) if pages is None else pages,
        on_page,
        precision=precision,
        in_memory_bytes=in_memory_bytes,
    )


def killed() -> None:
    """Make features, and end this process by a signal when the third group's rows are written, and half a line."""
    write = module.FeatureFile._write_index

    def write_or_die(file: FeatureFile, entries: Sequence[_Entry]) -> None:
        if len(file._entries) == 4:
            assert file._index
            with file._index.open("ab") as index:
                index.write(b'{"page": "half a li')
            os.kill(os.getpid(), signal.SIGKILL)
        write(file, entries)

    setattr(module.FeatureFile, "_write_index", write_or_die)  # noqa: B010 - it has another signature
    features_of(Path(sys.argv[1]), Path(sys.argv[2]))


@pytest.fixture(autouse=True)
def _groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGES_AT_ONCE", module.PAGES_AT_ONCE)


@pytest.fixture
def pages_data(tmp_path: Path) -> Path:
    return make_data(tmp_path / "data")


def all_of(features: InMemory | FeatureRows) -> Tensor:
    return features.read(range(6))


def only_folder(data: Path) -> Path:
    (folder,) = (data / FOLDER).iterdir()
    return folder


def made(base: Path, data: Path, pages: Sequence[str] | None = None) -> list[tuple[int, int]]:
    """What is reported of the pages that had to be made."""
    reports: list[tuple[int, int]] = []
    features_of(base, data, pages, on_page=lambda done, total: reports.append((done, total)))
    return reports


def test_features_in_a_file_are_those_in_memory_to_the_bit(base: Path, pages_data: Path) -> None:
    in_memory = features_of(base, pages_data, in_memory_bytes=1 << 20)
    assert isinstance(in_memory, InMemory)
    assert not (pages_data / FOLDER).exists()
    in_file = features_of(base, pages_data)
    assert isinstance(in_file, FeatureRows)
    assert torch.equal(all_of(in_file), all_of(in_memory))
    assert torch.equal(in_file.read([4, 1]), all_of(in_memory)[[4, 1]])


def test_threads_read_a_file_at_once(base: Path, pages_data: Path) -> None:
    in_file = features_of(base, pages_data)
    orders = [[number % 6, (number * 5 + 1) % 6] for number in range(60)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(in_file.read, orders))
    expected = all_of(in_file)
    assert all(torch.equal(rows, expected[order]) for rows, order in zip(found, orders, strict=True))


def test_float16_rounds_each_number_and_takes_half_the_room(base: Path, pages_data: Path) -> None:
    exact = all_of(features_of(base, pages_data))
    whole = (only_folder(pages_data) / "features.bin").stat().st_size
    rounded = all_of(features_of(base, pages_data, precision="float16"))
    assert torch.equal(rounded, exact.half())
    sizes = {path.stat().st_size for path in (pages_data / FOLDER).glob("*/features.bin")}
    assert sizes == {whole, whole // 2}
    assert torch.equal(
        all_of(features_of(base, pages_data, precision="float16", in_memory_bytes=1 << 20)), rounded
    )


def test_pages_are_made_once_and_only_those_that_are_used(base: Path, pages_data: Path) -> None:
    assert made(base, pages_data, ["train1_0", "train4_0"]) == [(2, 2)]
    assert made(base, pages_data) == [(2, 4), (4, 4)]
    assert made(base, pages_data) == []


def test_what_a_killed_process_left_is_completed(base: Path, pages_data: Path, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    process = Forked(killed, ["killed", str(base), str(pages_data)], stdout=printed, stderr=printed)
    assert process.wait(120) == -signal.SIGKILL
    folder = only_folder(pages_data)
    lines = (folder / "index.jsonl").read_bytes()
    assert lines.count(b"\n") == 4
    assert not lines.endswith(b"\n")
    assert made(base, pages_data) == [(2, 2)]
    whole = make_data(tmp_path / "whole")
    assert torch.equal(all_of(features_of(base, pages_data)), all_of(features_of(base, whole)))
    assert (folder / "features.bin").read_bytes() == (only_folder(whole) / "features.bin").read_bytes()


def test_a_page_whose_image_has_changed_is_made_again(base: Path, pages_data: Path) -> None:
    before = all_of(features_of(base, pages_data))
    Image.new("RGB", (20, 20), "white").save(pages_data / "images" / "train3_0.jpg")
    assert made(base, pages_data) == [(1, 1)]
    after = all_of(features_of(base, pages_data))
    assert [torch.equal(*pair) for pair in zip(before, after, strict=True)] == [True] * 3 + [False] + [
        True
    ] * 2


def test_images_with_other_times_are_the_same_images(base: Path, pages_data: Path) -> None:
    features_of(base, pages_data)
    for image in (pages_data / "images").iterdir():
        os.utime(image, ns=(1, 1))
    assert made(base, pages_data) == []
    lines = (only_folder(pages_data) / "index.jsonl").read_text().splitlines()
    assert {json.loads(line)["mtime_ns"] for line in lines[6:]} == {1}


def test_features_of_another_image_tower_are_others(
    base: Path, pages_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features_of(base, pages_data)
    model: VT5 = open_reference(base)[0]
    with torch.no_grad():
        model.visual_embedding.image_model.embeddings.cls_token.add_(1)
    monkeypatch.setattr(sys.modules[__name__], "open_reference", lambda base: (model, None))
    assert len(made(base, pages_data)) == 3


def test_a_damaged_row_is_found_when_it_is_read(base: Path, pages_data: Path) -> None:
    features_of(base, pages_data)
    path = only_folder(pages_data) / "features.bin"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    features = features_of(base, pages_data)
    features.read([0, 4])
    with pytest.raises(ProblemError) as caught:
        features.read([5])
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert "train5_0" in str(caught.value.problem.where)


def test_a_file_that_is_too_short_is_completed(base: Path, pages_data: Path) -> None:
    before = all_of(features_of(base, pages_data))
    path = only_folder(pages_data) / "features.bin"
    os.truncate(path, path.stat().st_size - 1)
    assert made(base, pages_data) == [(1, 1)]
    assert torch.equal(all_of(features_of(base, pages_data)), before)


def test_another_folder_can_be_named(
    base: Path, pages_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PFL_PAGE_FEATURES", str(tmp_path / "elsewhere"))
    features_of(base, pages_data)
    assert not (pages_data / FOLDER).exists()
    assert list((tmp_path / "elsewhere").glob("*/features.bin"))


def test_where_no_folder_can_be_written_features_last_as_long_as_the_process(
    base: Path, pages_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pages_data / "file").touch()
    monkeypatch.setenv("PFL_PAGE_FEATURES", str(pages_data / "file" / "folder"))
    features = features_of(base, pages_data)
    assert isinstance(features, FeatureRows)
    assert torch.equal(all_of(features), all_of(features_of(base, pages_data, in_memory_bytes=1 << 20)))
    assert made(base, pages_data) == [(2, 6), (4, 6), (6, 6)]


def test_too_little_room_is_reported_before_anything_is_made(
    base: Path, pages_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(pages_data)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=10))
    with pytest.raises(ProblemError) as caught:
        features_of(base, pages_data)
    assert "PFL_PAGE_FEATURES" in caught.value.problem.next_step
