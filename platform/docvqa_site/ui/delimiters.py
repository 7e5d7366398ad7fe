r"""Where the formulas of a Markdown text are, found before Markdown reads it, as Jupyter does.

A formula is between `$`, `$$`, `\( \)` or `\[ \]`, a bare environment such as `align`, or a reference such as
`\eqref{a}`. Markdown would take its backslashes, asterisks and bars for its own. Each formula is replaced by a mark
that is one word for Markdown, and that no text can contain otherwise. What is code stays code.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

# Two characters that Unicode reserves for programs; those of a text are replaced.
MARK = re.compile("\ufdd0([0-9]+)\ufdd1")
RESERVED = re.compile("[\ufdd0-\ufdef]")
# A longer formula isn't looked for.
MAX_CHARACTERS = 20_000
# Pieces of formulas that are looked at in one text, in half a second: braces without an end would take hours.
MAX_STEPS = 500_000

OPENING = re.compile(
    r"(?P<reference>\\(?:eq)?ref\{[^{}\n]{1,200}\})|\\begin\{(?P<environment>[A-Za-z]{1,30}\*?)\}"
    r"|(?P<delimiter>\\\\?[(\[]|\$\$|\$)|\\.",
    re.DOTALL,
)
# Markers of lists and quotes, which what follows is inside of.
CONTAINER = r"(?:[ \t]*(?:>|(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t])))*+[ \t]*+"
FENCE = re.compile(CONTAINER + r"(`{3,}|~{3,})")
LIST_ITEM = re.compile(r"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])[ \t]")
QUOTE = re.compile(r"[ \t]*>[ >]*")
BLANK = re.compile(r"\n[ \t>]*(?=\n|\Z)")
TEX = re.compile(r"[\\^_{]")
WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z]+(?:[A-Za-z][^A-Za-z]+)*+[A-Za-z]{2,}")
# What a reference to the literature looks like, whose brackets somebody has escaped.
CITATION = re.compile(r"[\w\s,.;:–-]*")


@dataclass(frozen=True)
class Formula:
    """A formula: as it was written, its TeX without delimiters, and whether it has a line of its own."""

    source: str
    tex: str
    is_display: bool


@dataclass(frozen=True)
class Delimiter:
    """What ends a formula that begins with this delimiter, and what can't be inside of it."""

    closing: str
    stop: str
    is_display: bool = False


# No formula in a line goes beyond its paragraph, its row of a table, or a heading.
PARAGRAPH = r"\n[ \t>]*(?:\n|[|#])"
SECTION = r"\n[ \t>]*#{1,6}[ ]"
DELIMITERS = {
    "$": Delimiter(r"\$(?!\$)", PARAGRAPH + r"|\$\$"),
    "\\(": Delimiter(r"\\\)", PARAGRAPH),
    "\\\\(": Delimiter(r"\\\\\)", PARAGRAPH),
    "$$": Delimiter(r"\$\$", SECTION, is_display=True),
    "\\[": Delimiter(r"\\\]", SECTION, is_display=True),
    "\\\\[": Delimiter(r"\\\\\]", SECTION, is_display=True),
}
CLOSINGS = {
    opening: re.compile(rf"(?P<closing>{rule.closing})|(?P<stop>{rule.stop})|\\.|[{{}}]", re.DOTALL)
    for opening, rule in DELIMITERS.items()
}


@dataclass(frozen=True)
class Extracted:
    """A text with a mark in place of each formula. `is_cut` says that not all of it was searched."""

    text: str
    formulas: list[Formula]
    is_cut: bool


def extract(text: str) -> Extracted:
    """Return the text with its formulas replaced by marks, which `MARK` finds, and the formulas in their order."""
    scan = _Scan(RESERVED.sub("\ufffd", text))
    pieces: list[str] = []
    formulas: list[Formula] = []
    copied = 0
    for start, end, formula in scan.found():
        pieces += [scan.text[copied:start], f"\ufdd0{len(formulas)}\ufdd1"]
        formulas.append(formula)
        copied = end
    return Extracted("".join([*pieces, scan.text[copied:]]), formulas, scan.steps >= MAX_STEPS)


class _Scan:
    """One pass over a text; `steps` counts what it has looked at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = 0
        self.blocks = list(_code_blocks(text))
        self.code = sorted([*self.blocks, *_code_spans(text, self.blocks)])

    def found(self) -> Iterator[tuple[int, int, Formula]]:
        """Yield where each formula begins and ends, and the formula."""
        position = 0
        while self.steps < MAX_STEPS and (opened := OPENING.search(self.text, position)):
            self.steps += 1
            position = opened.end()
            if code := _at(self.code, opened.start()):
                position = code[1]
            elif formula := self._formula(opened):
                position = opened.start() + len(formula.source)
                yield opened.start(), position, formula

    def _formula(self, opened: re.Match[str]) -> Formula | None:
        if opened["reference"]:
            return Formula(opened[0], opened[0], is_display=False)
        if opened["environment"]:
            return self._environment(opened)
        return self._delimited(opened) if opened["delimiter"] else None

    def _environment(self, opened: re.Match[str]) -> Formula | None:
        name = re.escape(opened["environment"])
        ends = re.compile(rf"(?P<begin>\\begin\{{{name}\}})|(?P<end>\\end\{{{name}\}})|\\.", re.DOTALL)
        depth = 1
        for found in self._tokens(ends, opened.end()):
            depth += bool(found["begin"]) - bool(found["end"])
            if not depth:
                source = self.text[opened.start() : found.end()]
                return Formula(source, self._unquoted(source, opened.start()), is_display=True)
        return None

    def _delimited(self, opened: re.Match[str]) -> Formula | None:
        delimiter = DELIMITERS[opened[0]]
        closed = self._closing(opened, delimiter)
        if closed is None:
            return None
        tex = self.text[opened.end() : closed.start()]
        if not tex.strip() or not self._is_meant(opened, tex, closed.end()):
            return None
        source = self.text[opened.start() : closed.end()]
        return Formula(source, self._unquoted(tex, opened.start()).strip(), delimiter.is_display)

    def _closing(self, opened: re.Match[str], delimiter: Delimiter) -> re.Match[str] | None:
        """Return the first delimiter that ends the formula outside of braces; the first at all if they don't end."""
        depth, first = 0, None
        for found in self._tokens(CLOSINGS[opened[0]], opened.end()):
            if found["stop"] or (not delimiter.is_display and _at(self.code, found.start())):
                return first
            if found["closing"]:
                if depth <= 0:
                    return found
                first = first or found
            depth += {"{": 1, "}": -1}.get(found[0], 0)
        return first

    def _tokens(self, pattern: re.Pattern[str], start: int) -> Iterator[re.Match[str]]:
        """Yield matches up to the next block of code, within the limits."""
        next_block = bisect_right(self.blocks, start, key=itemgetter(0))
        end = self.blocks[next_block][0] if next_block < len(self.blocks) else len(self.text)
        for found in pattern.finditer(self.text, start, min(end, start + MAX_CHARACTERS)):
            self.steps += 1
            if self.steps >= MAX_STEPS:
                return
            yield found

    def _is_meant(self, opened: re.Match[str], tex: str, end: int) -> bool:
        """Return whether this is a formula, and neither amounts of money nor an escaped bracket."""
        if opened[0] in {"\\[", "\\\\["}:
            line = self.text.rfind("\n", 0, opened.start()) + 1
            return not CITATION.fullmatch(tex) or not self.text[line : opened.start()].strip(" \t>")
        if opened[0] != "$" or "\\" in tex:
            return True
        is_lopsided = tex[0].isspace() != tex[-1].isspace() and len(tex.strip()) > 1
        if TEX.search(tex):
            return not is_lopsided
        return not (is_lopsided or WORDS.search(tex) or self.text[end : end + 1].isdigit())

    def _unquoted(self, source: str, start: int) -> str:
        """Return a formula without the marks of the quote that it is in."""
        line = self.text.rfind("\n", 0, start) + 1
        quoted = QUOTE.match(self.text, line, start)
        if not quoted or "\n" not in source:
            return source
        depth = quoted[0].count(">")
        return re.sub(rf"\n(?:[ \t]*>){{1,{depth}}}", "\n", source)


def _at(regions: list[tuple[int, int]], position: int) -> tuple[int, int] | None:
    """Return the region that the position is in."""
    index = bisect_right(regions, position, key=itemgetter(0)) - 1
    return regions[index] if index >= 0 and position < regions[index][1] else None


def _code_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each block of code begins and ends: between fences, or indented after a blank line."""
    fence, begun, offset = "", 0, 0
    is_after_blank, is_in_list = True, False
    for line in text.split("\n"):
        end = offset + len(line) + 1
        if fence:
            if line.strip(" \t>").startswith(fence) and not line.strip(" \t>" + fence[0]):
                yield begun, end
                fence = ""
        elif opened := FENCE.match(line):
            fence, begun = opened[1], offset
        elif line.startswith(("    ", "\t")) and line.strip() and is_after_blank and not is_in_list:
            yield offset, end
            offset = end
            continue
        if LIST_ITEM.match(line):
            is_in_list = True
        elif is_after_blank and line[:1].strip():
            is_in_list = False
        is_after_blank = not line.strip()
        offset = end
    if fence:
        yield begun, len(text)


def _code_spans(text: str, blocks: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield where each code in a line begins and ends, by runs of as many backticks in one paragraph."""
    runs = [run for run in re.finditer(r"\\.|`+", text, re.DOTALL) if not _at(blocks, run.start())]
    runs = [run for run in runs if run[0][0] == "`"]
    starts: dict[int, list[int]] = {}
    for run in runs:
        starts.setdefault(len(run[0]), []).append(run.start())
    breaks = [found.start() for found in BLANK.finditer(text)]
    position = 0
    for run in runs:
        if run.start() < position:
            continue
        alike = starts[len(run[0])]
        following = bisect_right(alike, run.start())
        paragraph = bisect_right(breaks, run.start())
        limit = breaks[paragraph] if paragraph < len(breaks) else len(text)
        if following < len(alike) and alike[following] < limit:
            position = alike[following] + len(run[0])
            yield run.start(), position
