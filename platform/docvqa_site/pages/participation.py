"""How many take part: registrations, teams, countries, downloads, and submissions by track and month.

The competition's paper has the same numbers in its Table 1.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import TruncMonth
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import pluralize
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_safe

from docvqa_site.accounts.models import User
from docvqa_site.boards.caching import cached
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Download
from docvqa_site.submissions.models import Submission
from docvqa_site.teams.countries import COUNTRIES
from docvqa_site.teams.models import Team


@dataclass(frozen=True)
class Column:
    """What is counted: its name, and how many there were in each month, by its first moment."""

    name: str
    months: Counter[datetime]

    @property
    def total(self) -> int:
        return self.months.total()


@require_safe
def participation(request: HttpRequest) -> HttpResponse:
    """Show how many take part. The numbers are counted once an hour."""
    drawn = cached(timezone.now().strftime("%Y-%m-%d %H"), "participation", _draw)
    context = {"numbers": mark_safe(drawn)}  # noqa: S308  (a template made it)
    return render(request, "pages/participation.html", context)


def in_words() -> str:
    """Return in a few words how many take part; counted once an hour."""
    return cached(timezone.now().strftime("%Y-%m-%d %H"), "participation in words", _count)


def _count() -> str:
    teams = Team.objects.count()
    sent = Submission.objects.filter(submitted_at__isnull=False, track__in=Track.objects.all()).count()
    return f"{teams:,} team{pluralize(teams)}, {sent:,} submission{pluralize(sent)} so far"


def _draw() -> str:
    # Organizers and reviewers don't take part, nor does who hasn't confirmed an address.
    people = User.objects.filter(is_active=True, is_staff=False, emailaddress__verified=True).distinct()
    columns = [
        Column("Registrations", _by_month(people, "date_joined")),
        Column("Teams", _by_month(Team.objects.all(), "created_at")),
        *(
            Column(f"Submissions, {track}", _by_month(track.submissions.all(), "submitted_at"))
            for track in Track.objects.all()
        ),
    ]
    context = {
        "counted_at": timezone.now(),
        "columns": columns,
        "downloads": Download.objects.aggregate(sent=Sum("times_sent"))["sent"] or 0,
        "countries": _countries(),
        "months": [
            (month, [(column, column.months[month]) for column in columns]) for month in _months(columns)
        ],
    }
    return render_to_string("pages/participation_numbers.html", context)


def _by_month(rows: "QuerySet[Any, Any]", moment: str) -> Counter[datetime]:
    """Return how many of the rows are of each month; those without a moment are of none."""
    months = rows.filter(**{f"{moment}__isnull": False}).order_by().annotate(month=TruncMonth(moment))
    return Counter(dict(months.values_list("month").annotate(Count("pk", distinct=True))))


def _months(columns: Sequence[Column]) -> list[datetime]:
    """Return the months in which there was anything, the newest first."""
    return sorted({month for column in columns for month in column.months}, reverse=True)


def _countries() -> list[tuple[str, int]]:
    """Return the countries of teams, each with how many there are, the most frequent first."""
    found = Team.objects.exclude(country="").order_by().values_list("country").annotate(Count("pk"))
    named = [(COUNTRIES.get(code, code), count) for code, count in found]
    return sorted(named, key=lambda country: (-country[1], country[0]))
