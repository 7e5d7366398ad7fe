"""Documents as HTML: headings that can be linked to, math as MathML, and links that lead to pages of the site.

The documents come with the code, so no limits are needed; raw HTML is shown as text all the same.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from markdown_it.token import Token

from docvqa_site.docs import glossary, library
from docvqa_site.docs.library import slug_of
from docvqa_site.ui.budgets import unbroken
from docvqa_site.ui.commands import command_html
from docvqa_site.ui.front_matter import split_front_matter
from docvqa_site.ui.markdown import DRAWN, Allowance, Prepared, parser, prepare

TABLE_CODE_OR_HEADING = re.compile(
    r"<h([1-6])\b[^>]*>(?P<heading>.*?)</h\1>|<table(?: class=\"(?P<kind>table-stacked)\")?>|"
    r"<pre>(?P<output><code class=\"language-text\b)?",
    re.DOTALL,
)
TAG = re.compile(r"<[^>]*>")
REGION = '<div class="table-wrap" role="region" aria-label="Table {}{}" tabindex="0"><table class="table{}">'
# A command or code has a button that copies it; what it prints, which is marked as text, has none.
PRE = '<pre{} tabindex="0" role="group" aria-label="Code {}{}">'
# The languages of commands.
SHELLS = {"sh", "bash"}
# The address of a site in a command, for which the site's pages have their own.
ANY_SITE = "PFL_SITE=https://…"
# In a card of a name and its meaning, neither needs a label.
UNLABELED_COLUMNS = 2
# A value in code is none.
NUMBER = re.compile(r"[^A-Za-z`]*\d[^A-Za-z`]*")
FILE_NAME = re.compile(r"[\w./-]+\.\w+")
# By the names that documents have for them.
SITE_PAGES = {
    "API tokens": "accounts:tokens",
    "Calculator": "calculator:calculator",
    "Contact": "about:contact",
    "Data": "downloads:data",
    "Home": "home",
    "Run tokens": "submissions:tokens",
    "Sign up": "account_signup",
    "Team": "teams:mine",
}
# In the list of contents.
CONTENTS_LEVELS = {"h2", "h3"}


@dataclass(frozen=True)
class Heading:
    """A heading that the contents list: its level is `h2` or `h3`."""

    level: str
    slug: str
    text: str


@dataclass(frozen=True)
class Document:
    """A rendered document. `metadata` is the text of its front matter, if it has one."""

    name: str
    title: str
    summary: str
    html: SafeString
    headings: tuple[Heading, ...]
    metadata: str


@cache
def document(name: str) -> Document:
    """Return the document with this name, which is rendered once in a process."""
    metadata, text = split_front_matter(library.read(name))
    environment: dict[str, Any] = {
        DRAWN: prepare([text], Allowance(characters=len(text), output=len(text) * 100))[0]
    }
    tokens = _parser.parse(environment[DRAWN].text, environment)
    found = list(_numbered_headings(tokens))
    _name_rows(tokens)
    _lay_out_tables(tokens)
    _title_links(tokens, name)
    _link_pages(tokens)
    if not settings.SOURCE_URL:
        _unlink_code(tokens, name)
    if name == "glossary":
        _link_terms(tokens)
    for token in _all_tokens(tokens):
        _adapt(token, name)
    return Document(
        name=name,
        title=library.title(name),
        summary=_summary(tokens),
        html=mark_safe(wrap_tables(_parser.renderer.render(tokens, _parser.options, environment))),  # noqa: S308  (ours)
        headings=tuple(heading for heading in found if heading.level in CONTENTS_LEVELS),
        metadata=metadata,
    )


def parsed(name: str) -> list[Token]:
    """Return the tokens of a document, of which headings and rows have the ids that its page has.

    Its formulas are text, since to draw them takes most of the time of a page.
    """
    text = split_front_matter(library.read(name))[1]
    tokens = _parser.parse(text, {DRAWN: Prepared(text, [], is_cut=False)})
    list(_numbered_headings(tokens))
    _name_rows(tokens)
    _title_links(tokens, name)
    return tokens


def row_name(tokens: list[Token], at: int) -> str | None:
    """Return what a row of a table is about: the code or the bold term in its first cell; None where there is none.

    Several, such as two settings, are a name with commas. There is nothing else in the cell.
    """
    if tokens[at].type != "tr_open" or tokens[at + 1].type != "td_open":
        return None
    cell = tokens[at + 2].children or []
    codes = [child.content for child in cell if child.type == "code_inline"]
    between = {child.content for child in cell if child.type != "code_inline"}
    if codes and between <= {", "}:
        return ", ".join(codes)
    terms = [text.content for mark, text in pairwise(cell) if mark.type == "strong_open"]
    between = {child.content for child in cell if child.content not in terms}
    return ", ".join(terms) if terms and between <= {"", ", "} else None


def _name_rows(tokens: list[Token]) -> None:
    """Give the first row about each name an id, which links can lead to."""
    taken: set[str] = set()
    for at, token in enumerate(tokens):
        name = row_name(tokens, at)
        if name and name not in taken:
            taken.add(name)
            token.attrSet("id", f"row-{slug_of(name)}")


def _lay_out_tables(tokens: list[Token]) -> None:
    """Make the name of a row its head, and a table of sentences one whose rows are cards on a phone.

    A table with a column of numbers keeps its columns, which are for comparison.
    """
    opened = [at for at, token in enumerate(tokens) if token.type == "table_open"]
    closed = [at for at, token in enumerate(tokens) if token.type == "table_close"]
    for start, end in zip(opened, closed, strict=True):
        labels = [_text(tokens[at + 1]) for at in range(start, end) if tokens[at].type == "th_open"]
        cells = [at for at in range(start, end) if tokens[at].type == "td_open"]
        for at in range(start, end):
            if row_name(tokens, at):
                tokens[at + 1].tag = tokens[at + 3].tag = "th"
                tokens[at + 1].attrSet("scope", "row")
        columns = [cells[number :: len(labels)] for number in range(len(labels))]
        if any(all(NUMBER.fullmatch(tokens[at + 1].content) for at in column) for column in columns):
            continue
        tokens[start].attrSet("class", "table-stacked")
        if len(labels) <= UNLABELED_COLUMNS:
            continue
        for label, column in zip(labels, columns, strict=True):
            for at in column:
                if label and tokens[at].tag == "td" and tokens[at + 1].content:
                    tokens[at].attrSet("data-label", label)


def _text(token: Token) -> str:
    return "".join(child.content for child in token.children or [])


def _link_terms(tokens: list[Token]) -> None:
    """Make a link of each emphasized word that has an entry of its own."""
    for token in tokens:
        children = token.children or []
        for at, child in enumerate(children):
            row = glossary.row_of(children[at + 1].content) if child.type == "em_open" else None
            if row:
                child.tag = children[at + 2].tag = "a"
                child.attrSet("href", f"#row-{slug_of(row)}")


def _link_pages(tokens: list[Token]) -> None:
    """Make a link of each page of the site that is named as one, such as "the *Data* page"."""
    for token in tokens:
        children = token.children or []
        for at, child in enumerate(children):
            after = children[at + 3 : at + 4]
            if child.type != "em_open" or not (after and after[0].content.startswith(" page")):
                continue
            if view := SITE_PAGES.get(children[at + 1].content):
                child.tag = children[at + 2].tag = "a"
                child.attrSet("href", reverse(view))


def _unlink_code(tokens: list[Token], name: str) -> None:
    """Leave of each link to a file of the code its text, as code, where the site doesn't say where the code is."""
    for token in tokens:
        kept: list[Token] = []
        # Links don't nest.
        is_inside = False
        for child in token.children or []:
            if child.type == "link_open" and _is_code(str(child.attrGet("href")), name):
                is_inside = True
            elif child.type == "link_close" and is_inside:
                is_inside = False
            else:
                if is_inside and child.type == "text" and FILE_NAME.fullmatch(child.content):
                    child.type, child.tag = "code_inline", "code"
                kept.append(child)
        if token.children:
            token.children = kept


def _title_links(tokens: list[Token], name: str) -> None:
    """Put the title of a document in the place of its file name, where that is the text of a link to it."""
    for token in tokens:
        for link, text in pairwise(token.children or []):
            path = str(link.attrGet("href") or "").partition("#")[0]
            if path.endswith(".md") and text.content in (path, posixpath.basename(path)):
                target = _document_at(_resolved(path, name))
                text.content = library.title(target) if target else text.content


def _numbered_headings(tokens: list[Token]) -> Iterator[Heading]:
    """Give each heading an id, the second of the same text with `-1`, and yield them."""
    taken: dict[str, int] = {}
    for token, content in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = _text(content)
        slug = slug_of(text)
        taken[slug] = taken.get(slug, -1) + 1
        unique = f"{slug}-{taken[slug]}" if taken[slug] else slug
        token.attrSet("id", unique)
        yield Heading(token.tag, unique, text)


def _summary(tokens: list[Token]) -> str:
    """Return the first sentence of the first paragraph, as text."""
    for token, content in pairwise(tokens):
        if token.type == "paragraph_open":
            text = "".join(child.content or " " for child in content.children or [])
            return re.split(r"(?<=[.:]) ", text, maxsplit=1)[0].rstrip(":").removesuffix(".") + "."
    return ""


def _all_tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or []


def _adapt(token: Token, name: str) -> None:
    """Make a token fit for a page of the site."""
    if token.type == "text":
        token.content = unbroken(token.content)
    elif token.type == "fence":
        token.content = token.content.replace(ANY_SITE, f"PFL_SITE={settings.SITE_URL}")
    # The policy of the site's pages allows no style.
    if "text-align:right" in str(token.attrs.pop("style", "")):
        token.attrSet("class", "num")
    for attribute in ("href", "src"):
        if target := token.attrGet(attribute):
            token.attrSet(attribute, _target(str(target), name))


def _is_address(link: str) -> bool:
    return "://" in link or link.startswith(("#", "/", "mailto:"))


def _is_code(link: str, name: str) -> bool:
    """Return whether a link of the document leads to a file that isn't a document, nor belongs to one."""
    if _is_address(link):
        return False
    resolved = _resolved(link.partition("#")[0], name)
    is_file = resolved.startswith("docs/") and resolved.removeprefix("docs/") in library.files()
    return not is_file and _document_at(resolved) is None


def _target(link: str, name: str) -> str:
    """Return where a link of the document leads on the site; what isn't a document is in the source code."""
    if _is_address(link):
        return link
    path, mark, fragment = link.partition("#")
    resolved = _resolved(path, name)
    below = resolved.removeprefix("docs/")
    if resolved.startswith("docs/") and below in library.files():
        return reverse("docs:file", args=[below])
    if found := _document_at(resolved):
        return reverse("docs:document", args=[library.address(found)]) + mark + fragment
    return source_address(resolved) + mark + fragment


def _resolved(path: str, name: str) -> str:
    """Return the path of what a document links to, from the top of the repository."""
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), path))


def _document_at(resolved: str) -> str | None:
    """Return the name of the document at a path from the top of the repository; None where there is none."""
    below = resolved.removeprefix("docs/").removesuffix(".md")
    return library.name_at(below) if resolved.startswith("docs/") else None


def source_address(path: str) -> str:
    """Return the address of a file of the repository; the site has that of its source."""
    return f"{settings.SOURCE_URL.rstrip('/')}/blob/HEAD/{path}"


def wrap_tables(html: str) -> str:
    """Make each table a region, and each block of code a group, that scrolls by itself, and that its heading names.

    A keyboard reaches them all.
    """
    counts, heading = Counter[str](), ""

    def region(found: re.Match[str]) -> str:
        nonlocal heading
        if found["heading"] is not None:
            heading = ", " + unescape(TAG.sub("", found["heading"])).strip()
            return found[0]
        tag = found[0][: len("<pre>")]
        counts[tag] += 1
        if tag == "<pre>":
            output = SafeString(found["output"] or "")
            return format_html(PRE, SafeString("" if output else " data-copy"), counts[tag], heading) + output
        return format_html(REGION, counts[tag], heading, f" {found['kind']}" if found["kind"] else "")

    opened = TABLE_CODE_OR_HEADING.sub(region, html)
    return opened.replace("</table>", "</table></div>")


def _highlighted(content: str, language: str, _attributes: str) -> str:
    """Return a block of commands whose lines break between options; empty for any other block, which scrolls."""
    return command_html(content) if language in SHELLS else ""


_parser = parser()
_parser.options["highlight"] = _highlighted
# What is indented is a command, a few lines of settings apart.
_parser.add_render_rule(
    "code_block",
    lambda _, tokens, index, *__: f"<pre><code>{command_html(tokens[index].content)}</code></pre>\n",
)
