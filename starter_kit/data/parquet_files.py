"""Data folders as Parquet files that Hugging Face's `datasets` reads, and back.

A row is a page with its questions::

    page, provider     text
    client             the client of the provider, in training; null elsewhere
    image              the JPEG file, as `datasets` stores images
    words              list of text
    boxes              list of [x0, y0, x1, y1] in [0, 1], one a word
    questions          list of question_id, question, answers, key

A file with other columns, which could say something else of a page, is rejected.

`<out>/data/<split>-00000-of-00001.parquet` and so on, where the split `valid` is called `validation` and `red-<name>`
`red.<name>`, as names of splits have no hyphens; `README.md` names the files of each split, and the files say which
features `datasets` shall make of the columns. Nothing is lost: what comes back is the folder that was written, images
included.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, first_line, read_info, write_info
from evaluator.messages.progress import OnProgress, ignore_progress
from starter_kit.data.folders import FOR_ATTACKS, SplitWriter, malformed, splits_of
from starter_kit.data.images import store_image
from starter_kit.data.summary import Finding, Findings, ImportSummary, SplitTally, questions_by_page
from starter_kit.extras import import_extra

# What `datasets` calls a split -> split.
SPLITS = {
    "train": "train",
    "validation": "valid",
    "valid": "valid",
    "val": "valid",
    "test": "test",
    "red": "red",
}
FILE = re.compile(r"(?P<split>red(?:\.\w+)+|[a-z]+)(?:-.*)?\.parquet")
PAGES_IN_A_FILE = 4000
PAGES_IN_A_GROUP = 100
# The key of `dataset.json` in a file's metadata, and that of the features, which `datasets` defines.
INFO, FEATURES = b"pfl_docvqa", b"huggingface"

_TEXT = {"dtype": "string", "_type": "Value"}
_TEXTS = {"feature": _TEXT, "_type": "Sequence"}
_BOX = {"feature": {"dtype": "float64", "_type": "Value"}, "_type": "Sequence"}
HF_FEATURES = {
    "page": _TEXT,
    "provider": _TEXT,
    "client": {"dtype": "int32", "_type": "Value"},
    "image": {"_type": "Image"},
    "words": _TEXTS,
    "boxes": {"feature": _BOX, "_type": "Sequence"},
    "questions": [{"question_id": _TEXT, "question": _TEXT, "answers": _TEXTS, "key": _TEXT}],
}


class Image(BaseModel):
    """An image as `datasets` stores it; a row may name a file elsewhere instead, which isn't read."""

    model_config = ConfigDict(extra="forbid")

    content: bytes | None = Field(default=None, alias="bytes")
    path: str | None = None


class QuestionOfPage(BaseModel):
    """A question of a row."""

    model_config = ConfigDict(extra="forbid")

    question_id: str
    question: str
    answers: list[str]
    key: str | None = ""


class PageRow(BaseModel):
    """A row, as it is read."""

    page: str
    provider: str | None = ""
    client: int | None = None
    image: Image | None
    words: list[str]
    boxes: list[list[float]]
    questions: list[QuestionOfPage]

    def parts(self) -> tuple[Page, list[Question]]:
        """Return the page and its questions. Raises ValidationError where they are none of a data folder."""
        page = self.model_dump(include={"page", "words", "boxes"}) | {"provider": self.provider or ""}
        questions = [
            Question.model_validate(question.model_dump() | {"page": self.page, "key": question.key or ""})
            for question in self.questions
        ]
        return Page.model_validate(page), questions


def export_parquet(folder: Path, out: Path, on_progress: OnProgress = ignore_progress) -> ImportSummary:
    """Write the splits that `folder` has.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) `folder` is no data folder, or an image is missing; (`E_CONFIGURATION`)
            pyarrow is not installed.
    """
    arrow, parquet = _arrow()
    info = read_info(folder)
    homes = _homes(info)
    datasets = [Dataset(folder, split) for split in splits_of(folder)]
    total, done = sum(len(dataset.pages) for dataset in datasets), 0
    schema = _schema(arrow, info)
    (out / "data").mkdir(parents=True)
    for dataset in datasets:
        pages = list(dataset.pages.values())
        asked = questions_by_page(dataset)
        files = max(1, math.ceil(len(pages) / PAGES_IN_A_FILE))
        for number in range(files):
            part = pages[number * PAGES_IN_A_FILE : (number + 1) * PAGES_IN_A_FILE]
            name = f"{_name(dataset.split)}-{number:05d}-of-{files:05d}.parquet"
            with parquet.ParquetWriter(out / "data" / name, schema) as writer:
                for start in range(0, len(part), PAGES_IN_A_GROUP):
                    group = part[start : start + PAGES_IN_A_GROUP]
                    rows = [_row(dataset, page, asked[page.page], homes) for page in group]
                    writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
                    done += len(group)
                    on_progress(done, total)
    (out / "README.md").write_text(_card(info, [dataset.split for dataset in datasets]), encoding="utf-8")
    return ImportSummary(info, {dataset.split: SplitTally.of(dataset) for dataset in datasets})


def import_parquet(
    source: Path, folder_public: Path, folder_secret: Path, on_progress: OnProgress = ignore_progress
) -> ImportSummary:
    """Convert Parquet files with the columns of this module into data folders: the test set, and further splits for
    attacks, into the secret one.

    An image that isn't a plain JPEG of the kit's size is encoded again.

    Raises:
        ProblemError: (`E_DATASET_FORMAT`) There are no such files, or a row is none of a data folder;
            (`E_CONFIGURATION`) pyarrow is not installed.
    """
    _arrow()
    files = _files(source)
    findings, tallies = Findings(), dict[str, SplitTally]()
    info = _agreed_info(path for paths in files.values() for path in paths)
    homes = _homes(info) if info else {}
    for split, paths in files.items():
        is_secret = split == "test" or split.startswith(FOR_ATTACKS)
        folder = folder_secret if is_secret else folder_public
        with SplitWriter(folder, split) as writer:
            for path in paths:
                for row in _rows(path):
                    if _write_row(row, path, writer, folder, findings) and split == "train":
                        _note_client(row, path, homes)
                    on_progress(writer.tally.pages, 0)
        tallies[split] = writer.tally
    clients: dict[int, list[str]] = {}
    for provider, client in homes.items():
        clients.setdefault(client, []).append(provider)
    info = info or DatasetInfo(name=source.name, description="Converted from Parquet files.", clients=clients)
    for folder in (folder_public, folder_secret):
        if folder.is_dir():
            write_info(folder, info)
    return ImportSummary(info, tallies, findings)


def _arrow() -> tuple[Any, Any]:
    """Return pyarrow, and its module for Parquet."""
    parquet = import_extra("pyarrow.parquet", "parquet", "pyarrow")
    return import_module("pyarrow"), parquet


def _schema(arrow: Any, info: DatasetInfo) -> Any:
    text, texts = arrow.string(), arrow.list_(arrow.string())
    question = [("question_id", text), ("question", text), ("answers", texts), ("key", text)]
    features = {"info": {"features": HF_FEATURES}}
    return arrow.schema(
        [
            ("page", text),
            ("provider", text),
            ("client", arrow.int32()),
            ("image", arrow.struct([("bytes", arrow.binary()), ("path", text)])),
            ("words", texts),
            ("boxes", arrow.list_(arrow.list_(arrow.float64()))),
            ("questions", arrow.list_(arrow.struct(question))),
        ],
        metadata={FEATURES: json.dumps(features).encode(), INFO: info.model_dump_json().encode()},
    )


def _row(
    dataset: Dataset, page: Page, questions: list[Question], homes: Mapping[str, int]
) -> dict[str, object]:
    path = dataset.image_path(page.page)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise malformed(path, "the image of a page", error.strerror) from error
    return {
        "page": page.page,
        "provider": page.provider,
        "client": homes.get(page.provider) if dataset.split == "train" else None,
        "image": {"bytes": content, "path": path.name},
        "words": page.words,
        "boxes": [list(box) for box in page.boxes],
        "questions": [question.model_dump(exclude={"page"}) for question in questions],
    }


def _card(info: DatasetInfo, splits: list[str]) -> str:
    files = [{"split": _name(split), "path": f"data/{_name(split)}-*.parquet"} for split in splits]
    front = {
        "pretty_name": info.name,
        "task_categories": ["document-question-answering"],
        "configs": [{"config_name": "default", "data_files": files}],
    }
    about = info.description or "Pages of documents, each with its words, their boxes, and questions."
    return (
        f"---\n{yaml.safe_dump(front, sort_keys=False, allow_unicode=True)}---\n\n# {info.name}\n\n{about}\n"
    )


def _name(split: str) -> str:
    """What `datasets` calls a split."""
    return "validation" if split == "valid" else split.replace("-", ".")


def _split(name: str) -> str | None:
    """The split that `datasets` calls so; None for another name."""
    return name.replace(".", "-") if name.startswith("red.") else SPLITS.get(name)


def _files(source: Path) -> dict[str, list[Path]]:
    """The files of each split, in the order of their names."""
    named = [
        (split, path)
        for path in sorted(source.rglob("*.parquet"))
        if (match := FILE.fullmatch(path.name)) and (split := _split(match["split"]))
    ]
    if not named:
        raise malformed(source, "files such as data/train-00000-of-00001.parquet", "none")
    order = list(SPLITS.values())
    named.sort(key=lambda pair: (order.index(pair[0]) if pair[0] in order else len(order), pair[0]))
    return {split: [path for _, path in group] for split, group in groupby(named, key=lambda pair: pair[0])}


def _opened(path: Path) -> Any:
    arrow, parquet = _arrow()
    try:
        return parquet.ParquetFile(path)
    except (OSError, arrow.ArrowException) as error:
        raise malformed(path, "a Parquet file", first_line(error)) from error


def _agreed_info(paths: Iterable[Path]) -> DatasetInfo | None:
    """The description that files hold; those that hold one must agree."""
    agreed: DatasetInfo | None = None
    for path in paths:
        stored = _stored_info(path)
        if agreed and stored and stored != agreed:
            raise malformed(path, f"the same {INFO.decode()} as in the other files", "another one")
        agreed = agreed or stored
    return agreed


def _stored_info(path: Path) -> DatasetInfo | None:
    """The data set's description, which other programs that write the file again leave out."""
    stored = (_opened(path).schema_arrow.metadata or {}).get(INFO)
    try:
        return DatasetInfo.model_validate_json(stored) if stored else None
    except ValidationError as error:
        raise malformed(path, f"a data set's description in {INFO.decode()}", first_line(error)) from error


def _rows(path: Path) -> Iterator[PageRow]:
    arrow, _ = _arrow()
    number = 0
    with _opened(path) as file:
        expected = f"the columns {', '.join(PageRow.model_fields)}"
        # pandas stores its index beside the columns.
        names = {name for name in file.schema_arrow.names if not name.startswith("__index_level_")}
        if missing := PageRow.model_fields.keys() - names:
            raise malformed(path, expected, f"no {sorted(missing)[0]}")
        if unknown := names - PageRow.model_fields.keys():
            raise malformed(path, f"{expected}, and no others", ", ".join(sorted(unknown)))
        try:
            for group in file.iter_batches(batch_size=PAGES_IN_A_GROUP, columns=list(PageRow.model_fields)):
                for values in group.to_pylist():
                    number += 1
                    yield PageRow.model_validate(values)
        except (ValidationError, arrow.ArrowException) as error:
            raise malformed(
                f"{path}, row {number}", "a page with its questions", first_line(error)
            ) from error


def _write_row(row: PageRow, path: Path, writer: SplitWriter, folder: Path, findings: Findings) -> bool:
    """Write a page with its image; a page whose image can't be read is left out."""
    try:
        page, questions = row.parts()
    except ValidationError as error:
        raise malformed(f"{path}, page {row.page}", "a page with its questions", first_line(error)) from error
    content = row.image.content if row.image else None
    if not content or not store_image(content, folder / "images" / f"{page.page}.jpg", findings):
        findings.note(Finding.BROKEN_IMAGE if content else Finding.MISSING_IMAGE, page.page)
        return False
    writer.add(page, questions)
    return True


def _homes(info: DatasetInfo) -> dict[str, int]:
    """Provider -> its client."""
    return {provider: client for client, providers in info.clients.items() for provider in providers}


def _note_client(row: PageRow, path: Path, homes: dict[str, int]) -> None:
    """Note the client of a page's provider. Rows, and the description in the files, must name the same one."""
    where = f"{path}, page {row.page}"
    if row.client is None or not row.provider:
        raise malformed(where, "a provider and its client", "none")
    if (home := homes.setdefault(row.provider, row.client)) != row.client:
        raise malformed(
            f"{where}, client", f"{home}, the client of {row.provider} elsewhere in the files", row.client
        )
