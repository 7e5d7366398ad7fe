"""How many take part: registrations, teams, countries, downloads, and submissions by track and month.

The competition's paper has the same numbers in its Table 1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet, Sum
from django.db.models.functions import TruncMonth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import pluralize
from django.utils import timezone
from django.views.decorators.http import require_safe
from pydantic import TypeAdapter

from docvqa_site.accounts.models import User
from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.caching import cached
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Download
from docvqa_site.submissions.models import Submission, SubmissionState
from docvqa_site.teams.countries import COUNTRIES
from docvqa_site.teams.models import Team


@dataclass(frozen=True)
class Column:
    """What is counted: its name, and how many there were in each month, by its first moment."""

    name: str
    months: Mapping[datetime, int]

    @property
    def total(self) -> int:
        return sum(self.months.values())


@dataclass(frozen=True)
class Participation:
    """How many take part, all counted at one moment.

    Attributes:
        submissions: Those of each track.
        downloads: How often files were sent.
        countries: Those of teams, each with how many there are, the most frequent first.
    """

    counted_at: datetime
    registrations: Column
    teams: Column
    submissions: Sequence[Column]
    downloads: int
    countries: Sequence[tuple[str, int]]

    @property
    def columns(self) -> list[Column]:
        """What is counted by month."""
        return [self.registrations, self.teams, *self.submissions]

    @property
    def months(self) -> list[tuple[datetime, list[tuple[Column, int]]]]:
        """The months in which there was anything, the newest first, each with the number of every column."""
        months = sorted({month for column in self.columns for month in column.months}, reverse=True)
        return [(month, [(one, one.months.get(month, 0)) for one in self.columns]) for month in months]

    def __str__(self) -> str:
        teams, sent = self.teams.total, sum(column.total for column in self.submissions)
        return f"{teams:,} participating team{pluralize(teams)}, {sent:,} submission{pluralize(sent)} so far"


# Neither the organizers' baselines, nor practice, nor what was withdrawn.
COUNTED = {"is_baseline": False, "practice": False, "state": SubmissionState.SUBMITTED}
_PARTICIPATION = TypeAdapter(Participation)


@require_safe
def participation(request: HttpRequest) -> HttpResponse:
    """Show how many take part."""
    tracks = list(Track.objects.all())
    found = counted(tracks, boards_versions([track.pk for track in tracks]))
    return render(request, "pages/participation.html", {"participation": found})


def counted(tracks: Sequence[Track], versions: Mapping[int, str]) -> Participation:
    """Return how many take part, for all pages alike: counted once an hour, and for each version of the boards."""
    version = f"{sorted(versions.items())} {timezone.now():%Y-%m-%d %H}"
    return _PARTICIPATION.validate_json(
        cached(version, "participation", lambda: _PARTICIPATION.dump_json(_count(tracks)).decode())
    )


def _count(tracks: Sequence[Track]) -> Participation:
    # Organizers and reviewers don't take part, nor does who hasn't confirmed an address.
    people = User.objects.filter(is_active=True, is_staff=False, emailaddress__verified=True).distinct()
    teams = _competing_teams()
    return Participation(
        counted_at=timezone.now(),
        registrations=Column("Registrations", _by_month(people, "date_joined")),
        teams=Column("Teams", _by_month(teams, "created_at")),
        submissions=[
            Column(
                f"Submissions, {track}",
                _by_month(track.submissions.filter(**COUNTED), "submitted_at"),
            )
            for track in tracks
        ],
        downloads=Download.objects.aggregate(sent=Sum("times_sent"))["sent"] or 0,
        countries=_countries(teams),
    )


def _competing_teams() -> QuerySet[Team]:
    """Return all teams but those that have made the organizers' baselines and nothing else."""
    made = Submission.objects.filter(team=OuterRef("pk"), submitted_at__isnull=False)
    return Team.objects.filter(
        Exists(made.filter(is_baseline=False)) | ~Exists(made.filter(is_baseline=True))
    )


def _by_month(rows: "QuerySet[Any, Any]", moment: str) -> dict[datetime, int]:
    """Return how many of the rows are of each month; those without a moment are of none."""
    months = rows.filter(**{f"{moment}__isnull": False}).order_by().annotate(month=TruncMonth(moment))
    return dict(months.values_list("month").annotate(Count("pk", distinct=True)))


def _countries(teams: QuerySet[Team]) -> list[tuple[str, int]]:
    found = teams.exclude(country="").order_by().values_list("country").annotate(Count("pk"))
    named = [(COUNTRIES.get(code, code), count) for code, count in found]
    return sorted(named, key=lambda country: (-country[1], country[0]))
