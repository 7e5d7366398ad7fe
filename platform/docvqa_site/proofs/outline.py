"""Headings and links of a proof: headings that can be linked to, and links that lead nowhere shown as such.

A proof is one file. A link of it to another file of its author's leads nowhere here, and would otherwise lead to a page
of the site.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import unescape
from itertools import pairwise
from urllib.parse import urlsplit

from django.utils.html import escape, format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString, mark_safe
from markdown_it.token import Token

from docvqa_site.docs.library import slug_of
from docvqa_site.ui.markdown import MATH, cleaned

# The page has one above them.
LEVELS_BELOW_PAGE = 1
LOWEST_LEVEL = 6
# In the list of contents.
MAX_LISTED = 200
MAX_KEPT = 1_000
MIN_LISTED = 3
LISTED_LEVELS = 4
MAX_SLUG_CHARACTERS = 80
# Before each id, so that none is one of the page's own.
PREFIX = "proof-"
SCHEMES = {"http", "https", "mailto"}


@dataclass(frozen=True)
class Heading:
    """A heading of the proof: its level on the page, its id and its text."""

    level: int
    anchor: str
    html: SafeString


@dataclass(frozen=True)
class Section:
    """A section of a proof: the id that leads to it, and its title as text."""

    anchor: str
    title: str


@dataclass
class Outline:
    """The headings of one proof, in their order; the cells of a notebook share one."""

    headings: list[Heading] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=dict)

    def adapt(self, tokens: list[Token], show_picture: Callable[[str, str], str | None]) -> None:
        """Number the headings, lower them below that of the page, and make links fit for the page.

        `show_picture` is called with the address and the description of a picture, and returns what is in its place;
        None for a link to it.
        """
        for token, content in pairwise(tokens):
            if token.type == "heading_open":
                self._add(token, content)
            elif token.type == "heading_close":
                token.tag = _lowered(token.tag)
        for token in tokens:
            if token.children:
                token.children = list(_with_links(token.children, show_picture))

    def sections(self) -> list[Section]:
        """Return the sections, as other pages link to them."""
        return [Section(one.anchor, unescape(strip_tags(one.html))) for one in self.headings]

    def as_html(self) -> SafeString:
        """Return the contents, folded, so that the text begins in sight; empty for a proof with few headings."""
        listed = [heading for heading in self.headings if heading.level <= LISTED_LEVELS][:MAX_LISTED]
        if len(listed) < MIN_LISTED:
            return SafeString("")
        entries = ((heading.level, heading.anchor, heading.html) for heading in listed)
        return format_html(
            '<details class="proof-contents"><summary>Contents</summary>'
            '<nav aria-label="Contents of the proof"><ul>{}</ul></nav></details>',
            format_html_join("", '<li class="level-{}"><a href="#{}">{}</a></li>', entries),
        )

    def _add(self, token: Token, content: Token) -> None:
        children = content.children or []
        slug = slug_of("".join(child.content for child in children))[:MAX_SLUG_CHARACTERS]
        self._taken[slug] = self._taken.get(slug, -1) + 1
        anchor = PREFIX + (f"{slug}-{self._taken[slug]}" if self._taken[slug] else slug)
        token.tag = _lowered(token.tag)
        token.attrSet("id", anchor)
        if len(self.headings) >= MAX_KEPT:
            return
        html = cleaned("".join(map(_as_text, children)))
        self.headings.append(Heading(int(token.tag[1]), anchor, mark_safe(html)))  # noqa: S308  (just cleaned)


def _as_text(token: Token) -> str:
    """Return a part of a heading for the list of contents: its text, and its formulas as MathML."""
    return token.meta[MATH] if token.type == MATH else escape(token.content)


def _lowered(tag: str) -> str:
    return f"h{min(LOWEST_LEVEL, int(tag[1]) + LEVELS_BELOW_PAGE)}"


def _with_links(tokens: list[Token], show_picture: Callable[[str, str], str | None]) -> Iterator[Token]:
    """Yield the tokens with each link leading to where it can lead, or its target as text."""
    dead: str | None = None
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrs.get("href", ""))
            if target.startswith("#"):
                token.attrSet("href", f"#{PREFIX}{target[1:]}")
            elif leads_out(target):
                # The proof may be in a frame, in which other sites don't show themselves.
                token.attrSet("target", "_blank")
            else:
                dead = target
                continue
        elif token.type == "link_close" and dead is not None:
            yield _text(f" ({dead}, not part of the proof)")
            dead = None
            continue
        elif token.type == "image":
            shown = show_picture(str(token.attrs.get("src", "")), token.content)
            yield token if shown is None else _text(shown)
            continue
        yield token


def leads_out(target: str) -> bool:
    """Return whether this is the address of something on another site."""
    try:
        return urlsplit(target).scheme.lower() in SCHEMES
    except ValueError:
        return False


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
