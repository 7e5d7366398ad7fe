"""What changed between two versions of a proof: their texts compared by lines, within limits of time and size."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum
from itertools import groupby
from operator import itemgetter

from docvqa_site.docs import library
from docvqa_site.proofs.models import Drawing, DrawingState
from docvqa_site.proofs.reading import decoded, is_pdf, read_proof
from docvqa_site.proofs.rendering import text_lines
from docvqa_site.ui.front_matter import split_front_matter
from docvqa_site.uploads.models import Upload
from evaluator.errors import ErrorCode, ProblemError

WORD = re.compile(r"\S+")
CONTEXT_LINES = 3
# Of each version.
MAX_LINES = 5_000
MAX_LINE_CHARACTERS = 5_000
MAX_SHOWN_LINES = 2_000
# Of equal lines, one in each version, among those that are compared: the time of difflib grows with them, and with the
# lines themselves. Texts beyond it are shown as wholly replaced.
MAX_PAIRS = 10_000
# Of all passages together: beyond it, no words are marked within lines.
MAX_WORDS = 4_000
# The part of the words that changed lines must have in common, to be read as one text that was edited.
SIMILAR = 0.5
# From so many lines on, difflib leaves out those that are more than a hundredth of them.
FREQUENT_FROM = 200


class Change(StrEnum):
    KEPT = "kept"
    REMOVED = "removed"
    ADDED = "added"


@dataclass(frozen=True)
class Part:
    text: str
    is_changed: bool


@dataclass(frozen=True)
class DiffLine:
    """One line, with its number in either version, from 1; None where it isn't in that version.

    `changed` are the places of its changed words, each from and up to which character; none where all of it is new.
    """

    change: Change
    text: str
    before: int | None
    after: int | None
    changed: Sequence[tuple[int, int]] = ()

    @property
    def parts(self) -> list[Part]:
        """The text, cut where changed words begin and end."""
        found, at = [], 0
        for start, stop in self.changed:
            found += [
                Part(self.text[at:start], is_changed=False),
                Part(self.text[start:stop], is_changed=True),
            ]
            at = stop
        return [part for part in [*found, Part(self.text[at:], is_changed=False)] if part.text]


@dataclass(frozen=True)
class Passage:
    """Lines that changed with those around them, after `skipped` lines that are the same in both versions."""

    skipped: int
    lines: Sequence[DiffLine]


@dataclass(frozen=True)
class Changes:
    """What changed. `is_cut` says that the texts, or their differences, are longer than what is shown."""

    passages: Sequence[Passage]
    removed: int
    added: int
    is_cut: bool = False


def changes_between(before: Upload, after: Upload) -> Changes:
    """Return what changed from one version to the other: of PDFs in the text of their pages, not in how they look.

    Raises:
        ProblemError: One of them has no text that can be compared, or not yet.
        FileNotFoundError: The store doesn't have a file.
    """
    return compare(_lines(before), _lines(after))


def changes_to_kit_proof(name: str, after: Upload) -> Changes:
    """Return what a Markdown proof changes in the document that is the kit's proof, below the front matter of both.

    Raises as `changes_between`.
    """
    texts = (library.read(name), decoded(read_proof(after), after.filename))
    before, changed = (library.COMMENT.sub("", split_front_matter(text)[1]).strip() for text in texts)
    return compare(before.splitlines(), changed.splitlines())


def compare(before: Sequence[str], after: Sequence[str]) -> Changes:
    """Return what changed from one list of lines to the other."""
    is_cut = max(len(before), len(after)) > MAX_LINES
    before, after = before[:MAX_LINES], after[:MAX_LINES]
    blocks = _blocks(before, after)
    changed = [block for block in blocks if block[0] != "equal"]
    removed = sum(stop - start for _, start, stop, _, _ in changed)
    added = sum(stop - start for _, _, _, start, stop in changed)
    passages = list(_with_words(_passages(before, after, blocks)))
    shown = sum(line.change is not Change.KEPT for passage in passages for line in passage.lines)
    return Changes(passages, removed, added, is_cut or shown < removed + added)


# As difflib has them: what happened, and the lines of either side from and up to which.
Block = tuple[str, int, int, int, int]


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """Return blocks of equal and of changed lines. What both begin and end with is compared first, line by line."""
    shorter = min(len(before), len(after))
    head = next((index for index in range(shorter) if before[index] != after[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if before[-1 - index] != after[-1 - index]), rest)
    middle_before, middle_after = before[head : len(before) - tail], after[head : len(after) - tail]
    found: list[Block] = [("equal", 0, head, 0, head)] if head else []
    found += [
        (kind, head + start, head + stop, head + start_after, head + stop_after)
        for kind, start, stop, start_after, stop_after in _compared(middle_before, middle_after)
    ]
    if tail:
        found.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return found


def _compared(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    if not before and not after:
        return []
    if _pairs(before, after) > MAX_PAIRS:
        return [("replace", 0, len(before), 0, len(after))]
    return list(SequenceMatcher(None, before, after).get_opcodes())


def _pairs(before: Sequence[str], after: Sequence[str]) -> int:
    """Return how many pairs of equal lines difflib would look at."""
    counts = Counter(after)
    if len(after) >= FREQUENT_FROM:
        counts = Counter({line: count for line, count in counts.items() if count <= len(after) // 100 + 1})
    return sum(counts[line] for line in before)


def _passages(before: Sequence[str], after: Sequence[str], blocks: Sequence[Block]) -> Iterator[Passage]:
    """Yield the changed lines with those around them, up to the limit."""
    shown, seen = 0, 0
    for group in _grouped(blocks):
        lines = [line for block in group for line in _block_lines(before, after, block)]
        lines = lines[: MAX_SHOWN_LINES - shown]
        if not lines:
            return
        yield Passage(group[0][1] - seen, lines)
        shown, seen = shown + len(lines), group[-1][2]


def _grouped(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Yield the changed blocks that are near each other together, with the first lines of what is equal around them."""
    group: list[Block] = []
    for index, block in enumerate(blocks):
        kind, start, stop, start_after, stop_after = block
        head = CONTEXT_LINES if index else 0
        tail = CONTEXT_LINES if index + 1 < len(blocks) else 0
        # To leave one line out takes as much room as to show it.
        if kind != "equal" or stop - start <= head + tail + 1:
            group.append(block)
            continue
        if group:
            yield [*group, (kind, start, start + head, start_after, start_after + head)]
        group = [(kind, stop - tail, stop, stop_after - tail, stop_after)] if tail else []
    if any(block[0] != "equal" for block in group):
        yield group


def _block_lines(before: Sequence[str], after: Sequence[str], block: Block) -> Iterator[DiffLine]:
    kind, start, stop, start_after, stop_after = block
    if kind == "equal":
        for offset in range(stop - start):
            yield DiffLine(
                Change.KEPT, _short(before[start + offset]), start + offset + 1, start_after + offset + 1
            )
        return
    for index in range(start, stop):
        yield DiffLine(Change.REMOVED, _short(before[index]), index + 1, None)
    for index in range(start_after, stop_after):
        yield DiffLine(Change.ADDED, _short(after[index]), None, index + 1)


def _with_words(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Yield the passages with the changed words of their lines, as far as the limits allow."""
    words, pairs = MAX_WORDS, MAX_PAIRS
    for passage in passages:
        lines: list[DiffLine] = []
        for is_kept, run in groupby(passage.lines, lambda line: line.change is Change.KEPT):
            changed = list(run)
            if not is_kept:
                before, after = (
                    _words(line for line in changed if line.change is change)
                    for change in (Change.REMOVED, Change.ADDED)
                )
                texts = [word for _, _, word in before], [word for _, _, word in after]
                taken, compared = len(before) + len(after), _pairs(*texts)
                if before and after and taken <= words and compared <= pairs:
                    words, pairs = words - taken, pairs - compared
                    changed = _marked(changed, before, after, SequenceMatcher(None, *texts))
            lines += changed
        yield replace(passage, lines=lines)


Word = tuple[DiffLine, tuple[int, int], str]


def _words(lines: Iterable[DiffLine]) -> list[Word]:
    """Return the words of lines, each with its line and its place in it. Where lines end plays no part."""
    return [(line, word.span(), word.group()) for line in lines for word in WORD.finditer(line.text)]


def _marked(
    lines: list[DiffLine], before: Sequence[Word], after: Sequence[Word], found: SequenceMatcher[str]
) -> list[DiffLine]:
    """Return the lines with their changed words; without, where these are the greater part."""
    if found.ratio() < SIMILAR:
        return lines
    places: dict[DiffLine, list[tuple[int, int]]] = {}
    for kind, *sides in found.get_opcodes():
        if kind == "equal":
            continue
        for words in (before[slice(*sides[:2])], after[slice(*sides[2:])]):
            for line, same in groupby(words, itemgetter(0)):
                spans = [span for _, span, _ in same]
                places.setdefault(line, []).append((spans[0][0], spans[-1][1]))
    return [replace(line, changed=tuple(places.get(line, ()))) for line in lines]


def _short(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARACTERS else line[:MAX_LINE_CHARACTERS] + "…"


def _lines(upload: Upload) -> list[str]:
    return _page_lines(upload) if is_pdf(upload) else text_lines(read_proof(upload), upload.filename)


def _page_lines(upload: Upload) -> list[str]:
    """Return the lines of a PDF's text. Where a page ends plays no part: a longer first page moves all others."""
    drawing = Drawing.objects.filter(upload=upload).prefetch_related("pages").first()
    if drawing is None or drawing.state != DrawingState.READY:
        raise ProblemError.of(
            ErrorCode.PROOF_PAGES,
            message="The text of this PDF isn't known.",
            where=upload.filename,
            next_step="Load this page again once the pages of both versions are shown, or compare the files yourself.",
        )
    return [line for page in drawing.pages.all() for line in page.text.splitlines()]
