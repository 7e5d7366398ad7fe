"""A split whose pages stay on disk: of each page, only its provider and its place in the file are in memory.

The words and boxes of 69,894 pages take 8 GB as Python objects, and a training reads each page's once.
"""

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError
from typing_extensions import override

from evaluator.docvqa.dataset import Dataset, Page, first_line
from evaluator.errors import ErrorCode, ProblemError


class PageFile(Mapping[str, Page]):
    """The pages of a `pages.jsonl` by name, each parsed when it is asked for. Threads may ask at once.

    Every line is validated once, on opening.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) The file can't be read, or a line is no page.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._spans: dict[str, tuple[int, int]] = {}
        self._providers: dict[str, str] = {}
        begin = 0
        try:
            self._file = path.open("rb")
            for number, line in enumerate(self._file, 1):
                page = self._parse(line, f"{path.name}, line {number}")
                self._spans[page.page] = begin, len(line)
                self._providers[page.page] = page.provider
                begin += len(line)
        except OSError as error:
            raise _unreadable(str(path), "UTF-8 JSON lines", error) from error

    def provider(self, page: str) -> str:
        """Return the provider of a page, without reading the page."""
        return self._providers[page]

    def __getitem__(self, page: str) -> Page:
        begin, length = self._spans[page]
        return self._parse(os.pread(self._file.fileno(), length, begin), f"{self._path.name}, page {page}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def __contains__(self, page: object) -> bool:
        return page in self._spans

    @staticmethod
    def _parse(line: bytes, where: str) -> Page:
        try:
            return Page.model_validate_json(line)
        except ValidationError as error:
            raise _unreadable(where, "a page as JSON", error) from error


class PagesOnDisk(Dataset):
    """One split of a data folder, like `Dataset`, with its pages in a `PageFile`."""

    @cached_property
    @override
    def pages(self) -> PageFile:  # type: ignore[override]  # it is read, never changed
        return PageFile(self.folder / self.split / "pages.jsonl")

    @override
    def provider(self, page: str) -> str:
        return self.pages.provider(page)


def _unreadable(where: str, expected: str, error: Exception) -> ProblemError:
    return ProblemError.of(ErrorCode.DATASET_FORMAT, where=where, expected=expected, found=first_line(error))
