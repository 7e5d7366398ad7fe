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
from docvqa_site.docs.library import Audience
from docvqa_site.docs.rendering import parsed, row_name

MOST_RESULTS = 30
MOST_CHARACTERS = 100
TERM = "Term"
# What a row of these documents' tables is.
ENTRIES = {
    "errors": "Error code",
    "settings": "Setting of a run",
    "operations": "Setting of a site",
    "checks": "Check",
    "columns": "Column",
    "glossary": TERM,
}
# Questions that a document answers as a whole, or one of its sections, in lower case.
QUESTIONS = {
    "forging": ("what could be false", "can a record be forged", "can results be forged"),
    "competition-tables": ("state of the art", "sota", "published results", "earlier results"),
    "leaderboards#how-certain-a-rank-is": (
        "confidence interval",
        "confidence intervals",
        "could be",
        "significant",
    ),
    "privacy#what-ε-means-in-numbers": ("epsilon", "ε"),
}
# What the beginning of a document for one role is.
GUIDE = "Guide"
# What is below this heading in a document for others.
FOR_OPERATORS = "For organizers"
# What has a name in code, which may contain any word.
NAMES_IN_CODE = {*ENTRIES.values()} - {TERM}
NAME_IN_CODE_WEIGHT = 0.25
# How much a passage counts if its text alone has the words, and if its heading and title have them all. What operators
# and developers read mentions what everything else is about.
WEIGHTS = {
    Audience.VISITORS: (1.0, 1.0),
    Audience.PARTICIPANTS: (0.8, 1.0),
    Audience.OPERATORS: (0.25, 0.4),
    Audience.DEVELOPERS: (0.25, 0.4),
}
TERM_WEIGHT = 2.0
MARKS = ("", "yes")
# Around a word that was found; no text has them.
OPEN, CLOSE = "\x02", "\x03"
TABLE = """
CREATE VIRTUAL TABLE passages USING fts5(
    address UNINDEXED, kind UNINDEXED, heading, title, text, code,
    names UNINDEXED, weight UNINDEXED, named_weight UNINDEXED, is_for_readers UNINDEXED,
    tokenize = "porter unicode61 remove_diacritics 2"
)"""
TERMS = "CREATE VIRTUAL TABLE terms USING fts5vocab(passages, row)"
# The guide for a role that the text names comes first, then what is named by all of it, or by it among other names,
# in the singular or the plural, unless it is a column, whose name may be a word of the language, or a section for
# operators or developers while something for others is named so. Then comes what has all of the text as it is, if that
# is a phrase. Otherwise a word counts ten times as much in a heading as in a text, four times in the title of the
# document, and half as much in a block of code, which no excerpt shows; and what they are in counts as much as its
# weights say.
NAMED = """(kind <> 'Column' AND (
        instr(names, ', ' || :name || ', ')
        OR instr(names, ', ' || :subject || ', ')
        OR instr(names, ', ' || :letter || ', ')
    ))"""
QUERY = """
SELECT address, kind, heading, title, snippet(passages, 4, :open, :close, ' … ', 30)
FROM passages WHERE passages MATCH :query
ORDER BY kind = 'Guide' AND instr(address, '/' || :subject || '/') DESC,
    IS_NAMED AND (is_for_readers OR heading = title OR NOT EXISTS (
        SELECT 1 FROM passages WHERE passages MATCH :query AND is_for_readers AND IS_NAMED
    )) DESC,
    :phrase <> '' AND instr(lower(text), :phrase) DESC,
    bm25(passages, 0, 0, 10, 4, 1, 0.5) * CASE
        WHEN rowid IN (SELECT rowid FROM passages WHERE passages MATCH '{heading title} : (' || :query || ')')
        THEN named_weight ELSE weight END,
    rowid LIMIT :most
""".replace("IS_NAMED", NAMED)
# Most people can't type these letters.
LETTERS = {"ε": "epsilon", "δ": "delta", "σ": "sigma", "ρ": "rho", "λ": "lambda"}
LETTER_NAMES = {name: letter for letter, name in LETTERS.items()}
SPELLINGS = {**LETTERS, **LETTER_NAMES}
# A word with fewer letters isn't corrected: too many are as close.
FEWEST_LETTERS = 4
# A text with fewer words isn't compared as a phrase: too many passages have it.
FEWEST_WORDS = 3
# Each part of a word that may be written as two has as many letters.
FEWEST_LETTERS_OF_A_PART = 3
# Words of questions, which a passage needn't have.
UNIMPORTANT = re.compile(
    r"(?:about|an?|and|any|are|as|at|be|been|by|can|could|did|do|does|far|for|from|get|had|has|have|how|i|if|in|into|is|"
    r"its?|many|may|me|much|must|my|need|of|on|or|our|please|should|so|still|than|that|the|their|there|these|they|this|"
    r"to|us|was|we|were|what|when|where|whether|which|who|whose|why|will|with|would|you|your)[?!.,]*",
    re.IGNORECASE,
)
PLURAL = re.compile(r"(?<=\w\w[^\Ws])s\b")
PUNCTUATION = " ?!.,;:\"“”'"
# Letters that are missing, added, replaced or exchanged.
MOST_ERRORS = 2


@dataclass(frozen=True)
class Passage:
    """What can be found: a part of a document, or anything else with an address of its own.

    Attributes:
        kind: What it is, where it isn't a section.
        title: That of the document; of anything else, what belongs beside its heading.
        code: What is searched but never shown: what its blocks of code contain, and what people ask that it answers.
        audience: For whom it is written.
        questions: What people ask that it answers, as they type it.
    """

    address: str
    kind: str
    heading: str
    title: str
    text: str
    code: str = ""
    audience: Audience = Audience.VISITORS
    questions: tuple[str, ...] = ()

    @property
    def is_for_readers(self) -> bool:
        """Whether it is for whoever reads or takes part, and not for those who run or develop the site."""
        return self.audience in {Audience.VISITORS, Audience.PARTICIPANTS}

    @property
    def weights(self) -> tuple[float, float]:
        """How much it counts if its text alone has the words, and if its heading and title have them all."""
        mentioned, named = WEIGHTS[self.audience]
        if self.kind in NAMES_IN_CODE:
            return NAME_IN_CODE_WEIGHT * mentioned, NAME_IN_CODE_WEIGHT * named
        return mentioned, TERM_WEIGHT if self.kind == TERM else named

    @property
    def names(self) -> str:
        """What it is called, as it is and as `_subject` returns it, each between commas. An entry may have several."""
        heading = self.heading if self.kind in ENTRIES.values() else self.heading.replace(",", "")
        return f", {', '.join([heading.lower(), _subject(heading), *self.questions])}, "


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
        rows = (
            (
                *(one.address, one.kind, one.heading, one.title, one.text, one.code),
                *(one.names, *one.weights, one.is_for_readers),
            )
            for one in passages
        )
        self._connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def search(self, text: str, joined_by: str = "AND") -> list[Found]:
        """Return the passages with every word of a text but `UNIMPORTANT` ones; the last may be the beginning of one.

        Those that the text is the heading of come first, then the best.

        Args:
            joined_by: "OR" returns those with any of the words.
        """
        query = _query(text, joined_by)
        if not query:
            return []
        name = text.strip().lower()
        subject = _subject(name)
        values = {
            "open": OPEN,
            "close": CLOSE,
            "query": query,
            "name": name,
            "subject": subject,
            "letter": LETTER_NAMES.get(subject, subject),
            "phrase": name if len(text.split()) >= FEWEST_WORDS else "",
            "most": MOST_RESULTS,
        }
        with self._lock:
            rows = self._connection.execute(QUERY, values).fetchall()
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


def _subject(text: str) -> str:
    """Return what a text names: in lower case, without unimportant words and punctuation, each word in the singular."""
    return PLURAL.sub("", important(text.lower()).strip(PUNCTUATION))


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
    questions = QUESTIONS.get(name, ())
    text, code = [library.about(name)], [role, *questions]
    audience, level_of_operators = library.audience(name), ""
    for at, token in enumerate(tokens):
        row = row_name(tokens, at) if kind else None
        if token.type == "heading_open" and token.tag != "h1":
            yield Passage(
                *(address, kind_of_section, heading, title, " ".join(text).strip(), " ".join(code), audience),
                questions,
            )
            kind_of_section, anchor = "", f"#{token.attrGet('id')}"
            questions = QUESTIONS.get(name + anchor, ())
            address, heading = here + anchor, _words(tokens[at + 1])
            text, code = [], [*questions]
            if heading == FOR_OPERATORS or token.tag <= level_of_operators:
                level_of_operators = token.tag if heading == FOR_OPERATORS else ""
                audience = Audience.OPERATORS if level_of_operators else library.audience(name)
        elif row:
            cells = [_words(one) for one in _row(tokens, at) if one.type == "inline"]
            # People know a check by the name beside its id.
            named = f"{cells.pop(1)}, {row}" if kind == "Check" else row
            # Only the first row about a name has an id.
            place = f"{here}#{token.attrGet('id')}" if token.attrGet("id") else address
            # A mark in a column of its own says nothing outside the table.
            yield Passage(
                place,
                kind,
                named,
                title,
                " · ".join(cell for cell in cells[1:] if cell not in MARKS),
                audience=audience,
            )
        elif token.type in ("fence", "code_block"):
            code.append(_words(token))
        elif token.type == "inline":
            text.append(_words(token))
    yield Passage(
        *(address, kind_of_section, heading, title, " ".join(text).strip(), " ".join(code), audience),
        questions,
    )


def _row(tokens: list[Token], at: int) -> list[Token]:
    end = next(number for number in range(at, len(tokens)) if tokens[number].type == "tr_close")
    return tokens[at:end]


def _words(token: Token) -> str:
    """Return the text of a token without its markup."""
    return "".join(_word(child) for child in token.children) if token.children else token.content


def _word(token: Token) -> str:
    return " " if token.type in {"softbreak", "hardbreak"} else token.content


def _query(text: str, joined_by: str) -> str:
    """Return a text as a query of FTS5, in which every word is quoted, so that none is an operator.

    A word that may be written as two is found in either form, and so are two that may be written as one.
    """
    words = re.findall(r"[\w.\-/]+", important(text[:MOST_CHARACTERS]))
    words = [word for word in words if re.search(r"[^\W_]", word)]
    suffixes = [""] * (len(words) - 1) + ["*"]
    terms = []
    while words:
        word, suffix = words.pop(0), suffixes.pop(0)
        term = _term(word, suffix)
        if words and (joined := word + words[0]).lower() in _vocabulary():
            second, suffix = words.pop(0), suffixes.pop(0)
            term = f'(({term} AND {_term(second, suffix)}) OR "{joined}"{suffix})'
        terms.append(term)
    return f" {joined_by} ".join(terms)


def _term(word: str, suffix: str) -> str:
    spellings = [f'"{one}"{suffix}' for one in (word, *other_spellings(word))]
    return f"({' OR '.join(spellings)})" if len(spellings) > 1 else spellings[0]


def other_spellings(word: str) -> list[str]:
    """Return how else a word may be written: a Greek letter by its name, and a compound as two known words."""
    lower, least = word.lower(), FEWEST_LETTERS_OF_A_PART
    halves = ((lower[:at], lower[at:]) for at in range(least, len(lower) - least + 1))
    compounds = [f"{first} {second}" for first, second in halves if {first, second} <= _vocabulary().keys()]
    return [SPELLINGS[lower], *compounds] if lower in SPELLINGS else compounds


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
