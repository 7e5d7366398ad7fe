from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.manifest import manifest_sha256
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.data.page_file import PageFile, PagesOnDisk
from tests.starter_kit.pocket_data import make_data


def test_pages_on_disk_are_those_in_memory(data: Path) -> None:
    on_disk, in_memory = PagesOnDisk(data, "train"), Dataset(data, "train")
    assert dict(on_disk.pages) == in_memory.pages
    assert on_disk.questions == in_memory.questions
    assert manifest_sha256(on_disk) == manifest_sha256(in_memory)
    assert [on_disk.provider(page) for page in on_disk.pages] == [
        page.provider for page in in_memory.pages.values()
    ]


def test_threads_read_pages_at_once(data: Path) -> None:
    pages = PageFile(data / "train" / "pages.jsonl")
    with ThreadPoolExecutor(4) as pool:
        assert [page.page for page in pool.map(pages.__getitem__, list(pages) * 20)] == list(pages) * 20


def test_a_line_that_is_no_page_is_named(tmp_path: Path) -> None:
    path = make_data(tmp_path / "data") / "train" / "pages.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], '{"page": 3}', *lines[3:]]))
    with pytest.raises(ProblemError) as caught:
        PageFile(path)
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert caught.value.problem.where == "pages.jsonl, line 3"


def test_a_page_without_its_boxes_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = make_data(tmp_path / "data") / "train" / "pages.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], '{"page": "a_0", "words": ["word"], "boxes": []}', *lines[3:]]))
    pages = PageFile(path)
    assert pages.provider("a_0") == ""
    with pytest.raises(ProblemError) as caught:
        pages["a_0"]
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert caught.value.problem.where == "pages.jsonl, line 3"
    assert "1 words but 0 boxes" in str(caught.value.problem.found)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        PageFile(tmp_path / "pages.jsonl")
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
