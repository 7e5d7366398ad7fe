"""Markdown of organizers and participants, made safe to show to anyone, within limits of time and size.

The length of a text doesn't bound what it renders to: each row of a table is filled up to the width of its header,
and each use of a link repeats its address. So the number of cells and the characters that come out are limited too.
Nor does it bound the time to read it, so the steps of the parser are counted.
Formulas are found before the text is parsed (`ui.delimiters`), become MathML, and take what that has from the
same limit; one that takes too long to convert is the last that is converted.
What goes beyond a limit is shown as it was written or left out, and a notice says so.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from importlib.metadata import version
from itertools import islice
from typing import Any

import nh3
from django.core.cache import caches
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.footnote.index import render_footnote_anchor

from docvqa_site.ui import math
from docvqa_site.ui.budgets import unbroken
from docvqa_site.ui.delimiters import MARK, extract
from docvqa_site.ui.math import Drawn, Formulas

# No images: a picture from elsewhere would reveal to its owner who looks at a page, and when. There is a link instead.
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
TEXT_TAGS = HEADINGS | {"p", "br", "hr", "blockquote", "ul", "ol", "li"}
INLINE_TAGS = {"strong", "em", "s", "code", "pre", "a"}
TABLE_TAGS = {"table", "thead", "tbody", "tr", "th", "td"}
FOOTNOTE_TAGS = {"sup", "section"}
TAGS = TEXT_TAGS | INLINE_TAGS | TABLE_TAGS | FOOTNOTE_TAGS | math.TAGS
# Ids and targets can't be written in a text; those that are found come from the code that adapts it.
ATTRIBUTES = {
    "a": {"href", "id", "title", "target"},
    "li": {"id"},
    "ol": {"start"},
    "th": {"scope"},
    **{heading: {"id"} for heading in HEADINGS},
    **math.ATTRIBUTES,
}
CLASSES = math.CLASSES | {"section": {"footnotes"}}
MATH = "math"
# Below the headings of a page and of its sections.
TOP_HEADING = 3

MAX_CHARACTERS = 100_000
MAX_CELLS = 2_000
# How often a rule of the parser is tried. Some texts, such as quotes in quotes between lines without one, take a number
# that grows with the square of their length. A million take a second; 100,000 characters of documentation, 30,000.
MAX_STEPS = 1_000_000
# Of what is rendered, before characters such as < are escaped.
MAX_OUTPUT_CHARACTERS = 200_000
# What a tag takes beside its name and attributes, such as </> and a line break.
TAG_CHARACTERS = 5
# What a reference to a footnote takes, or the way back.
FOOTNOTE_CHARACTERS = 150
CACHED_SECONDS = 30 * 24 * 3600
# Of a text with a formula that was stopped, which may have been the machine's fault.
STOPPED_CACHED_SECONDS = 3600
# Shorter texts without formulas are rendered faster than they are looked up.
CACHED_CHARACTERS = 500
# What the rules of the parser find in their environment.
ALLOWANCE, DRAWN = "allowance", "drawn"
# An address in a text, without the punctuation that follows it in a sentence.
ADDRESS = re.compile(r"""(https?://[^\s<>"]*[^\s<>".,;:!?'’”*_~()\[\]{}])""")
# The number of a preprint.
PREPRINT = re.compile(r"\b([aA]r[xX]iv:[0-9]{4}\.[0-9]{4,5}(?:v[0-9]{1,2})?)\b")
# A mark of a formula in an address, where it is escaped.
ESCAPED_MARK = re.compile("%EF%B7%90([0-9]{1,6})%EF%B7%91")
LIBRARIES = ("markdown-it-py", "math-core", "mdit-py-plugins", "nh3")
# With a number that changes when the code below renders a text differently.
RENDERERS = " ".join(["4", *map(version, LIBRARIES)])


@dataclass
class Allowance:
    """What a document may still use; the cells of a notebook share one. `is_cut` says that a limit was reached."""

    characters: int = MAX_CHARACTERS
    cells: int = MAX_CELLS
    output: int = MAX_OUTPUT_CHARACTERS
    is_cut: bool = False
    steps: int = MAX_STEPS
    formulas: Formulas = field(default_factory=Formulas)
    # How many texts were rendered, for ids that differ.
    texts: int = 0


@dataclass(frozen=True)
class Prepared:
    """A text whose formulas are drawn: what Markdown reads, with a mark in place of each of them."""

    text: str
    drawn: list[Drawn]
    is_cut: bool

    def as_written(self, text: str, mark: re.Pattern[str] = MARK) -> str:
        """Return a part of the text as it was before its formulas were taken out."""
        return mark.sub(lambda found: self._source(int(found[1])) or found[0], text)

    def _source(self, number: int) -> str:
        return self.drawn[number].formula.source if number < len(self.drawn) else ""


class UnreadableError(Exception):
    """A text that takes too many steps to read."""


def render_markdown(text: str, top_heading: int = TOP_HEADING) -> SafeString:
    """Return `text` as sanitized HTML: CommonMark with tables, footnotes and math, without raw HTML, images or scripts.

    Its highest headings get the level `top_heading`. The same text is rendered once and cached.
    """
    # It changes with the versions of what renders the text.
    digest = hashlib.sha256(f"{RENDERERS} {text}".encode()).hexdigest()
    allowance = Allowance(formulas=Formulas(prefix=f"{digest[:8]}-"))
    if len(text) < CACHED_CHARACTERS and not {"$", "\\"} & set(text):
        return render_within(text, allowance, top_heading)
    key = f"markdown:{top_heading}:{digest}"
    html: str | None = caches["pages"].get(key)
    if html is None:
        html = render_within(text, allowance, top_heading)
        seconds = STOPPED_CACHED_SECONDS if allowance.formulas.is_stopped else CACHED_SECONDS
        caches["pages"].set(key, html, seconds)
    return mark_safe(html)  # noqa: S308  (what was cached is what render_within returned)


def render_within(text: str, allowance: Allowance, top_heading: int | None = None) -> SafeString:
    """Return `text` as sanitized HTML like `render_markdown`, and take what it uses from the allowance.

    Without `top_heading`, headings keep the levels that they were written with.
    """
    return render_prepared(prepare([text], allowance)[0], allowance, top_heading)


def prepare(texts: Iterable[str], allowance: Allowance) -> list[Prepared]:
    """Return the texts of one document with their formulas drawn, which share commands and numbers."""
    extracted = []
    for text in texts:
        part = extract(text[: allowance.characters])
        extracted.append(replace(part, is_cut=part.is_cut or len(text) > allowance.characters))
        allowance.characters -= min(len(text), allowance.characters)
    formulas = [formula for part in extracted for formula in part.formulas]
    drawn = iter(allowance.formulas.draw(formulas, allowance.output))
    return [Prepared(part.text, list(islice(drawn, len(part.formulas))), part.is_cut) for part in extracted]


def render_prepared(
    prepared: Prepared,
    allowance: Allowance,
    top_heading: int | None = None,
    adapt: Callable[[list[Token]], None] = lambda _: None,
) -> SafeString:
    """Return a text as sanitized HTML. `adapt` may change what was parsed, before it is rendered and sanitized."""
    already_cut, allowance.is_cut = allowance.is_cut, prepared.is_cut
    allowance.texts += 1
    name = f"{allowance.formulas.prefix}{allowance.texts}"
    environment = {ALLOWANCE: allowance, DRAWN: prepared, "docId": name}
    parsed = _parsed(prepared, environment)
    if top_heading:
        _move_headings(parsed, top_heading)
    adapt(parsed)
    tokens = list(_within(parsed, allowance))
    html = cleaned(_parser.renderer.render(tokens, _parser.options, environment))
    notice = _notice() if allowance.is_cut else ""
    allowance.is_cut = allowance.is_cut or already_cut
    return mark_safe(html + notice)  # noqa: S308  (nh3 has just cleaned it)


def _parsed(prepared: Prepared, environment: dict[str, Any]) -> list[Token]:
    """Return the tokens of the text; one with all of the text as it was written if it takes too many steps."""
    try:
        return _parser.parse(prepared.text, environment)
    except UnreadableError:
        environment[ALLOWANCE].is_cut = True
        return [Token("code_block", "code", 0, content=prepared.as_written(prepared.text))]


def cleaned(html: str) -> str:
    """Return the HTML without everything that a text may not have."""
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes={"http", "https", "mailto"},
        link_rel="nofollow noopener noreferrer",
    )


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table unless it would have too many cells together with the tables before it."""
    allowance: Allowance = state.env[ALLOWANCE]
    if not allowance.cells or not table(state, start, end, True):
        return False
    if silent:
        return True
    cells = _cells(state, start, end)
    if cells > allowance.cells:
        # No further table is looked for: each search reads all of the lines that follow.
        allowance.cells, allowance.is_cut = 0, True
        return False
    allowance.cells -= cells
    return table(state, start, end, False)


def _cells(state: StateBlock, start: int, end: int) -> int:
    """Return an upper bound of the cells of the table that begins at line `start`."""
    columns = state.src.count("|", state.bMarks[start], state.eMarks[start]) + 1
    rows = next((line for line in range(start, end) if state.isEmpty(line)), end) - start
    return columns * rows


def _within(tokens: Iterable[Token], allowance: Allowance) -> Iterator[Token]:
    """Yield the tokens up to the one that uses up the allowance; `nh3` closes the tags that this leaves open."""
    for token in tokens:
        if token.type == "text":
            token.content = unbroken(token.content)
        if token.children:
            token.children = list(_within(_images_as_links(token.children), allowance))
        else:
            allowance.output -= _length(token)
        if allowance.output < 0:
            allowance.output, allowance.is_cut = 0, True
            # What is left of a text that was cut is shown.
            if token.children:
                yield token
            return
        yield token


def _move_headings(tokens: list[Token], top: int) -> None:
    """Give the highest headings the level `top`, and those below them levels below that."""
    headings = [token for token in tokens if token.type in {"heading_open", "heading_close"}]
    highest = min((int(token.tag[1]) for token in headings), default=1)
    for token in headings:
        token.tag = f"h{min(6, int(token.tag[1]) - highest + top)}"


def _images_as_links(tokens: list[Token]) -> Iterator[Token]:
    """Yield the tokens with each image as a link to it, named by its text."""
    for token in tokens:
        if token.type != "image":
            yield token
            continue
        yield Token("link_open", "a", 1, attrs={"href": token.attrs.get("src", "")})
        yield Token("text", "", 0, content=f"Image: {token.content or token.attrs.get('src', '')}")
        yield Token("link_close", "a", -1)


def _length(token: Token) -> int:
    attributes = sum(len(name) + len(str(value)) for name, value in token.attrs.items())
    attributes += FOOTNOTE_CHARACTERS * token.type.startswith("footnote_")
    return (
        len(token.meta[MATH] if token.type == MATH else token.content)
        + len(token.tag)
        + attributes
        + TAG_CHARACTERS
    )


def _notice() -> SafeString:
    return format_html(
        '<p class="notice notice-info">This text is not shown in full or not formatted: it has more than {} '
        "characters, {} cells of tables or {} characters of output, or its markup is nested too much.</p>",
        f"{MAX_CHARACTERS:,}",
        f"{MAX_CELLS:,}",
        f"{MAX_OUTPUT_CHARACTERS:,}",
    )


def parser() -> MarkdownIt:
    """Return a parser of the site's Markdown: CommonMark with tables, footnotes and math, without raw HTML.

    It reads a `Prepared` text, which it finds in its environment under `DRAWN`.
    """
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    footnote_plugin(made, inline=False)
    made.core.ruler.before("footnote_tail", "footnotes_without_reference", _list_all_footnotes)
    made.core.ruler.push("formulas", _put_formulas)
    made.core.ruler.push("row_headings", _name_rows)
    made.core.ruler.push("preprints", _link_preprints)
    made.add_render_rule(MATH, lambda _, tokens, index, *__: tokens[index].meta[MATH])
    made.add_render_rule("footnote_anchor", _way_back)
    return made


def _list_all_footnotes(state: StateCore) -> None:
    """Have footnotes listed to which the text doesn't refer, which would disappear otherwise."""
    footnotes = state.env.get("footnotes", {"refs": {}})
    for name, number in footnotes["refs"].items():
        if number < 0:
            footnotes["refs"][name] = len(footnotes["list"])
            footnotes["list"][len(footnotes["list"])] = {"label": name[1:], "count": 0}


def _way_back(renderer: RendererProtocol, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Return the way back from a footnote, if something refers to it."""
    is_used = env["footnotes"]["list"][tokens[index].meta["id"]]["count"]
    return render_footnote_anchor(renderer, tokens, index, options, env) if is_used else ""


def _put_formulas(state: StateCore) -> None:
    """Put formulas in the place of their marks: drawn where there is text, as they were written elsewhere."""
    prepared: Prepared = state.env[DRAWN]
    for token in state.tokens:
        token.content, token.info = prepared.as_written(token.content), prepared.as_written(token.info)
        token.children = [part for child in token.children or [] for part in _parts(child, prepared)] or None


def _parts(token: Token, prepared: Prepared) -> Iterator[Token]:
    """Yield the text with its formulas as tokens of their own; any other token with its formulas as written."""
    if token.type != "text":
        token.content = prepared.as_written(token.content)
        for name, value in token.attrs.items():
            token.attrs[name] = prepared.as_written(prepared.as_written(str(value)), ESCAPED_MARK)
        yield token
        return
    # Every second part is the number of a formula.
    for index, part in enumerate(MARK.split(token.content)):
        if index % 2:
            drawn = prepared.drawn[int(part)]
            yield Token(MATH, "", 0, content=drawn.formula.tex, meta={MATH: drawn.html})
        elif part:
            yield Token("text", "", 0, content=part, level=token.level)


def _name_rows(state: StateCore) -> None:
    """Make the first cells of the rows headings in a table that has nothing above them, whose corner is no heading.

    In any other table, the first column may be one like the others, and not name what is in the row.
    """
    has_row_headings = False
    # A cell consists of its beginning, its content and its end.
    for at, row in enumerate(state.tokens):
        if row.type != "tr_open":
            continue
        opening, content, closing = state.tokens[at + 1 : at + 4]
        is_head = opening.type == "th_open"
        if is_head:
            has_row_headings = not content.children
        if has_row_headings and is_head:
            opening.tag = closing.tag = "td"
        elif has_row_headings and content.children:
            opening.tag = closing.tag = "th"
            opening.attrSet("scope", "row")


def _link_preprints(state: StateCore) -> None:
    """Make a link of the number of each preprint."""
    _link(state, PREPRINT, lambda number: f"https://arxiv.org/abs/{number.partition(':')[2]}")


def _link_addresses(state: StateCore) -> None:
    """Make links of the addresses that stand in a text as they are."""
    _link(state, ADDRESS, state.md.normalizeLink)


def _link(state: StateCore, pattern: re.Pattern[str], address_of: Callable[[str], str]) -> None:
    for token in state.tokens:
        if token.children:
            token.children = list(_linked(token.children, pattern, address_of))


def _linked(
    tokens: Sequence[Token], pattern: re.Pattern[str], address_of: Callable[[str], str]
) -> Iterator[Token]:
    """Yield the parts of a line, with links in place of what a pattern with one group finds outside of links."""
    depth = 0
    for token in tokens:
        depth += token.nesting if token.type in {"link_open", "link_close"} else 0
        if depth or token.type != "text":
            yield token
            continue
        # Every second part is what was found.
        for index, part in enumerate(pattern.split(token.content)):
            text = Token("text", "", 0, content=part, level=token.level)
            if index % 2:
                yield Token("link_open", "a", 1, attrs={"href": address_of(part)})
                yield text
                yield Token("link_close", "a", -1)
            elif part:
                yield text


def _bounded(rule: Callable[..., bool]) -> Callable[..., bool]:
    """Return the rule of a parser, which takes a step from the allowance of the text each time that it is tried."""

    @wraps(rule)
    def tried(state: StateBlock | StateInline, *arguments: Any) -> bool:
        allowance: Allowance = state.env[ALLOWANCE]
        allowance.steps -= 1
        if allowance.steps < 0:
            raise UnreadableError
        return rule(state, *arguments)

    return tried


_parser = parser()
_parser.core.ruler.push("addresses", _link_addresses)
_parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
for _ruler in (_parser.block.ruler, _parser.inline.ruler):
    for _rule in _ruler.__rules__:
        _ruler.at(_rule.name, _bounded(_rule.fn), {"alt": _rule.alt})
