"""The benchmark's data folder: pages, questions and page images, in formats that load without pickle.

A data folder holds::

    dataset.json                 name, description, clients (training only)
    images/<page>.jpg            one image a page
    <split>/pages.jsonl          one `Page` a line
    <split>/questions.jsonl      one `Question` a line

Splits are named `train`, `valid` and `test`; `red` has documents for attacks. Boxes are [x0, y0, x1, y1] in [0, 1],
relative to the page.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.base import Message
from evaluator.messages.untrusted_text import decode

Row = TypeVar("Row", bound=BaseModel)
Coordinate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# A log counts clients from 0; -1 is the server.
ClientId = Annotated[int, Field(ge=0, lt=2**31)]
Box = tuple[Coordinate, Coordinate, Coordinate, Coordinate]


class Page(Message):
    """One page with its words. `page` names the image; the part before the last `_` names the document."""

    page: str = Field(min_length=1, max_length=200, pattern=r"^[\w.-]+$")
    provider: str = ""
    words: list[str]
    boxes: list[Box]

    @model_validator(mode="after")
    def _one_box_a_word(self) -> Self:
        if len(self.words) != len(self.boxes):
            raise ValueError(f"{len(self.words)} words but {len(self.boxes)} boxes")
        return self

    @property
    def document(self) -> str:
        return self.page.rsplit("_", 1)[0]


class Question(Message):
    """One question about one page. `key` names the field that it is about (`total_amount`), where that is known."""

    question_id: str = Field(min_length=1)
    page: str
    question: str
    answers: list[str]
    key: str = ""


class DatasetInfo(Message):
    """`dataset.json`. `clients` partitions the training providers: client id -> provider names.

    `partition` is the rule that `pfl data` divided them by, where it did.
    """

    format: str = Field(default="pfl-docvqa/1", pattern=r"^pfl-docvqa/1$")
    name: str
    description: str = ""
    partition: str = ""
    clients: dict[ClientId, list[str]] = {}


class Dataset:
    """One split of a data folder, read lazily. Raises `ProblemError` (`E_DATASET_FORMAT`) on anything unreadable."""

    def __init__(self, folder: Path, split: str) -> None:
        self.folder = folder
        self.split = split

    @cached_property
    def info(self) -> DatasetInfo:
        return read_info(self.folder)

    @cached_property
    def pages(self) -> dict[str, Page]:
        return {page.page: page for page in read_lines(self.folder / self.split / "pages.jsonl", Page)}

    @cached_property
    def questions(self) -> list[Question]:
        path = self.folder / self.split / "questions.jsonl"
        questions = list(read_lines(path, Question))
        for number, question in enumerate(questions, 1):
            if question.page not in self.pages:
                raise malformed(f"{path.name}, line {number}", "a page of pages.jsonl", question.page)
        return questions

    def provider(self, page: str) -> str:
        """Return the provider of the page of that name."""
        return self.pages[page].provider

    def image_path(self, page: str) -> Path:
        return self.folder / "images" / f"{page}.jpg"

    def questions_by_provider(self) -> dict[str, list[Question]]:
        """Return the questions of each provider, providers in order of first appearance."""
        grouped: dict[str, list[Question]] = {}
        for question in self.questions:
            grouped.setdefault(self.pages[question.page].provider, []).append(question)
        return grouped

    def sha256(self) -> str:
        """Hash of the split's pages and questions, the identity that a score is stamped with."""
        digest = hashlib.sha256()
        for name in ("pages.jsonl", "questions.jsonl"):
            with (self.folder / self.split / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()


def read_info(folder: Path) -> DatasetInfo:
    path = folder / "dataset.json"
    try:
        return DatasetInfo.model_validate_json(decode(path.read_bytes()))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise malformed(path, "a data folder", first_line(error)) from error


def read_lines(path: Path, model: type[Row]) -> Iterator[Row]:
    """Yield the rows of a JSON-lines file, validated."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield model.model_validate_json(line)
                except ValidationError as error:
                    expected = f"a {model.__name__.lower()} as JSON"
                    raise malformed(f"{path.name}, line {number}", expected, first_line(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise malformed(path, "UTF-8 JSON lines", first_line(error)) from error


def write_split(folder: Path, split: str, pages: Iterable[Page], questions: Iterable[Question]) -> None:
    """Write one split; images are the caller's to place under `images/`."""
    target = folder / split
    target.mkdir(parents=True, exist_ok=True)
    write_lines(target / "pages.jsonl", pages)
    write_lines(target / "questions.jsonl", questions)


def write_lines(path: Path, rows: Iterable[BaseModel]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(map(to_line, rows))


def to_line(row: BaseModel) -> str:
    """Return `row` as one line of a JSON-lines file, with its line end."""
    return json.dumps(row.model_dump(), ensure_ascii=False, separators=(",", ":")) + "\n"


def write_info(folder: Path, info: DatasetInfo) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    unstated = None if info.partition else {"partition"}
    stored = info.model_dump_json(indent=1, exclude=unstated)
    (folder / "dataset.json").write_text(stored + "\n", encoding="utf-8")


def malformed(where: Path | str, expected: str, found: object) -> ProblemError:
    """Return the rejection (`E_DATASET_FORMAT`) of data in another form than expected."""
    return ProblemError.of(ErrorCode.DATASET_FORMAT, str(where), expected, found)


def first_line(error: Exception) -> str:
    """Return what an error says, in a line: for the problem that it becomes."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, ValidationError):
        detail = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in detail["loc"])
        return f"{place}: {detail['msg']}" if place else detail["msg"]
    return str(error).splitlines()[0] if str(error) else type(error).__name__
