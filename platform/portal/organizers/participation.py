"""Participation in figures: per track and month, how many teams and people submitted what, and how it ended."""

from typing import Any

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncMonth

from portal.submissions.models import RunState, Submission


def participation() -> "QuerySet[Submission, Any]":
    """Return a row per track and month of submission, in one query. Baselines and withdrawn ones count, drafts don't.

    `people` are those who submitted; `runs` are of all states, `scored` and `rejected` of these.
    """
    made = Submission.objects.filter(submitted_at__isnull=False).order_by()
    by_month = made.annotate(month=TruncMonth("submitted_at")).values("track__name", "month")
    return by_month.annotate(
        teams=Count("team", distinct=True),
        people=Count("created_by", distinct=True),
        submissions=Count("pk", distinct=True),
        runs_made=Count("runs", distinct=True),
        scored=Count("runs", filter=Q(runs__state=RunState.SCORED), distinct=True),
        rejected=Count("runs", filter=Q(runs__state=RunState.REJECTED), distinct=True),
    ).order_by("-month", "track__position", "track__name")
