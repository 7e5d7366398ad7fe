"""Queries about submissions, and who may see them."""

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from portal.accounts.models import User
from portal.challenge.models import Track
from portal.submissions.models import Run, RunState, RunToken, Submission, SubmissionState
from portal.submissions.quota import WINDOW, Quota, quota
from portal.teams.models import Team
from portal.uploads.models import Upload


def submissions_of(team: Team) -> QuerySet[Submission]:
    """Return the team's submissions with their tracks and runs, newest first."""
    return Submission.objects.filter(team=team).select_related("track").prefetch_related("runs")


def own_submission(team: Team, submission_id: UUID) -> Submission:
    """Return the team's submission. Raises `Submission.DoesNotExist` also for other teams' submissions."""
    return submissions_of(team).select_related("team").get(pk=submission_id)


def own_upload(team: Team, upload_id: UUID) -> Upload:
    """Return the team's upload. Raises `Upload.DoesNotExist` also for other teams' uploads."""
    return Upload.objects.get(team=team, pk=upload_id)


def tokens_of(team: Team) -> QuerySet[RunToken]:
    """Return the team's run tokens, newest first, each with its track and the run that has it."""
    return RunToken.objects.filter(team=team).select_related("track", "issued_to", "run__submission")


def token_counts(team: Team) -> QuerySet[Track]:
    """Return the tracks that issued tokens to the team, each with the numbers `issued` and `used` by a run."""
    own = Q(run_tokens__team=team)
    return Track.objects.filter(own).annotate(
        issued=Count("run_tokens", filter=own), used=Count("run_tokens__run", filter=own)
    )


def visible_submissions(user: User | AnonymousUser) -> QuerySet[Submission]:
    """Return the submissions that `user` may see: scored ones, their own team's, and for organizers all of them."""
    submissions = Submission.objects.select_related("track", "team")
    if user.is_staff:
        return submissions
    scored = Exists(Run.objects.filter(submission=OuterRef("pk"), state=RunState.SCORED))
    public = Q(scored, state=SubmissionState.SUBMITTED)
    own = Q(team__memberships__user=user) if user.is_authenticated else Q(pk=None)
    return submissions.filter(public | own)


def counted_times(team: Team, track: Track, now: datetime) -> list[datetime]:
    """Return when the team made the submissions that count against its quota, which withdrawn ones do, refunded not."""
    counted = Submission.objects.filter(
        team=team, track=track, submitted_at__gt=now - WINDOW, refunded_at__isnull=True
    )
    return [time for time in counted.values_list("submitted_at", flat=True) if time]


def quota_of(team: Team, track: Track, now: datetime) -> Quota:
    """Return the team's quota in the track."""
    return quota(counted_times(team, track, now), now, track.submissions_per_day)
