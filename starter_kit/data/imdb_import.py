"""Conversion of the competition's files into data folders.

A source holds the imdb files and `data_points.json`, itself or in a folder `imdb`, and the page images in
`images`. File names of both releases are known: `imdb_train_client_0.npy` or `blue_train_client_0.npy`, and so on.
Files of the red-team challenge, `SaTML_PMIA_<name>.npy`, name the provider of every row, and become splits
`red-<name>`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from evaluator.docvqa.dataset import Box, DatasetInfo, Page, Question, first_line, write_info
from evaluator.docvqa.imdb import MEMBER, Imdb, read_data_points
from evaluator.messages.progress import OnProgress, ignore_progress
from evaluator.messages.untrusted_text import decode
from starter_kit.data.bounded_reading import read_bounded
from starter_kit.data.folders import FOR_ATTACKS, SplitWriter, malformed
from starter_kit.data.images import image_file, import_images
from starter_kit.data.summary import Finding, Findings, ImportSummary, SplitTally

NAME = "pfl-docvqa"
Form = TypeVar("Form")
CLIENT_FILE = re.compile(r"(?:imdb|blue)_train_client_(\d+)\.npy")
RED_FILE = re.compile(r"SaTML_PMIA_([\w-]+)\.npy")
HELD_OUT_FILES = {
    "valid": ("imdb_valid.npy", "imdb_val.npy", "blue_valid.npy", "blue_val.npy"),
    "test": ("imdb_test.npy", "blue_test.npy"),
    # New documents for attacks, of providers that training has met and of others.
    "red": ("red_test.npy", "imdb_red_test.npy"),
}
PROVIDER_FILES = ("doc2provider.json", "red_doc2provider.json")


class ProviderLabel(BaseModel):
    """An entry of `SaTML_PMIA_label_<name>.json`."""

    label: str


PROVIDER_LABELS = TypeAdapter(dict[str, ProviderLabel])


class DocumentProvider(BaseModel):
    """An entry of `doc2provider.json`."""

    provider: str


DOCUMENT_PROVIDERS = TypeAdapter(dict[str, str | DocumentProvider])


class ImdbSource:
    """The place of the competition's files: a folder, or its folder `imdb`. Images are in `images` unless named."""

    def __init__(self, source: Path, images: Path | None) -> None:
        self.folders = (source, source / "imdb")
        self.images = images or source / "images"

    def find(self, *names: str) -> Path | None:
        """Return the first file that has one of these names; None if there is none."""
        paths = (folder / name for folder in self.folders for name in names)
        return next((path for path in paths if path.is_file()), None)

    def client_files(self) -> dict[int, Path]:
        """Return each client's file; of two names for one client the later release's counts."""
        files: dict[int, Path] = {}
        for folder in self.folders:
            for path in sorted(folder.glob("*_train_client_*.npy")):
                if match := CLIENT_FILE.fullmatch(path.name):
                    files[int(match[1])] = path  # "blue…" sorts before "imdb…"
        return dict(sorted(files.items()))

    def red_files(self) -> dict[str, Path]:
        """Return the red-team files by the split that each becomes."""
        return {
            f"{FOR_ATTACKS}{match[1]}": path
            for folder in self.folders
            for path in sorted(folder.glob("SaTML_PMIA_*.npy"))
            if (match := RED_FILE.fullmatch(path.name))
        }


@dataclass(frozen=True)
class ImdbFile:
    """A file of the competition, and the provider of each of its rows; a row without one is left out."""

    path: Path
    imdb: Imdb
    owners: dict[int, str]

    def row(self, number: int) -> str:
        """Return the place of a row, for findings."""
        return f"{self.path.name}, row {number}"


@dataclass
class Conversion:
    """What was found so far: ids and pages are unique over a whole data set."""

    source: ImdbSource
    on_progress: OnProgress
    # Document -> provider.
    providers: dict[str, str]
    findings: Findings = field(default_factory=Findings)
    ids: set[str] = field(default_factory=set)
    pages: set[str] = field(default_factory=set)
    tallies: dict[str, SplitTally] = field(default_factory=dict)


def convert_imdb(
    source: Path,
    folder_public: Path,
    folder_secret: Path,
    images: Path | None = None,
    on_progress: OnProgress = ignore_progress,
) -> ImportSummary:
    """Convert the competition's files into data folders; test sets, and the red-team challenge's, into the secret one.

    Where there are red-team files and no training files, their members are the providers of one client: attacks take
    the providers of all clients for the members.

    Args:
        images: The folder of page images, if it isn't `source/images`.
        on_progress: Called with the images done and all images, again for every file.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if a file can't be read or the files contradict each other.
    """
    files = ImdbSource(source, images)
    conversion = Conversion(files, on_progress, _document_providers(files))
    client_files = conversion.source.client_files()
    held_out = {split: conversion.source.find(*names) for split, names in HELD_OUT_FILES.items()}
    red_files = conversion.source.red_files()
    if not client_files and not red_files and not any(held_out.values()):
        raise malformed(
            source,
            "imdb_train_client_0.npy, imdb_val.npy, imdb_test.npy or their names of the first release",
            "none of them",
        )
    if not conversion.source.images.is_dir():
        raise malformed(
            conversion.source.images,
            "the folder of the page images",
            "no such folder",
            next_step="Put the images there, or name their folder with --images.",
        )
    clients = _convert_training(conversion, client_files, folder_public) if client_files else {}
    for split, path in held_out.items():
        if path is not None:
            imdb = read_bounded(path)
            owners = {
                row: conversion.providers.get(_document(question.image_name)) or question.provider
                for row, question in enumerate(imdb.questions, 1)
            }
            folder = folder_secret if split == "test" else folder_public
            _convert_held_out(conversion, split, ImdbFile(path, imdb, owners), folder)

    members: set[str] = set()
    for split, path in red_files.items():
        members |= _convert_red(conversion, split, path, folder_secret)

    description = "Converted from imdb files."
    info = DatasetInfo(name=NAME, description=description, clients=clients)
    if {"train", "valid", "red"} & conversion.tallies.keys():
        write_info(folder_public, info)
    if {"test", *red_files} & conversion.tallies.keys():
        # With the clients: scores are grouped by seen and unseen providers. Who is a member is what the red-team
        # challenge asks, so that only the secret folder says it.
        known = clients or ({0: sorted(members)} if members else {})
        write_info(folder_secret, info.model_copy(update={"clients": known}))
    if not any(tally.pages for tally in conversion.tallies.values()):
        raise malformed(
            conversion.source.images,
            "the images of the pages that the imdb files name",
            "none that can be read",
            next_step="Put the images there, or name their folder with --images.",
        )
    return ImportSummary(info, conversion.tallies, conversion.findings)


def _convert_training(conversion: Conversion, files: dict[int, Path], folder: Path) -> dict[int, list[str]]:
    """Write the training split; the providers of each client."""
    index = conversion.source.find("data_points.json")
    if index is None:
        raise malformed(conversion.source.folders[0], "data_points.json beside the clients' files", "none")
    data_points = read_data_points(index)
    _reject_mismatch(data_points, files)
    clients: dict[int, list[str]] = {}
    with SplitWriter(folder, "train") as writer:
        for client, path in files.items():
            imdb = read_bounded(path)
            _reject_unanswered(imdb, path)
            owners = _owners(imdb, data_points[f"client_{client}"], path, conversion.findings)
            before = set(writer.tally.pages_by_provider)
            for page, questions in _pages(conversion, ImdbFile(path, imdb, owners), folder):
                writer.add(page, questions)
            clients[client] = [name for name in writer.tally.pages_by_provider if name not in before]
            for provider in sorted(data_points[f"client_{client}"].keys() - set(clients[client])):
                conversion.findings.note(Finding.EMPTY_PROVIDER, f"client {client}: {provider}")
    conversion.tallies["train"] = writer.tally
    for provider, pages in writer.tally.pages_by_provider.items():
        if pages == 1:
            conversion.findings.note(Finding.ONE_DOCUMENT, provider)
    return clients


def _reject_unanswered(imdb: Imdb, path: Path) -> None:
    """Only questions that are not trained on may come without answers."""
    for row, question in enumerate(imdb.questions, 1):
        if not question.answers:
            raise malformed(f"{path.name}, row {row}", "a training question with its answer", "no answers")


def _reject_mismatch(data_points: dict[str, dict[str, list[int]]], files: dict[int, Path]) -> None:
    """Every client has a file and an entry, and every provider is one client's: privacy is counted by provider."""
    expected = {f"client_{client}" for client in files}
    if data_points.keys() != expected:
        raise malformed(
            "data_points.json",
            f"entries for the clients' files: {', '.join(sorted(expected))}",
            ", ".join(sorted(data_points)),
        )
    homes: dict[str, str] = {}
    for client, providers in data_points.items():
        for provider in providers:
            if homes.setdefault(provider, client) != client:
                raise malformed(
                    f"data_points.json, {client}, {provider}",
                    "every provider with one client",
                    f"it is also with {homes[provider]}",
                )


def _owners(imdb: Imdb, providers: dict[str, list[int]], path: Path, findings: Findings) -> dict[int, str]:
    """Row -> provider. An empty list is no row at all; the original loader took it for the whole file."""
    owners: dict[int, str] = {}
    for provider, rows in providers.items():
        for row in rows:
            if not 1 <= row <= len(imdb.questions):
                raise malformed(
                    f"data_points.json, {provider}",
                    f"rows of {path.name}, 1 to {len(imdb.questions)}; row 0 is the header",
                    row,
                )
            if owners.setdefault(row, provider) != provider:
                findings.note(Finding.ROW_OF_TWO_PROVIDERS, f"{path.name}, row {row}")
    return owners


def _convert_held_out(conversion: Conversion, split: str, file: ImdbFile, folder: Path) -> None:
    with SplitWriter(folder, split) as writer:
        for page, questions in _pages(conversion, file, folder):
            if not page.provider:
                conversion.findings.note(Finding.UNKNOWN_PROVIDER, page.page)
            writer.add(page, questions)
    conversion.tallies[split] = writer.tally


def _convert_red(conversion: Conversion, split: str, path: Path, folder: Path) -> set[str]:
    """Write a red-team split; the members among its providers, as far as its rows or the file of labels say."""
    imdb = read_bounded(path)
    owners = {row: question.provider for row, question in enumerate(imdb.questions, 1)}
    # Files about several models ask about the same pages.
    alone = replace(conversion, ids=set(), pages=set())
    _convert_held_out(alone, split, ImdbFile(path, imdb, owners), folder)
    labels = conversion.source.find(f"SaTML_PMIA_label_{split.removeprefix(FOR_ATTACKS)}.json")
    known = {question.provider: question.label for question in imdb.questions if question.label}
    if labels:
        for provider, label in _labels(labels).items():
            if known.setdefault(provider, label) != label:
                raise malformed(f"{labels.name}, {provider}", f"{known[provider]}, as in {path.name}", label)
    return {provider for provider, label in known.items() if label == MEMBER}


def _labels(path: Path) -> dict[str, str]:
    """Return what a file of labels calls each provider."""
    labels = _read(path, PROVIDER_LABELS, '{"a provider": {"label": "member"}}')
    return {provider: entry.label for provider, entry in labels.items()}


def _document(page: str) -> str:
    """Return the document that a page is of."""
    return page.rsplit("_", 1)[0]


def _document_providers(source: ImdbSource) -> dict[str, str]:
    """Document -> provider, where the release says so; the documents for attacks have a file of their own."""
    providers: dict[str, str] = {}
    for path in filter(None, map(source.find, PROVIDER_FILES)):
        entries = _read(path, DOCUMENT_PROVIDERS, '{"a document": {"provider": "a provider"}}')
        for document, entry in entries.items():
            provider = entry if isinstance(entry, str) else entry.provider
            if (known := providers.setdefault(document, provider)) != provider:
                raise malformed(f"{path.name}, {document}", f"{known}, as in {PROVIDER_FILES[0]}", provider)
    return providers


def _read(path: Path, form: TypeAdapter[Form], example: str) -> Form:
    """Return what a JSON file holds. Raises `ProblemError` (`E_DATASET_FORMAT`)."""
    try:
        return form.validate_json(decode(path.read_bytes()))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise malformed(path, f"JSON such as {example}", first_line(error)) from error


def _pages(conversion: Conversion, file: ImdbFile, folder: Path) -> Iterator[tuple[Page, list[Question]]]:
    """The pages of one file with their questions, in order of first appearance, images written."""
    rows_by_page: dict[str, list[int]] = {}
    for row, question in enumerate(file.imdb.questions, 1):
        if row in file.owners:
            rows_by_page.setdefault(question.image_name, []).append(row)
        else:
            conversion.findings.note(Finding.ROW_WITHOUT_PROVIDER, file.row(row))
    for name in list(rows_by_page):
        if name in conversion.pages:
            conversion.findings.note(Finding.REPEATED_PAGE, f"{file.path.name}, {name}")
            del rows_by_page[name]
    conversion.pages |= rows_by_page.keys()
    readable = import_images(
        {name: image_file(conversion.source.images, name) for name in rows_by_page},
        folder / "images",
        conversion.findings,
        conversion.on_progress,
    )
    for name in readable:
        yield _page(conversion, file, rows_by_page[name])


def _page(conversion: Conversion, file: ImdbFile, rows: list[int]) -> tuple[Page, list[Question]]:
    """One page with its questions; its words and its provider are its first row's."""
    findings = conversion.findings
    first = file.imdb.questions[rows[0] - 1]
    name, provider = first.image_name, file.owners[rows[0]]
    boxes = first.ocr_normalized_boxes
    if {conversion.providers.get(_document(name)), first.provider} - {None, "", provider}:
        findings.note(Finding.OTHER_PROVIDER, name)
    if not first.ocr_tokens:
        findings.note(Finding.EMPTY_OCR, name)
    if boxes.size and (boxes.min() < 0 or boxes.max() > 1):
        findings.note(Finding.CLIPPED_BOX, name)
    if not "".join(first.ocr_tokens).isascii():
        findings.note(Finding.NON_ASCII, name)
    inside: list[Box] = [(x0, y0, x1, y1) for x0, y0, x1, y1 in boxes.clip(0.0, 1.0).tolist()]
    page = Page(page=name, provider=provider, words=first.ocr_tokens, boxes=inside)

    questions = []
    for row in rows:
        if file.owners[row] != provider:
            findings.note(Finding.ROW_OF_TWO_PROVIDERS, file.row(row))
        question = file.imdb.questions[row - 1]
        identity = question.question_id
        if not identity or identity in conversion.ids:
            findings.note(Finding.NO_QUESTION_ID, file.row(row))
            identity = f"{file.path.stem}-{row}"
        conversion.ids.add(identity)
        questions.append(
            Question(question_id=identity, page=name, question=question.question, answers=question.answers)
        )
    return page, questions
