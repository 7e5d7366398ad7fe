"""The summary of an import: what it wrote and what it found. Nothing is left out without being counted."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question

EXAMPLES = 3


class Finding(StrEnum):
    """Something unusual in the source, and what was done about it."""

    BROKEN_IMAGE = "Image can't be read: page left out"
    MISSING_IMAGE = "Image is missing: page left out"
    ENDS_EARLY = "Image ends early: what there is of the page is kept"
    TRANSPARENT = "Image with transparent parts: laid on white"
    TURNED = "Image stored turned or mirrored: shown upright, as its EXIF orientation says"
    FURTHER_PAGES = "Image file with several pages: the first is kept"
    MISSING_BOXES = "Transcription file is missing: page kept without words"
    EMPTY_OCR = "No words in the transcription: page kept without words"
    BAD_BOX_LINE = "Line of the transcription is not 8 whole numbers and a text: line left out"
    CLIPPED_BOX = "Page with boxes that reach over its edge: boxes clipped"
    NOT_UTF8 = "File is not UTF-8: read as Latin-1"
    BAD_KEY_FILE = "Key file is missing or not a JSON object: receipt left out"
    NO_COMPANY = "No company, so no provider: receipt left out"
    MISSING_KEY = "Key is missing or empty: its question is left out"
    NO_FIELDS = "Document without fields to ask about: left out"
    UNKNOWN_FIELD = "Type of field that no question asks about: left out"
    SEVERAL_VALUES = "Field with several values on a page: its question is left out"
    SEVERAL_VENDORS = "Document that names several vendors: kept with the first"
    VENDOR_OF_CLUSTER = "Document without a vendor: kept with the only one of its layout cluster"
    CLUSTER_AS_PROVIDER = "Document without a vendor: its layout cluster is the provider"
    NO_VENDOR = "Document without vendor and layout cluster, so without provider: left out"
    OTHER_SHAPE = "Page whose sides have another ratio than its annotation states: left out"
    NON_ASCII = "Page with text beyond ASCII: kept as it is"
    ANSWER_NOT_IN_OCR = "Answer doesn't occur in the transcription: question kept"
    JOINED_SPELLINGS = "Provider with several spellings, joined under the commonest"
    ONE_DOCUMENT = "Provider with one document only: kept"
    ROW_WITHOUT_PROVIDER = "Training row that no provider lists: question left out"
    ROW_OF_TWO_PROVIDERS = "Row that two providers list, or whose page is another's: kept with the first"
    OTHER_PROVIDER = (
        "Page whose document or row names another provider elsewhere: kept with the one that is counted"
    )
    EMPTY_PROVIDER = "Provider without any usable row: left out of its client"
    NO_QUESTION_ID = "Question without an id, or with one used before: named after its file and row"
    UNKNOWN_PROVIDER = "Page outside training whose provider is not known: kept without provider"
    REPEATED_PAGE = "Page that an earlier file holds too: kept there only"
    MORE_ANSWERS = "Question with more answers than the one that the imdb layout holds: the first is written"


@dataclass
class Findings:
    """The findings by kind: how often they occurred, and the first few places."""

    counts: Counter[Finding] = field(default_factory=Counter)
    examples: dict[Finding, list[str]] = field(default_factory=dict)

    def note(self, finding: Finding, where: str) -> None:
        """Count a finding, and keep its place if it is one of the first."""
        self.counts[finding] += 1
        places = self.examples.setdefault(finding, [])
        if len(places) < EXAMPLES:
            places.append(where)


@dataclass
class SplitTally:
    """The counts of one split."""

    pages: int = 0
    questions: int = 0
    words: int = 0
    pages_by_provider: Counter[str] = field(default_factory=Counter)
    questions_by_provider: Counter[str] = field(default_factory=Counter)
    documents_by_provider: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    questions_by_key: Counter[str] = field(default_factory=Counter)

    @property
    def documents(self) -> set[str]:
        """The documents of all providers."""
        return set().union(*self.documents_by_provider.values())

    def add(self, page: Page, questions: list[Question]) -> None:
        """Count a page and its questions."""
        self.pages += 1
        self.questions += len(questions)
        self.words += len(page.words)
        self.documents_by_provider[page.provider].add(page.document)
        self.pages_by_provider[page.provider] += 1
        self.questions_by_provider[page.provider] += len(questions)
        self.questions_by_key.update(question.key for question in questions)

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """Count a split on disk."""
        tally, asked = cls(), questions_by_page(dataset)
        for name, page in dataset.pages.items():
            tally.add(page, asked[name])
        return tally


@dataclass(frozen=True)
class Part:
    """A row of the papers' Table A1: a client's training data, or the seen or unseen providers of another split."""

    name: str
    providers: int
    documents: int
    pages: int
    questions: int

    @classmethod
    def of(cls, name: str, tally: SplitTally, providers: Iterable[str]) -> Self:
        """Count these providers of a split."""
        some = [provider for provider in providers if provider in tally.pages_by_provider]
        return cls(
            name,
            providers=len(some),
            documents=len(set().union(*(tally.documents_by_provider[provider] for provider in some))),
            pages=sum(tally.pages_by_provider[provider] for provider in some),
            questions=sum(tally.questions_by_provider[provider] for provider in some),
        )


def questions_by_page(dataset: Dataset) -> defaultdict[str, list[Question]]:
    """Return the questions of each page of a split."""
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for question in dataset.questions:
        found[question.page].append(question)
    return found


@dataclass
class ImportSummary:
    """What a data set holds, by split, and what was found when it was made."""

    info: DatasetInfo
    splits: dict[str, SplitTally]
    findings: Findings = field(default_factory=Findings)

    @property
    def clients(self) -> dict[int, int]:
        """Client id -> number of its training providers."""
        return {client: len(providers) for client, providers in self.info.clients.items()}

    def seen_providers(self, split: str) -> int:
        """Return how many providers of the split also appear in training, that is, at a client."""
        training = self._at_clients()
        return sum(provider in training for provider in self.splits[split].pages_by_provider)

    def parts(self) -> list[Part]:
        """Return the counts of each client in training, and of the seen and unseen providers of the other splits."""
        training, parts = self._at_clients(), []
        for split, tally in self.splits.items():
            if split == "train":
                clients = sorted(self.info.clients.items())
                parts += [Part.of(f"client {client}", tally, providers) for client, providers in clients]
                continue
            for seen, name in ((True, "seen"), (False, "unseen")):
                some = [provider for provider in tally.pages_by_provider if (provider in training) == seen]
                parts.append(Part.of(f"{split}, {name} providers", tally, some))
        return parts

    def _at_clients(self) -> set[str]:
        return {provider for providers in self.info.clients.values() for provider in providers}
