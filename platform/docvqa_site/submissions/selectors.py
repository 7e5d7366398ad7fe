"""Queries about submissions, and who may see them."""

from collections.abc import Collection, Iterable
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Count, Exists, OuterRef, PositiveSmallIntegerField, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import AuditEntry
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.selectors import others_tracks
from docvqa_site.submissions.models import IndexChallenge, Refund, Run, RunToken, Submission, SubmissionState
from docvqa_site.submissions.quota import PRACTICE_SLOTS, WINDOW, Extra, Quota, next_slot, quota
from docvqa_site.submissions.states import IN_EVALUATION
from docvqa_site.teams.models import Membership, PastMembership, Team
from docvqa_site.teams.selectors import teams_ever_of
from docvqa_site.uploads.models import Upload, UploadState

# What the audit log calls a submission that is a draft again.
CANCELED = f"submission.{SubmissionState.DRAFT}"


def submissions_of(team: Team | None) -> QuerySet[Submission]:
    """Return the team's submissions with their tracks and runs, newest first; none of no team.

    A draft that was discarded isn't among them, and what was submitted counts from then.
    """
    discarded = Q(state=SubmissionState.WITHDRAWN, submitted_at__isnull=True)
    own = Submission.objects.filter(~discarded, team=team)
    own = own.order_by(Coalesce("submitted_at", "created_at").desc(), "-pk")
    return own.select_related("team", "track", "phase").prefetch_related("runs")


def own_submission(team: Team, submission_id: UUID) -> Submission:
    """Return the team's submission. Raises `Submission.DoesNotExist` also for other teams' submissions."""
    return submissions_of(team).get(pk=submission_id)


def submission_addresses(submissions: Iterable[UUID], page: str = "submissions:detail") -> dict[UUID, str]:
    """Return the address of each submission's page, or of another page of it, by its name."""
    address = address_format(page)
    return {submission: address.format(submission) for submission in submissions}


def address_format(page: str = "submissions:detail") -> str:
    """Return the address of a submission's page as a format that takes the submission's key.

    To look up the address of each takes longer than all else that a row of a board needs.
    """
    nowhere = UUID(int=0)
    return reverse(page, args=[nowhere]).replace(str(nowhere), "{}")


def own_upload(team: Team, upload_id: UUID) -> Upload:
    """Return the team's upload. Raises `Upload.DoesNotExist` also for other teams' uploads."""
    return Upload.objects.get(team=team, pk=upload_id)


def expired_files(run: Run) -> list[str]:
    """Return the kinds of the run's files that a rule of retention has removed."""
    expired = run.artifacts.filter(upload__state=UploadState.EXPIRED)
    return [artifact.get_kind_display() for artifact in expired]


def tokens_of(team: Team) -> QuerySet[RunToken]:
    """Return the team's run tokens, newest first, each with its track and the run that has it."""
    return RunToken.objects.filter(team=team).select_related("track", "issued_to", "run__submission")


def has_unused_token(team: Team, track: Track) -> bool:
    """Return whether the team has a token for a training in the track that no record came with yet."""
    return RunToken.objects.filter(team=team, track=track, record_sha256="").exists()


def token_counts(team: Team) -> QuerySet[Track]:
    """Return the tracks that issued tokens to the team, with the numbers of them.

    They are `issued`; `used` by a run whose ε was recomputed; `waiting` for that; and `lost`, whose challenge has no
    run that might be accounted yet.
    """
    own = Q(run_tokens__team=team)
    unresolved = own & Q(run_tokens__challenged_at__isnull=False, run_tokens__run__isnull=True)
    waiting = Q(
        run_tokens__challenge__in=Run.objects.filter(
            submission__team=team, submission__practice=False, state__in=IN_EVALUATION
        ).values("challenge")
    )
    return Track.objects.filter(own).annotate(
        issued=Count("run_tokens", filter=own),
        used=Count("run_tokens__run", filter=own),
        waiting=Count("run_tokens", filter=unresolved & waiting),
        lost=Count("run_tokens", filter=unresolved & ~waiting),
    )


def public_runs() -> QuerySet[Run]:
    """Return the runs that everybody sees: those with a score, of published submissions that were not withdrawn.

    Boards, pages, feeds, exports and snapshots begin with this, or with `public_submissions`.
    """
    return Run.objects.filter(
        scored_at__isnull=False,
        submission__state=SubmissionState.SUBMITTED,
        submission__published_at__isnull=False,
    )


def is_scored() -> Q:
    """Return the condition that a submission that was submitted has a scored run.

    By those that have none, since there are few: to look for a scored run of each takes PostgreSQL ten times as long.
    """
    scored = Run.objects.filter(submission=OuterRef("submission"), scored_at__isnull=False)
    unscored = Run.objects.filter(~Exists(scored), scored_at__isnull=True)
    return ~Q(pk__in=unscored.values("submission"))


def public_submissions() -> QuerySet[Submission]:
    """Return the submissions that everybody sees: published ones that were not withdrawn, and have a scored run."""
    return Submission.objects.select_related("track", "team").filter(_was_public(SubmissionState.SUBMITTED))


def withdrawn_submissions() -> QuerySet[Submission]:
    """Return the submissions that were public until their teams withdrew them."""
    return Submission.objects.select_related("track", "team").filter(_was_public(SubmissionState.WITHDRAWN))


def _was_public(state: SubmissionState) -> Q:
    scored = Exists(Run.objects.filter(submission=OuterRef("pk"), scored_at__isnull=False))
    return Q(scored, state=state, published_at__isnull=False)


def visible_submissions(user: User | AnonymousUser) -> QuerySet[Submission]:
    """Return the submissions that `user` may see: public ones, and those that they see the private part of."""
    visible = _was_public(SubmissionState.SUBMITTED) | private_to(user)
    return Submission.objects.select_related("track", "team", "phase").filter(visible)


def private_submissions(user: User | AnonymousUser) -> QuerySet[Submission]:
    """Return the submissions of which `user` sees what the public does not: drafts, files, unfinished runs, findings.

    Those of their own team; with the permission to view submissions also those of the others, except in the tracks
    where a team of theirs competes, or that only others organize.
    """
    return Submission.objects.filter(private_to(user))


def sees_private(user: User | AnonymousUser, submission: Submission) -> bool:
    """Return whether `user` sees the private part of the submission; see `private_submissions`."""
    return private_submissions(user).filter(pk=submission.pk).exists()


def private_to(user: User | AnonymousUser) -> Q:
    """Return the condition of `private_submissions`, for a query of submissions."""
    if not user.is_authenticated:
        return Q(pk__in=())
    own = Exists(Membership.objects.filter(team=OuterRef("team"), user=user))
    if not user.has_perm("submissions.view_submission"):
        return Q(own)
    return Q(own) | ~Q(track__in=closed_tracks(user))


def private_through(user: User | AnonymousUser, of: str = "") -> Q:
    """Return the condition of `private_submissions` for rows that lead to them by `of`, such as "run__submission__".

    It names the few teams and tracks that decide, so that the database looks at no submission that isn't shown.
    """
    if not user.is_authenticated:
        return Q(pk__in=())
    teams = Membership.objects.filter(user=user).values_list("team", flat=True)
    own = Q(**{f"{of}team__in": list(teams)})
    if not user.has_perm("submissions.view_submission"):
        return own
    return own | ~Q(**{f"{of}track__in": closed_tracks(user)})


def competed_tracks(user: User) -> QuerySet[Track]:
    """Return the tracks in which a team that the user is or was in has submitted; organizers' baselines don't count."""
    return tracks_competed_in(teams_ever_of(user))


def tracks_competed_in(teams: QuerySet[Team] | Collection[int]) -> QuerySet[Track]:
    """Return the tracks in which one of these teams has submitted, likewise."""
    return Track.objects.filter(
        submissions__team__in=teams,
        submissions__submitted_at__isnull=False,
        submissions__is_baseline=False,
    ).distinct()


def competes(user: User, track: Track) -> bool:
    """Return whether a team that the user is or was in has submitted to the track, for a rank and not as a baseline."""
    return competed_tracks(user).filter(pk=track.pk).exists()


def closed_tracks(user: User) -> list[int]:
    """Return the keys of the tracks whose submissions `user` doesn't judge: where they compete, or others organize."""
    # Fetched at once: they are few, and PostgreSQL can't estimate how much a query excludes by another one.
    found = [competed_tracks(user), others_tracks(user)]
    return [key for tracks in found for key in tracks.values_list("pk", flat=True)]


def returned_times(team: Team, track: Track, now: datetime) -> list[datetime]:
    """Return when the submissions were made that were rejected, and gave their quota slots back."""
    return _times(_counted_together(team, track, now - WINDOW).filter(refunded_for=Refund.REJECTED))


def canceled_times(team: Team, track: Track, now: datetime) -> list[datetime]:
    """Return when submissions to the track were canceled lately, by the team or by somebody who is in it now."""
    # By the audit log: a draft that was submitted and canceled, also several times, looks like any other.
    canceled = AuditEntry.objects.filter(action=CANCELED, at__gt=now - WINDOW)
    entries = [(UUID(key), actor, at) for key, actor, at in canceled.values_list("object_id", "actor", "at")]
    submissions = Submission.objects.filter(pk__in=[key for key, _, _ in entries], track=track)
    teams = dict(submissions.values_list("pk", "team"))
    people = set(Membership.objects.filter(team=team).values_list("user", flat=True))
    return [at for key, actor, at in entries if key in teams and (teams[key] == team.pk or actor in people)]


def _counted_together(team: Team, track: Track, since: datetime) -> QuerySet[Submission]:
    """Return the later submissions that count together with the team's."""
    counted = counts_for(team, "submitted_at")
    return Submission.objects.filter(counted, track=track, submitted_at__gt=since)


def counts_for(team: Team, moment: str, at: datetime | None = None) -> Q:
    """Return the condition of what counts for a team, of rows with a team and, in this field, a moment.

    Those of the team, and those that other teams made while somebody was in them who is in this team `at` a time, or
    now: a person brings along what was used, whichever teams they go through.
    """
    here = {"team": team, "joined_at__lte": at or timezone.now()}
    past = PastMembership.objects.filter(**here, left_at__gt=here["joined_at__lte"])
    people = Q(user__in=Membership.objects.filter(**here).values("user")) | Q(user__in=past.values("user"))
    there = {"team": OuterRef("team"), "joined_at__lte": OuterRef(moment)}
    with_member = Exists(Membership.objects.filter(people, **there))
    with_past_member = Exists(PastMembership.objects.filter(people, **there, left_at__gt=OuterRef(moment)))
    return Q(team=team) | Q(with_member) | Q(with_past_member)


def _times(submissions: QuerySet[Submission]) -> list[datetime]:
    return [time for time in submissions.values_list("submitted_at", flat=True) if time]


def quota_of(team: Team, track: Track, now: datetime, *, practice: bool = False) -> Quota:
    """Return the quota of the team, with its members' other teams, in the track: for ranks, or for practice.

    Withdrawn submissions count, refunded ones don't, and practice submissions count for themselves.
    """
    since = now - 2 * WINDOW
    counted = _counted_together(team, track, since).filter(refunded_at__isnull=True, practice=practice)
    if practice:
        return quota(_times(counted), now, PRACTICE_SLOTS)
    # In one query, as many pages ask: a submission is a row of 0 more submissions.
    none = Value(0, PositiveSmallIntegerField())
    given = team.extra_submissions.filter(track=track, granted_at__gt=since).order_by()
    rows = counted.order_by().values_list("submitted_at", none)
    found = sorted(rows.union(given.values_list("granted_at", "count"), all=True))
    return quota(
        [at for at, count in found if at and not count],
        now,
        track.slots_per_day(now),
        [Extra(at, count) for at, count in found if at and count],
    )


def next_challenge(team: Team, track: Track, now: datetime) -> datetime | None:
    """Return when the site draws another challenge for the team in the track; None when it does now."""
    counted = Q(counts_for(team, "challenged_at"), track=track, challenged_at__gt=now - WINDOW)
    tokens = RunToken.objects.filter(counted).values_list("challenged_at", flat=True)
    indexes = IndexChallenge.objects.filter(counted).values_list("challenged_at", flat=True)
    times = [time for time in (*tokens, *indexes) if time]
    return next_slot(times, now, track.challenges_per_day)
