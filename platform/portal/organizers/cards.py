"""The desk's overview of people, proofs and content: numbers, each with the page where the rest is."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet
from django.template.defaultfilters import pluralize
from django.urls import reverse

from portal.accounts.models import User
from portal.accounts.selectors import is_reviewer
from portal.boards.models import FinalResults
from portal.challenge.rankings import WITH_PROOFS
from portal.downloads.models import Download, Terms
from portal.news.models import NewsItem
from portal.reviews.selectors import awaiting_decisions, open_appeals, reviewers, undecided
from portal.submissions.models import Submission, SubmissionState
from portal.teams.models import Team

# What is newer is new.
NEW = timedelta(days=7)


@dataclass(frozen=True)
class Fact:
    """A line of a card; `url` is empty where the organizer may not open the page."""

    text: str
    url: str = ""


@dataclass(frozen=True)
class Card:
    title: str
    facts: list[Fact]


def cards_for(organizer: User, judged: QuerySet[Submission], now: datetime) -> list[Card]:
    """Return the cards; `judged` are the submissions that the organizer has no conflict of interest about."""
    return [
        Card("People", list(_people(organizer, now))),
        Card("Proofs", list(_proofs(organizer, judged))),
        Card("Content", list(_content(organizer, now))),
    ]


def _people(organizer: User, now: datetime) -> Iterator[Fact]:
    new = Count("pk", filter=Q(date_joined__gt=now - NEW))
    accounts = User.objects.filter(is_active=True).order_by().aggregate(all=Count("pk"), new=new)
    yield _fact(
        organizer, f"{_number(accounts['all'], 'account')}, {accounts['new']} new this week", "accounts.user"
    )
    new = Count("pk", filter=Q(created_at__gt=now - NEW))
    teams = Team.objects.order_by().aggregate(all=Count("pk"), new=new)
    yield _fact(organizer, f"{_number(teams['all'], 'team')}, {teams['new']} new this week", "teams.team")
    drafts = Submission.objects.filter(state=SubmissionState.DRAFT).order_by()
    found = drafts.aggregate(all=Count("pk"), teams=Count("team", distinct=True))
    yield _fact(
        organizer,
        f"{_number(found['all'], 'draft')} of {_number(found['teams'], 'team')}",
        "submissions.submission",
        f"?state__exact={SubmissionState.DRAFT}",
    )
    yield _fact(organizer, _number(reviewers().count(), "reviewer"), "accounts.user", "?is_staff__exact=1")


def _proofs(organizer: User, judged: QuerySet[Submission]) -> Iterator[Fact]:
    private = judged.filter(track__ranking__in=WITH_PROOFS)
    unsettled, waiting = undecided(private).count(), awaiting_decisions(private).count()
    queue = reverse("reviews:queue") if is_reviewer(organizer) else ""
    yield Fact(f"{waiting} waiting for reviewers", queue)
    yield Fact(f"{unsettled - waiting} waiting for the team", queue)
    yield Fact(_number(open_appeals().filter(submission__in=private).count(), "open appeal"), queue)
    yield _fact(organizer, "All reviews", "reviews.proofreview")


def _content(organizer: User, now: datetime) -> Iterator[Fact]:
    later = Count("pk", filter=Q(published_at__gt=now))
    news = NewsItem.objects.order_by().aggregate(all=Count("pk"), later=later)
    yield _fact(organizer, f"{_number(news['all'], 'news item')}, {news['later']} scheduled", "news.newsitem")
    offered = Download.objects.filter(is_offered=True).count()
    yield _fact(organizer, f"{_number(offered, 'download')} offered", "downloads.download")
    yield _fact(organizer, f"{_number(Terms.objects.count(), 'version')} of terms", "downloads.terms")
    yield Fact(f"{FinalResults.objects.count()} final results", reverse("results:list"))


def _fact(organizer: User, text: str, model: str, query: str = "") -> Fact:
    """Return a fact that leads to the administration of a model, for those who may view it there."""
    app, _, name = model.partition(".")
    may = any(organizer.has_perm(f"{app}.{verb}_{name}") for verb in ("view", "change"))
    return Fact(text, reverse(f"admin:{app}_{name}_changelist") + query if may else "")


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{pluralize(count)}"
