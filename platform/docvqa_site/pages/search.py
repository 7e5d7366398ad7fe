"""The search of the site: what of it is public, by its kinds, and the documents.

Rows of the database are looked up at each search, so that no result outlives a withdrawal, a change of name or an
erasure. The database picks those that have the words in them; an index in memory then compares words as it does for
the documents, orders the results and cuts their excerpts. See `docs/decisions/0028-search.md`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Any

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Concat, Lower
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from docvqa_site.about.citations import PAPERS
from docvqa_site.challenge.models import Track
from docvqa_site.docs.search import (
    MOST_CHARACTERS,
    MOST_RESULTS,
    Found,
    Index,
    Passage,
    corrected,
    other_spellings,
    terms,
)
from docvqa_site.docs.search import search as search_documents
from docvqa_site.news.models import published
from docvqa_site.pages.fixed import FIXED_PAGES
from docvqa_site.submissions.selectors import public_submissions
from docvqa_site.teams.models import Team
from docvqa_site.ui.budgets import at_budget, board_query

# Of each kind, where several were found.
SHOWN_FIRST = 5
# So many rows of a kind are compared, beginning with those that have the text in their heading.
MOST_ROWS = 200
# Of Markdown, what an excerpt is easier to read without.
MARKS = re.compile(r"\]\([^)]*\)|[*`#\[\]]+")
# A privacy budget, as people write it.
BUDGET = re.compile(r"(?:ε|eps|epsilon)\s*=?\s*(\d{1,6}(?:\.\d{1,6})?)", re.IGNORECASE)
# What people type who look for earlier results.
PROGRESS = {"history", "progress", "progress over time", "timeline"}
PAGES, DOCUMENTS = "pages", "documents"
COLUMNS = ("place", "heading", "beside", "content")


@dataclass(frozen=True)
class Kind:
    """What of the database can be found.

    Attributes:
        name: In the plural, as the heading of the results.
        page: The name of the address of each, which `place` completes.
        rows: Returns what is public of it, with `COLUMNS`: what is shown and searched.
        with_word: Returns the condition that a part of a word is in a row.
    """

    name: str
    page: str
    rows: Callable[[], QuerySet[Any]]
    with_word: Callable[[str], Q]

    def search(self, text: str) -> list[Found]:
        return Index(self._passages(text)).search(text)

    def _passages(self, text: str) -> Iterator[Passage]:
        found = self.rows().filter(self._has_words(text))
        found = found.annotate(is_named=Q(heading__icontains=text)).order_by("-is_named", "-pk")
        for place, heading, beside, content in found.values_list(*COLUMNS)[:MOST_ROWS]:
            yield Passage(reverse(self.page, args=[place]), "", heading, beside, MARKS.sub("", content))

    def _has_words(self, text: str) -> Q:
        """Return the condition that each word of a text is in a row, whatever its ending is."""
        condition = Q()
        for term in terms(text):
            # An ending that was cut off may have changed the letter before it.
            parts = [term[:-1] if len(term) > 3 or term.endswith("i") else term, *other_spellings(term)]
            condition &= reduce(or_, map(self.with_word, parts))
        return condition


@dataclass(frozen=True)
class Group:
    """The results of one kind.

    Attributes:
        key: Names the kind in the address.
        shown: Those on this page.
    """

    key: str
    name: str
    found: Sequence[Found]
    shown: Sequence[Found]

    @property
    def count(self) -> str:
        """How many are shown of how many that were found, beyond which there may be more."""
        every = f"{MOST_RESULTS} best" if len(self.found) == MOST_RESULTS else str(len(self.found))
        if not self.is_cut:
            return every
        return f"{len(self.shown)} of {'the ' if len(self.found) == MOST_RESULTS else ''}{every}"

    @property
    def is_cut(self) -> bool:
        return len(self.shown) < len(self.found)


def _in_any_column(part: str) -> Q:
    return reduce(or_, (Q((f"{column}__icontains", part)) for column in ("heading", "beside", "content")))


def _in_method(part: str) -> Q:
    """Return the same of submissions, of which there are thousands: of what is stored in lower case.

    Names are looked up among teams and tracks, which are fewer.
    """
    lower = Lower(Value(part))
    team, track = (model.objects.filter(name__icontains=part) for model in (Team, Track))
    named = Q(anonymous=False) & (Q(lower_description__contains=lower) | Q(team__in=team))
    anonymous = Q(anonymous=True, alias__icontains=part)
    return Q(lower_title__contains=lower) | named | anonymous | Q(track__in=track)


def _tracks() -> QuerySet[Track]:
    text = Concat("summary", Value(" "), "description", output_field=TextField())
    return Track.objects.annotate(place=F("slug"), heading=F("name"), beside=Value(""), content=text)


def _methods() -> QuerySet[Any]:
    """Return the public submissions. Of an anonymous one, the page shows an alias in place of the team and the text."""
    team = Case(When(anonymous=True, then=F("alias")), default=F("team__name"), output_field=TextField())
    text = Case(When(anonymous=True, then=Value("")), default=F("description"), output_field=TextField())
    beside = Concat(team, Value(" · "), "track__name", output_field=TextField())
    return public_submissions().annotate(place=F("pk"), heading=F("title"), beside=beside, content=text)


def _teams() -> QuerySet[Team]:
    """Return the teams that a board names."""
    named = Exists(public_submissions().filter(team=OuterRef("pk"), anonymous=False))
    found = Team.objects.filter(named)
    return found.annotate(place=F("slug"), heading=F("name"), beside=F("affiliation"), content=Value(""))


def _news() -> QuerySet[Any]:
    return published().annotate(place=F("slug"), heading=F("title"), beside=Value(""), content=F("text"))


def _search_pages(text: str, joined_by: str = "AND") -> list[Found]:
    return [*_boards_at(text), *_progress(text), *_pages().search(text, joined_by)]


def _boards_at(text: str) -> Iterator[Found]:
    """Yield the boards at the privacy budget that a text names."""
    named = BUDGET.fullmatch(text)
    if not named:
        return
    budget = float(named[1])
    for track in Track.objects.all():
        if budget in track.run_budgets():
            address = f"{reverse('leaderboard:track', args=[track.slug])}{board_query(budget)}#board"
            yield Found(address, "Leaderboard", f"{track}{at_budget(budget)}", "", SafeString(""))


def _progress(text: str) -> Iterator[Found]:
    """Yield the pages of how the best results of each track have changed, where a text asks for them."""
    if text.lower() in PROGRESS:
        for track in Track.objects.all():
            address = reverse("leaderboard:progress", args=[track.slug])
            yield Found(address, "", f"Progress over time: {track}", "", SafeString(""))


@cache
def _pages() -> Index:
    pages = [Passage(reverse(one.view), "", one.heading, "", one.about, one.synonyms) for one in FIXED_PAGES]
    return Index([*pages, *_publications()])


def _publications() -> Iterator[Passage]:
    """Yield the papers to cite, which are found by their authors, titles and numbers."""
    for paper in PAPERS.values():
        address = f"{reverse('about:cite')}#{paper.key}"
        numbers = f"arXiv:{paper.arxiv} {paper.doi}"
        yield Passage(address, "", paper.title, "How to cite", f"{paper.in_words} {numbers}", "paper BibTeX")


KINDS = {
    "tracks": Kind("Tracks", "challenge:track", _tracks, _in_any_column),
    "methods": Kind("Methods", "submissions:detail", _methods, _in_method),
    "teams": Kind("Teams", "teams:detail", _teams, _in_any_column),
    "news": Kind("News", "news:item", _news, _in_any_column),
}
SEARCHES: dict[str, tuple[str, Callable[[str], list[Found]]]] = {
    PAGES: ("Pages", _search_pages),
    **{key: (kind.name, kind.search) for key, kind in KINDS.items()},
    DOCUMENTS: ("Documentation", search_documents),
}
# Where the nearest results are searched if nothing has all words.
WITH_ANY_WORD: dict[str, Callable[[str, str], list[Found]]] = {
    PAGES: _search_pages,
    DOCUMENTS: search_documents,
}


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Search for a text in the address; among one kind only where the address names one."""
    text = " ".join(request.GET.get("q", "").split())[:MOST_CHARACTERS]
    only = request.GET.get("in", "")
    found = {key: (name, look(text)) for key, (name, look) in SEARCHES.items()} if text else {}
    some = {key: results for key, results in found.items() if results[1]}
    is_exact = bool(some)
    if text and not is_exact:
        nearest = {key: (SEARCHES[key][0], look(text, "OR")) for key, look in WITH_ANY_WORD.items()}
        some = {key: results for key, results in nearest.items() if results[1]}
    first = MOST_RESULTS if len(some) < 2 or only in some else SHOWN_FIRST
    groups = [Group(key, name, results, results[:first]) for key, (name, results) in some.items()]
    context = {
        "text": text,
        "is_exact": is_exact,
        "suggestion": "" if is_exact else corrected(text),
        "only": only if only in some else "",
        "groups": groups,
        "shown": [group for group in groups if only in ("", group.key) or only not in some],
    }
    return render(request, "pages/search.html", context)
