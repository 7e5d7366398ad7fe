"""DocILE, the source of the competition's page images, as a federated data set.

A source folder has the layout of DocILE's own library (Šimsa et al., 2023)::

    annotations/<document>.json     fields with type, text and page; the layout cluster; the size of each page
    ocr/<document>.json             the words of each page with their boxes
    pdfs/<document>.pdf             the pages
    cached_images/<document>/0.png  instead of the PDF, if there: the pages as that library stores them, from 0
    <split>.json                    the documents of a split, such as trainval

The provider is the vendor. Where none is named, the document belongs to the one vendor that other documents of its
layout cluster name, since a company whose documents count as two providers' would have less privacy than is claimed.
Failing that, the cluster is the provider. Each type of field on a page becomes a question about its text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError, model_validator

from evaluator.docvqa.dataset import Box, DatasetInfo, Page, Question, first_line
from evaluator.messages.progress import OnProgress, ignore_progress
from evaluator.messages.untrusted_text import decode
from starter_kit.data.folders import malformed, write_divided
from starter_kit.data.folding import fold_company, squeeze
from starter_kit.data.images import Size, import_images, import_pdf_pages
from starter_kit.data.partition import IID, Rule, partition
from starter_kit.data.phrasings import DOCILE_PHRASINGS, ask
from starter_kit.data.providers import join_spellings
from starter_kit.data.summary import Finding, Findings, ImportSummary
from starter_kit.randomness import data_stream

NAME = "docile"
VENDOR = "vendor_name"
# By how much the ratio of a page's sides may differ from the annotation's: sizes are whole pixels.
SHAPE_TOLERANCE = 0.02
# Pages are named after their documents.
NAMES = re.compile(r"[\w.-]{1,190}")
Form = TypeVar("Form")


class DocileSettings(BaseModel):
    """The settings of an import; the same seed and source give the same data set.

    Attributes:
        split: The name of a list of documents; empty: all that are annotated.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 7
    clients: int = Field(default=10, ge=1, le=1000)
    partition: Rule = IID
    split: str = ""


class AnnotatedField(BaseModel):
    """A field: what it is, and what it says."""

    fieldtype: str
    page: int = Field(ge=0)
    text: str | None = None


class Metadata(BaseModel):
    """What is known about a document as a whole. DocILE's test set has no clusters."""

    page_count: int = Field(ge=1)
    page_sizes_at_200dpi: list[Size]
    cluster_id: int | None = None


class Annotation(BaseModel):
    """The part of an annotation file that is read. Documents without labels have no fields."""

    metadata: Metadata
    field_extractions: list[AnnotatedField] = []

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        pages, sizes = self.metadata.page_count, len(self.metadata.page_sizes_at_200dpi)
        if sizes != pages:
            raise ValueError(f"page_count is {pages}, page_sizes_at_200dpi has {sizes}")
        if beyond := [one for one in self.field_extractions if one.page >= pages]:
            raise ValueError(f"{beyond[0].fieldtype} is on page {beyond[0].page}, page_count is {pages}")
        return self


class OcrWord(BaseModel):
    """A word, and the corners of its box."""

    value: str
    geometry: list[tuple[FiniteFloat, FiniteFloat]] = Field(min_length=2)


class OcrLine(BaseModel):
    """A line of words."""

    words: list[OcrWord]


class OcrBlock(BaseModel):
    """A block of lines."""

    lines: list[OcrLine]


class OcrPage(BaseModel):
    """A page of blocks. Pages are numbered from 0."""

    page_idx: int
    blocks: list[OcrBlock]


class Ocr(BaseModel):
    """The words of a document."""

    pages: list[OcrPage]


@dataclass(frozen=True)
class Document:
    """An annotated document.

    Attributes:
        texts: Page number -> type of field -> its texts on that page, as often as they are annotated.
    """

    name: str
    metadata: Metadata
    vendors: list[str]
    texts: dict[int, dict[str, list[str]]] = field(default_factory=dict)

    def page(self, number: int) -> str:
        """Return the name of a page."""
        return f"{self.name}_{number}"


def import_docile(
    source: Path,
    folder_public: Path,
    folder_secret: Path,
    settings: DocileSettings,
    on_progress: OnProgress = ignore_progress,
) -> ImportSummary:
    """Write train and valid to one data folder and test to another, images included.

    Args:
        on_progress: Called with the documents done and all documents.

    Raises:
        ProblemError: `E_DATASET_FORMAT`, if a file isn't as DocILE has it, if two sources contradict each other, or if
            there are too few providers. `E_CONFIGURATION`, if there are PDFs and no library that draws them.
    """
    findings = Findings()
    documents = {one.name: one for one in _read_documents(source, settings.split, findings)}
    providers = _providers(documents, findings)
    documents = {name: document for name, document in documents.items() if name in providers}
    pages = _import_pages(source, documents, folder_public / "images", findings, on_progress)
    division = partition(
        {name: providers[name] for name, numbers in pages.items() if numbers},
        settings.clients,
        data_stream(settings.seed, NAME),
        settings.partition,
    )
    info = DatasetInfo(
        name=NAME,
        description="Business documents of DocILE, each vendor a provider.",
        partition=settings.partition,
        clients=division.clients,
    )

    def rows(name: str) -> Iterator[tuple[Page, list[Question]]]:
        words = _read_words(source, documents[name], findings)
        for number in pages[name]:
            page = _page(documents[name].page(number), providers[name], words[number], findings)
            yield page, _questions(page, documents[name].texts[number], settings.seed, findings)

    tallies = write_divided(folder_public, folder_secret, info, division.splits, rows)
    return ImportSummary(info, tallies, findings)


def _read(path: Path, form: TypeAdapter[Form], expected: str) -> Form:
    try:
        return form.validate_json(decode(path.read_bytes()))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise malformed(path, expected, first_line(error)) from error


def _read_documents(source: Path, split: str, findings: Findings) -> Iterator[Document]:
    """The documents that have a field to ask about, in order of name."""
    folder = source / "annotations"
    if not folder.is_dir():
        raise malformed(
            source, "DocILE unzipped, with the folders annotations, ocr and pdfs", "no annotations"
        )
    names = sorted(path.stem for path in folder.glob("*.json"))
    if split:
        listed = _read(source / f"{split}.json", TypeAdapter(list[str]), "a list of documents")
        if missing := sorted(set(listed) - set(names)):
            raise malformed(source / f"{split}.json", "documents with annotations", missing[0])
        names = sorted(set(listed))
    form = TypeAdapter(Annotation)
    for name in names:
        if not NAMES.fullmatch(name):
            raise malformed(folder / f"{name}.json", "a name of letters, digits, dots and hyphens", name)
        annotation = _read(folder / f"{name}.json", form, "an annotation as in DocILE")
        texts: dict[int, dict[str, list[str]]] = {}
        for one in annotation.field_extractions:
            text = " ".join((one.text or "").split())
            if not text:
                findings.note(Finding.MISSING_KEY, f"{name}: {one.fieldtype}")
            elif one.fieldtype not in DOCILE_PHRASINGS:
                findings.note(Finding.UNKNOWN_FIELD, one.fieldtype)
            else:
                texts.setdefault(one.page, {}).setdefault(one.fieldtype, []).append(text)
        if not texts:
            findings.note(Finding.NO_FIELDS, name)
            continue
        vendors = [text for number in sorted(texts) for text in texts[number].get(VENDOR, [])]
        yield Document(name, annotation.metadata, vendors, texts)


def _providers(documents: Mapping[str, Document], findings: Findings) -> dict[str, str]:
    """Return document -> provider, for those that have one."""
    vendors: dict[str, str] = {}
    of_cluster: dict[int | None, dict[str, str]] = {}
    for name, document in documents.items():
        if document.vendors:
            vendors[name] = document.vendors[0]
            of_cluster.setdefault(document.metadata.cluster_id, {}).setdefault(
                fold_company(document.vendors[0]), document.vendors[0]
            )
            if len({fold_company(vendor) for vendor in document.vendors}) > 1:
                findings.note(Finding.SEVERAL_VENDORS, name)
    for name, document in documents.items():
        cluster = document.metadata.cluster_id
        if name in vendors:
            continue
        if cluster is None:
            findings.note(Finding.NO_VENDOR, name)
        elif len(known := list(of_cluster.get(cluster, {}).values())) == 1:
            vendors[name] = known[0]
            findings.note(Finding.VENDOR_OF_CLUSTER, name)
        else:
            vendors[name] = f"layout cluster {cluster}"
            findings.note(Finding.CLUSTER_AS_PROVIDER, name)
    return join_spellings(vendors, findings)


def _import_pages(
    source: Path,
    documents: Mapping[str, Document],
    target: Path,
    findings: Findings,
    on_progress: OnProgress,
) -> dict[str, list[int]]:
    """Write the pages that have a field, and return document -> numbers of those that have an image now."""
    pages: dict[str, list[int]] = {}
    for done, (name, document) in enumerate(documents.items(), 1):
        wanted = {number: document.page(number) for number in sorted(document.texts)}
        stored = source / "cached_images" / name
        if stored.is_dir():
            files = {page: stored / f"{number}.png" for number, page in wanted.items()}
            sizes = import_images(files, target, findings)
        else:
            pdf = source / "pdfs" / f"{name}.pdf"
            sizes = import_pdf_pages(pdf, document.metadata.page_count, wanted, target, findings)
        pages[name] = []
        for number, page in wanted.items():
            if page not in sizes:
                continue
            if _has_shape(sizes[page], document.metadata.page_sizes_at_200dpi[number]):
                pages[name].append(number)
            else:
                findings.note(Finding.OTHER_SHAPE, page)
                (target / f"{page}.jpg").unlink()
        on_progress(done, len(documents))
    return pages


def _has_shape(size: Size, stated: Size) -> bool:
    (width, height), (stated_width, stated_height) = size, stated
    return abs(width * stated_height - height * stated_width) <= SHAPE_TOLERANCE * height * stated_width


def _read_words(source: Path, document: Document, findings: Findings) -> list[list[OcrWord]]:
    """Return the words of each page, which are none if the file is missing."""
    path, count = source / "ocr" / f"{document.name}.json", document.metadata.page_count
    if not path.exists():
        findings.note(Finding.MISSING_BOXES, path.name)
        return [[] for _ in range(count)]
    pages = _read(path, TypeAdapter(Ocr), "words as in DocILE").pages
    if [page.page_idx for page in pages] != list(range(count)):
        found = f"pages {', '.join(str(page.page_idx) for page in pages)}" if pages else "no page"
        raise malformed(path, f"the pages 0 to {count - 1}, as in the annotation", found)
    return [[word for block in page.blocks for line in block.lines for word in line.words] for page in pages]


def _page(name: str, provider: str, words: list[OcrWord], findings: Findings) -> Page:
    boxes: list[Box] = []
    clipped = False
    for word in words:
        xs, ys = zip(*word.geometry, strict=True)
        corners = (min(xs), min(ys), max(xs), max(ys))
        x0, y0, x1, y1 = (round(min(max(value, 0.0), 1.0), 4) for value in corners)
        boxes.append((x0, y0, x1, y1))
        clipped |= min(corners) < 0 or max(corners) > 1
    if clipped:
        findings.note(Finding.CLIPPED_BOX, name)
    if not words:
        findings.note(Finding.EMPTY_OCR, name)
    return Page(page=name, provider=provider, words=[word.value for word in words], boxes=boxes)


def _questions(page: Page, texts: Mapping[str, list[str]], seed: int, findings: Findings) -> list[Question]:
    transcription = squeeze("".join(page.words))
    questions = []
    for key, values in texts.items():
        where = f"{page.page}: {key}"
        if len({squeeze(value) for value in values}) > 1:
            findings.note(Finding.SEVERAL_VALUES, where)
            continue
        if squeeze(values[0]) not in transcription:
            findings.note(Finding.ANSWER_NOT_IN_OCR, where)
        questions.append(
            Question(
                question_id=f"{page.page}-{key}",
                page=page.page,
                question=ask(DOCILE_PHRASINGS, key, data_stream(seed, "question", page.page, key)),
                answers=list(dict.fromkeys(values)),
                key=key,
            )
        )
    return questions
