"""The desk's overview of people, proofs and content: numbers, each with the page where the rest is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Case, Count, F, Q, QuerySet, Value, When
from django.template.defaultfilters import pluralize
from django.urls import reverse

from docvqa_site.accounts.groups import REVIEWERS
from docvqa_site.accounts.models import TRACK_ORGANIZERS, User
from docvqa_site.accounts.selectors import is_reviewer
from docvqa_site.boards.models import FinalResults
from docvqa_site.challenge.models import StaffInvitation
from docvqa_site.challenge.rankings import WITH_PROOFS
from docvqa_site.challenge.selectors import organizers_of_all_tracks
from docvqa_site.downloads.models import Download, Terms
from docvqa_site.news.models import NewsItem
from docvqa_site.reviews.selectors import appealed
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.models import Team

# What is newer is new.
NEW = timedelta(days=7)
# How the members of each group are called.
GROUPS = {
    REVIEWERS: ("reviewer", ""),
    TRACK_ORGANIZERS: ("organizer", " of single tracks"),
}


@dataclass(frozen=True)
class Fact:
    """A line of a card; `url` is empty where the organizer may not open the page."""

    text: str
    url: str = ""


@dataclass(frozen=True)
class Card:
    title: str
    facts: list[Fact]


def counted_for(judged: QuerySet[Submission]) -> dict[str, QuerySet[Any]]:
    """Return what the cards count; `judged` is what the organizer has no conflict of interest about."""
    private = judged.filter(track__ranking__in=WITH_PROOFS)
    return {
        "drafts": _drafts(),
        "pending invitations": StaffInvitation.objects.filter(accepted_at=None),
        "organizers of all tracks": organizers_of_all_tracks(),
        "superusers": User.objects.filter(is_active=True, is_superuser=True),
        "open appeals": private.filter(appealed(), state=SubmissionState.SUBMITTED),
        "downloads": Download.objects.filter(is_offered=True),
        "terms": Terms.objects.all(),
        "final results": FinalResults.objects.all(),
    }


def kinds_for(now: datetime) -> "list[QuerySet[Any, Any]]":
    """Return what the cards count by kind: accounts, teams and news by age, accounts by group, and drafting teams."""
    accounts = User.objects.filter(is_active=True)
    # A track that is set up has submissions of a team of its own, which try it.
    teams = Team.objects.exclude(submissions__track__is_draft=True)
    drafting = _drafts().order_by().values(part=Value("teams with drafts"))
    of_groups = accounts.filter(groups__name__in=GROUPS).order_by().values(part=F("groups__name"))
    return [
        _by_age(accounts, Q(date_joined__gt=now - NEW), "new accounts", "earlier accounts"),
        _by_age(teams, Q(created_at__gt=now - NEW), "new teams", "earlier teams"),
        _by_age(NewsItem.objects.all(), Q(published_at__gt=now), "scheduled news", "published news"),
        drafting.annotate(count=Count("team", distinct=True)),
        of_groups.annotate(count=Count("pk")),
    ]


def _drafts() -> QuerySet[Submission]:
    # Without a time, by whose index they are found.
    return Submission.objects.filter(
        submitted_at__isnull=True, state=SubmissionState.DRAFT, track__is_draft=False
    )


def _by_age(rows: QuerySet[Any], is_new: Q, new: str, earlier: str) -> "QuerySet[Any, Any]":
    kind = Case(When(is_new, then=Value(new)), default=Value(earlier))
    found: QuerySet[Any, Any] = rows.order_by().values(part=kind).annotate(count=Count("pk"))
    return found


def cards_for(organizer: User, counts: Mapping[str, int]) -> list[Card]:
    """Return the cards, from the counts of what `counted_for` names, and of unsettled and waiting proofs.

    What there is none of isn't counted, unless the line leads to the page that adds some.
    """
    cards = [
        Card("People", list(_people(organizer, counts))),
        Card("Proofs", list(_proofs(organizer, counts))),
        Card("Content", list(_content(organizer, counts))),
        Card("Records", [one for one in _records(organizer) if one.url]),
    ]
    return [card for card in cards if card.facts]


def _people(organizer: User, counts: Mapping[str, int]) -> Iterator[Fact]:
    yield _fact(organizer, _with_new("account", counts), "accounts.user")
    may = organizer.has_perm("submissions.view_submission")
    yield Fact(_with_new("team", counts), reverse("organizers:teams") if may else "")
    if counts["drafts"]:
        by_teams = _number(counts.get("teams with drafts", 0), "team")
        yield _fact(
            organizer,
            f"{_number(counts['drafts'], 'draft')} by {by_teams}",
            "submissions.submission",
            f"?state__exact={SubmissionState.DRAFT}",
        )
    people = reverse("organizers:people") if organizer.has_perm("challenge.change_track") else ""
    yield Fact(f"{_number(counts['organizers of all tracks'], 'organizer')} of all tracks", people)
    groups = Group.objects.in_bulk([*GROUPS], field_name="name")
    # Superusers, and people with permissions of their own, are in no group.
    for name, (noun, which) in GROUPS.items():
        if count := counts.get(name, 0):
            of_group = f"?is_active__exact=1&groups__id__exact={groups[name].pk}"
            yield _fact(organizer, f"{_number(count, noun)}{which}", "accounts.user", of_group)
    if invited := counts["pending invitations"]:
        yield Fact(_number(invited, "pending invitation"), people)
    superusers = _number(counts["superusers"], "superuser")
    everything = "?is_active__exact=1&is_superuser__exact=1"
    yield _fact(organizer, f"{superusers}, who can also review and organize", "accounts.user", everything)


def _with_new(noun: str, counts: Mapping[str, int]) -> str:
    new = counts.get(f"new {noun}s", 0)
    found = _number(counts.get(f"earlier {noun}s", 0) + new, noun)
    return f"{found}, {new} new this week" if new else found


def _proofs(organizer: User, counts: Mapping[str, int]) -> Iterator[Fact]:
    waiting = counts["waiting proofs"]
    queue = reverse("reviews:queue") if is_reviewer(organizer) else ""
    if waiting:
        yield Fact(f"{waiting} waiting for reviewers", queue)
    if of_teams := counts["unsettled proofs"] - waiting:
        yield Fact(f"{of_teams} waiting for the team", queue)
    proofs = reverse("admin:reviews_proof_changelist")
    if appeals := counts["open appeals"]:
        yield Fact(_number(appeals, "open appeal"), f"{proofs}?state=appealed")
    yield Fact("All privacy proofs", proofs)
    yield _fact(organizer, "Each reviewer's latest decision", "reviews.proofreview")


def _content(organizer: User, counts: Mapping[str, int]) -> Iterator[Fact]:
    """Yield what there is, and where none is, the way to the page that adds some."""
    scheduled = counts.get("scheduled news", 0)
    news = _number(counts.get("published news", 0) + scheduled, "news item")
    yield _fact(organizer, news + (f", {scheduled} scheduled" if scheduled else ""), "news.newsitem")
    yield _fact(organizer, f"{_number(counts['downloads'], 'download')} offered", "downloads.download")
    yield _fact(organizer, f"{_number(counts['terms'], 'version')} of terms", "downloads.terms")
    if published := counts["final results"]:
        yield Fact(f"{_number(published, 'publication')} of final results", reverse("results:list"))


def _records(organizer: User) -> Iterator[Fact]:
    """Yield the pages of the administration that record what happened."""
    yield _fact(organizer, "Audit trail", "audit.auditentry")
    yield _fact(organizer, "What organizers and reviewers did", "audit.auditentry", "?by=staff")
    yield _fact(organizer, "Evaluations, with failed ones", "evaluation.evaluation")
    yield _fact(organizer, "Examinations", "evaluation.examination")
    yield _fact(organizer, "Run tokens", "submissions.runtoken")
    yield _fact(organizer, "Emails", "mail.outgoingmail")


def _fact(organizer: User, text: str, model: str, query: str = "") -> Fact:
    """Return a fact that leads to the administration of a model, for those who may view it there."""
    app, _, name = model.partition(".")
    may = any(organizer.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))
    return Fact(text, reverse(f"admin:{app}_{name}_changelist") + query if may else "")


def _number(count: int, noun: str) -> str:
    return f"{count or 'No'} {noun}{pluralize(count)}"
