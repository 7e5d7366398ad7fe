"""A split whose pages stay on disk: of each page, only its provider and its place in the file are in memory.

The words and boxes of 69,894 pages take 8 GB as Python objects, and a training reads each page's once.
"""

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import override

from evaluator.docvqa.dataset import Dataset, Page, Row, first_line
from starter_kit.data.folders import malformed


class _Name(BaseModel):
    """What is read of a page's line on opening, which takes a tenth of the time that the whole line takes."""

    model_config = ConfigDict(extra="ignore")

    page: str
    provider: str = ""


class PageFile(Mapping[str, Page]):
    """The pages of a `pages.jsonl` by name, each parsed and validated when it is asked for. Threads may ask at once.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) On opening: the file can't be read, or a line has no page's name. When a page
            is asked for: its line is no page.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Where the line of a page begins, its length, and its number.
        self._lines: dict[str, tuple[int, int, int]] = {}
        self._providers: dict[str, str] = {}
        begin = 0
        try:
            self._file = path.open("rb")
            for number, line in enumerate(self._file, 1):
                name = self._parse(_Name, line, number)
                self._lines[name.page] = begin, len(line), number
                self._providers[name.page] = name.provider
                begin += len(line)
        except OSError as error:
            raise malformed(path, "UTF-8 JSON lines", first_line(error)) from error

    def provider(self, page: str) -> str:
        """Return the provider of a page, without reading the page."""
        return self._providers[page]

    def __getitem__(self, page: str) -> Page:
        begin, length, number = self._lines[page]
        return self._parse(Page, os.pread(self._file.fileno(), length, begin), number)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, page: object) -> bool:
        return page in self._lines

    def _parse(self, model: type[Row], line: bytes, number: int) -> Row:
        try:
            return model.model_validate_json(line)
        except ValidationError as error:
            raise malformed(
                f"{self._path.name}, line {number}", "a page as JSON", first_line(error)
            ) from error


class PagesOnDisk(Dataset):
    """One split of a data folder, like `Dataset`, with its pages in a `PageFile`."""

    @cached_property
    @override
    def pages(self) -> PageFile:  # type: ignore[override]  # it is read, never changed
        return PageFile(self.folder / self.split / "pages.jsonl")

    @override
    def provider(self, page: str) -> str:
        return self.pages.provider(page)
