"""The runs that an organizer may decide on."""

from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from portal.accounts.models import User
from portal.reviews.selectors import judgeable_submissions
from portal.submissions.models import Run


def judged_runs(organizer: User) -> QuerySet[Run]:
    """Return the runs that the organizer may decide on."""
    found = Run.objects.filter(submission__in=judgeable_submissions(organizer))
    return found.select_related("submission__team", "submission__track", "submission__phase")


def judged_run(organizer: User, run_id: UUID) -> Run:
    """Return the run. Raises `Http404` unless the organizer may decide on it."""
    return get_object_or_404(judged_runs(organizer), pk=run_id)
