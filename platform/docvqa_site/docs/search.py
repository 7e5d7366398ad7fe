"""Full-text search in memory, and that of the documentation: its sections, error codes, settings, checks and columns.

The documents come with the code and never change while it runs, so their index is built at the first search. Every
index is of SQLite's FTS5, whatever database the site has. See `docs/decisions/0028-search.md`.
"""

import re
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it.token import Token
from rapidfuzz import process
from rapidfuzz.distance import OSA

from docvqa_site.docs import library
from docvqa_site.docs.rendering import parsed, row_name

MOST_RESULTS = 30
MOST_CHARACTERS = 100
# What a row of these documents' tables is.
ENTRIES = {
    "errors": "Error code",
    "settings": "Setting of a run",
    "operations": "Setting of a site",
    "checks": "Check",
    "columns": "Column",
    "glossary": "Term",
}
# What the beginning of a document for one role is.
GUIDE = "Guide"
MARKS = ("", "yes")
# Around a word that was found; no text has them.
OPEN, CLOSE = "\x02", "\x03"
TABLE = """
CREATE VIRTUAL TABLE passages USING fts5(
    address UNINDEXED, kind UNINDEXED, heading, title, text, code, tokenize = "porter unicode61 remove_diacritics 2"
)"""
TERMS = "CREATE VIRTUAL TABLE terms USING fts5vocab(passages, row)"
# What is named by all of the text, or by it among other names, comes first, unless it is a column, whose name may be a
# word of the language. So does the guide for a role. Then comes what has all of the text as it is, if that is a phrase.
# Otherwise a word counts ten times as much in a heading as in a text, four times in the title of the document, and half
# as much in a block of code, which no excerpt shows. A term counts twice; a name in code, which may contain any word, a
# quarter.
QUERY = """
SELECT address, kind, heading, title, snippet(passages, 4, ?, ?, ' … ', 30)
FROM passages WHERE passages MATCH ?
ORDER BY kind <> 'Column' AND (
        instr(', ' || lower(heading) || ', ', ', ' || lower(?) || ', ')
        OR instr(', ' || heading || ', ', ', ' || ? || ', ')
        OR kind = 'Guide' AND instr(address, '/' || lower(?) || '/')
    ) DESC,
    ? <> '' AND instr(lower(text), ?) DESC,
    bm25(passages, 0, 0, 10, 4, 1, 0.5)
        * CASE WHEN kind LIKE 'Setting%' OR kind IN ('Column', 'Check') THEN 0.25 WHEN kind = 'Term' THEN 2 ELSE 1 END,
    rowid LIMIT ?
"""
# Most people can't type these letters.
LETTERS = {"ε": "epsilon", "δ": "delta", "σ": "sigma", "ρ": "rho", "λ": "lambda"}
SPELLINGS = {**LETTERS, **{name: letter for letter, name in LETTERS.items()}}
# A word with fewer letters isn't corrected: too many are as close.
FEWEST_LETTERS = 4
# A text with fewer words isn't compared as a phrase: too many passages have it.
FEWEST_WORDS = 3
# Words of questions, which a passage needn't have.
UNIMPORTANT = re.compile(
    r"(?:an?|and|are|be|by|can|could|do|does|for|from|how|i|if|in|is|its?|my|of|on|or|still|the|this|to|was|what|when|"
    r"where|which|who|why|will|with)\??",
    re.IGNORECASE,
)
# Letters that are missing, added, replaced or exchanged.
MOST_ERRORS = 2


@dataclass(frozen=True)
class Passage:
    """What can be found: a part of a document, or anything else with an address of its own.

    Attributes:
        kind: What it is, where it isn't a section.
        title: That of the document; of anything else, what belongs beside its heading.
        code: What its blocks of code contain, which is searched but never shown.
    """

    address: str
    kind: str
    heading: str
    title: str
    text: str
    code: str = ""


@dataclass(frozen=True)
class Found:
    """A passage with an excerpt, in which the words that were searched are marked."""

    address: str
    kind: str
    heading: str
    title: str
    excerpt: SafeString


class Index:
    """Passages that can be searched by several threads."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(":memory:", check_same_thread=False)
        self._connection.execute(TABLE)
        rows = ((one.address, one.kind, one.heading, one.title, one.text, one.code) for one in passages)
        self._connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", rows)

    def search(self, text: str, joined_by: str = "AND") -> list[Found]:
        """Return the passages with every word of a text but `UNIMPORTANT` ones; the last may be the beginning of one.

        Those that the text is the heading of come first, then the best.

        Args:
            joined_by: "OR" returns those with any of the words.
        """
        query = _query(text, joined_by)
        if not query:
            return []
        name = text.strip()
        phrase = name.lower() if len(text.split()) >= FEWEST_WORDS else ""
        with self._lock:
            rows = self._connection.execute(
                QUERY,
                (OPEN, CLOSE, query, name, _letter(name), name, phrase, phrase, MOST_RESULTS),
            ).fetchall()
        return [
            Found(address, kind, heading, title, _marked(excerpt))
            for address, kind, heading, title, excerpt in rows
        ]

    def terms(self) -> list[str]:
        """Return the words of all passages as they are compared: in lower case, without marks and endings."""
        with self._lock:
            self._connection.execute(TERMS)
            return [term for (term,) in self._connection.execute("SELECT term FROM terms")]


def search(text: str, joined_by: str = "AND") -> list[Found]:
    """Return the passages of the documentation that have every word of a text, or with "OR" any of them."""
    return _documents().search(text, joined_by)


def corrected(text: str) -> str:
    """Return a text with each word that the documentation doesn't have replaced by the closest one that it has.

    Where several are equally close, the most frequent is taken. Empty if there is nothing to replace.
    """
    words = text.lower().split()
    closest = [word if word in _vocabulary() or word in SPELLINGS else _closest(word) for word in words]
    return " ".join(closest) if closest != words else ""


def important(text: str) -> str:
    """Return a text without its `UNIMPORTANT` words, or as it is if it has no others."""
    return " ".join(word for word in text.split() if not UNIMPORTANT.fullmatch(word)) or text


def terms(text: str) -> list[str]:
    """Return the words of a text as an index compares them."""
    return Index([Passage("", "", "", "", important(text))]).terms()


def passages(name: str) -> Iterator[Passage]:
    """Yield the sections of a document, and the rows of its tables where each is about a name of its own."""
    title, kind = library.title(name), ENTRIES.get(name, "")
    here = reverse("docs:document", args=[library.address(name)])
    tokens = parsed(name)
    address, heading = here, title
    # A guide is found by the role that it is for, which it may call "you".
    role = name.removeprefix("roles/") if name.startswith("roles/") else ""
    kind_of_section = GUIDE if role else ""
    # What the list of documents says of it is found, too.
    text, code = [library.about(name)], [role]
    for at, token in enumerate(tokens):
        row = row_name(tokens, at) if kind else None
        if token.type == "heading_open" and token.tag != "h1":
            yield Passage(address, kind_of_section, heading, title, " ".join(text).strip(), " ".join(code))
            kind_of_section = ""
            address, heading = f"{here}#{token.attrGet('id')}", _words(tokens[at + 1])
            text, code = [], []
        elif row:
            cells = [_words(one) for one in _row(tokens, at) if one.type == "inline"]
            # People know a check by the name beside its id.
            named = f"{cells.pop(1)}, {row}" if kind == "Check" else row
            # Only the first row about a name has an id.
            place = f"{here}#{token.attrGet('id')}" if token.attrGet("id") else address
            # A mark in a column of its own says nothing outside the table.
            yield Passage(
                place, kind, named, title, " · ".join(cell for cell in cells[1:] if cell not in MARKS)
            )
        elif token.type in ("fence", "code_block"):
            code.append(_words(token))
        elif token.type == "inline":
            text.append(_words(token))
    yield Passage(address, kind_of_section, heading, title, " ".join(text).strip(), " ".join(code))


def _row(tokens: list[Token], at: int) -> list[Token]:
    end = next(number for number in range(at, len(tokens)) if tokens[number].type == "tr_close")
    return tokens[at:end]


def _words(token: Token) -> str:
    """Return the text of a token without its markup."""
    return "".join(child.content or " " for child in token.children) if token.children else token.content


def _query(text: str, joined_by: str) -> str:
    """Return a text as a query of FTS5, in which every word is quoted, so that none is an operator."""
    words = re.findall(r"[\w.\-/]+", important(text[:MOST_CHARACTERS]))
    words = [word for word in words if re.search(r"[^\W_]", word)]
    terms = [_term(word, "*" if word is words[-1] else "") for word in words]
    return f" {joined_by} ".join(terms)


def _term(word: str, suffix: str) -> str:
    other = SPELLINGS.get(word.lower())
    return f'("{word}"{suffix} OR "{other}")' if other else f'"{word}"{suffix}'


def _letter(text: str) -> str:
    """Return the Greek letter of a name, such as epsilon; any other text as it is."""
    return next((letter for letter, name in LETTERS.items() if name == text.lower()), text)


def _closest(word: str) -> str:
    if len(word) < FEWEST_LETTERS:
        return word
    found = process.extractOne(word, _vocabulary(), scorer=OSA.distance, score_cutoff=MOST_ERRORS)
    return found[0] if found else word


def _marked(excerpt: str) -> SafeString:
    marked = escape(excerpt).replace(OPEN, "<mark>").replace(CLOSE, "</mark>")
    return mark_safe(marked)  # noqa: S308  (escaped)


@cache
def _all_passages() -> tuple[Passage, ...]:
    return tuple(one for name in sorted(library.names()) for one in passages(name))


@cache
def _documents() -> Index:
    return Index(_all_passages())


@cache
def _vocabulary() -> dict[str, str]:
    """The words of the documentation, as they are written there but in lower case, the most frequent first."""
    counts = Counter[str]()
    for one in _all_passages():
        counts.update(re.findall(r"[^\W\d_][\w\-]*", f"{one.heading} {one.text} {one.code}".lower()))
    return {word: word for word, _ in counts.most_common()}
