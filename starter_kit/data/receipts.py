"""Receipts in the layout of the ICDAR 2019 SROIE challenge, as a federated data set.

A source folder holds, for each receipt, `img/<name>.jpg`; `box/<name>.csv`, one text line a row: the 8 pixel
coordinates of a quadrilateral and the text, which may hold commas; and `key/<name>.json` with the company, date,
address and total. The provider is the company. Text lines are cut into words, whose boxes share the line's by
their number of letters.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from evaluator.docvqa.dataset import Box, DatasetInfo, Page, Question
from evaluator.docvqa.page_images import SUFFIXES
from evaluator.messages.progress import OnProgress, ignore_progress
from evaluator.messages.untrusted_text import decode
from starter_kit.data.folders import malformed, write_divided
from starter_kit.data.folding import squeeze
from starter_kit.data.images import Size, image_file, import_images
from starter_kit.data.partition import IID, Rule, partition
from starter_kit.data.phrasings import RECEIPT_PHRASINGS, ask
from starter_kit.data.providers import join_spellings
from starter_kit.data.summary import Finding, Findings, ImportSummary
from starter_kit.randomness import data_stream

NAME = "receipts"
KEYS = tuple(RECEIPT_PHRASINGS)
COORDINATES = 8


class ReceiptSettings(BaseModel):
    """The settings of an import; the same seed and source give the same data set."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 7
    clients: int = Field(default=10, ge=1, le=1000)
    partition: Rule = IID


@dataclass(frozen=True)
class ReceiptLine:
    """A text line and its upright box, in pixels of the source image."""

    text: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Receipt:
    """One receipt: its text lines, and the values of its keys."""

    name: str
    lines: list[ReceiptLine]
    values: dict[str, str]

    @property
    def page(self) -> str:
        """Return the name of the receipt's page, a hash that doesn't reveal the file's name."""
        return hashlib.sha256(f"{NAME}/{self.name}".encode(errors="surrogateescape")).hexdigest()[:24] + "_0"


def import_receipts(
    source: Path,
    folder_public: Path,
    folder_secret: Path,
    settings: ReceiptSettings,
    on_progress: OnProgress = ignore_progress,
) -> ImportSummary:
    """Write train and valid to one data folder and test to another, images included.

    Args:
        on_progress: Called with the images done and all images.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if `source` isn't laid out as expected or has too few providers.
    """
    findings = Findings()
    receipts = _read_source(source, findings)
    sizes = import_images(
        {receipt.page: image_file(source / "img", receipt.name) for receipt in receipts},
        folder_public / "images",
        findings,
        on_progress,
    )
    receipts = [receipt for receipt in receipts if receipt.page in sizes]
    providers = join_spellings({receipt.name: receipt.values["company"] for receipt in receipts}, findings)
    division = partition(
        {receipt.page: providers[receipt.name] for receipt in receipts},
        settings.clients,
        data_stream(settings.seed, NAME),
        settings.partition,
    )

    description = "Receipts, each company a provider."
    info = DatasetInfo(
        name=NAME, description=description, partition=settings.partition, clients=division.clients
    )
    by_page = {receipt.page: receipt for receipt in receipts}

    def rows(name: str) -> list[tuple[Page, list[Question]]]:
        receipt = by_page[name]
        page = _page(receipt, providers[receipt.name], sizes[name], findings)
        return [(page, _questions(receipt, page, settings.seed, findings))]

    splits = {name: division.splits[name] for name in by_page}
    tallies = write_divided(folder_public, folder_secret, info, splits, rows)
    return ImportSummary(info, tallies, findings)


def _read_source(source: Path, findings: Findings) -> list[Receipt]:
    """The receipts that have a company, in order of name."""
    for name in ("img", "box", "key"):
        if not (source / name).is_dir():
            raise malformed(source, "folders img, box and key", f"no folder {name}")
    names = sorted(
        {path.stem for path in (source / "img").iterdir() if path.suffix in SUFFIXES}
        | {path.stem for path in (source / "box").glob("*.csv")}
        | {path.stem for path in (source / "key").glob("*.json")}
    )
    receipts = []
    for name in names:
        values = _read_values(source / "key" / f"{name}.json", findings)
        if values is None:
            continue
        if "company" not in values:
            findings.note(Finding.NO_COMPANY, name)
            continue
        receipts.append(Receipt(name, _read_lines(source / "box" / f"{name}.csv", findings), values))
    return receipts


def _read_text(path: Path, findings: Findings) -> str:
    content = path.read_bytes()
    try:
        return decode(content)
    except UnicodeDecodeError:
        findings.note(Finding.NOT_UTF8, f"{path.parent.name}/{path.name}")
        return content.decode("latin-1")


def _read_values(path: Path, findings: Findings) -> dict[str, str] | None:
    """The keys that have a value, white space tidied; none at all if the file can't be read."""
    try:
        record = from_json(_read_text(path, findings))
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict):
        findings.note(Finding.BAD_KEY_FILE, path.name)
        return None
    values = {}
    for key in KEYS:
        value = record.get(key)
        if isinstance(value, str) and value.strip():
            values[key] = " ".join(value.split())
        elif key != "company":  # without a company the whole receipt is left out, and counted as such
            findings.note(Finding.MISSING_KEY, f"{path.stem}: {key}")
    return values


def _read_lines(path: Path, findings: Findings) -> list[ReceiptLine]:
    try:
        text = _read_text(path, findings)
    except OSError:
        findings.note(Finding.MISSING_BOXES, path.name)
        return []
    lines = []
    for number, row in enumerate(text.splitlines(), 1):
        if not row.strip():
            continue
        line = _parse_line(row)
        if line is None:
            findings.note(Finding.BAD_BOX_LINE, f"{path.name}, line {number}")
        else:
            lines.append(line)
    if not any(line.text for line in lines):
        findings.note(Finding.EMPTY_OCR, path.name)
    return lines


def _parse_line(row: str) -> ReceiptLine | None:
    parts = row.split(",", COORDINATES)
    if len(parts) <= COORDINATES:
        return None
    try:
        corners = [int(part) for part in parts[:COORDINATES]]
    except ValueError:
        return None
    xs, ys = corners[0::2], corners[1::2]
    return ReceiptLine(parts[COORDINATES].strip(), (min(xs), min(ys), max(xs), max(ys)))


def _page(receipt: Receipt, provider: str, size: Size, findings: Findings) -> Page:
    words: list[str] = []
    boxes: list[Box] = []
    clipped = False
    for line in receipt.lines:
        for word, box in _cut(line):
            relative = tuple(value / size[axis % 2] for axis, value in enumerate(box))
            inside = tuple(round(min(max(value, 0.0), 1.0), 4) for value in relative)
            clipped |= min(relative) < 0 or max(relative) > 1
            words.append(word)
            boxes.append((inside[0], inside[1], inside[2], inside[3]))
    if clipped:
        findings.note(Finding.CLIPPED_BOX, receipt.name)
    if not "".join([*words, *receipt.values.values()]).isascii():
        findings.note(Finding.NON_ASCII, receipt.name)
    return Page(page=receipt.page, provider=provider, words=words, boxes=boxes)


def _cut(line: ReceiptLine) -> list[tuple[str, tuple[float, float, float, float]]]:
    """The line's words, each with its share of the line's box by the place of its letters."""
    x0, y0, x1, y1 = line.box
    step = (x1 - x0) / max(len(line.text), 1)
    words, end = [], 0
    for word in line.text.split():
        start = line.text.index(word, end)
        end = start + len(word)
        words.append((word, (x0 + start * step, y0, x0 + end * step, y1)))
    return words


def _questions(receipt: Receipt, page: Page, seed: int, findings: Findings) -> list[Question]:
    transcription = squeeze("".join(page.words))
    questions = []
    for key, value in receipt.values.items():
        if squeeze(value) not in transcription:
            findings.note(Finding.ANSWER_NOT_IN_OCR, f"{receipt.name}: {key}")
        questions.append(
            Question(
                question_id=f"{page.page}-{key}",
                page=page.page,
                question=ask(RECEIPT_PHRASINGS, key, data_stream(seed, "question", page.page, key)),
                answers=[value],
                key=key,
            )
        )
    return questions
