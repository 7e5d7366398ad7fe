"""What an organizer sees of a team: its people, and what it did in the tracks that the organizer judges."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from docvqa_site.accounts.models import User
from docvqa_site.challenge.models import TeamRegistration, Track
from docvqa_site.challenge.selectors import organized_tracks
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.selectors import sees_decisions
from docvqa_site.reviews.threads import Thread, threads_for_reviewer
from docvqa_site.submissions.models import IndexChallenge, Submission
from docvqa_site.submissions.quota import Quota
from docvqa_site.submissions.selectors import closed_tracks, quota_of, submissions_of, token_counts, tokens_of
from docvqa_site.submissions.token_fates import TokenFate, fates_of
from docvqa_site.teams.models import Membership, Team
from evaluator.messages.rankings import COUNTED


@dataclass(frozen=True)
class TeamInTrack:
    """A team in one track: its registration, its quotas, and its run tokens, whose counts `token_counts` names."""

    track: Track
    registration: TeamRegistration | None
    quota: Quota
    practice: Quota
    tokens: Track | None


@dataclass(frozen=True)
class Conversation:
    """The messages between a team and the reviewers of one of its proofs, as the organizer may read them."""

    submission: Submission
    threads: list[Thread]


def teams_for(organizer: User) -> QuerySet[Team]:
    """Return all teams, or those that take part in a track of an organizer of single tracks."""
    teams = Team.objects.exclude(submissions__track__is_draft=True)
    if not organizer.organizes_single_tracks:
        return teams
    return teams.filter(takes_part_in(organized_tracks(organizer)))


def takes_part_in(tracks: QuerySet[Track]) -> Q:
    """Return the condition that a team has registered for one of these tracks, or has a draft or submission in it."""
    takes_part = [
        Exists(model.objects.filter(team=OuterRef("pk"), track__in=tracks.order_by()))
        for model in (Submission, TeamRegistration)
    ]
    return Q(*takes_part, _connector=Q.OR)


def named(text: str, organizer: User) -> Q:
    """Return the condition that a text is in the name of a team or of a member; in an address, for who may see it."""
    member = Q(user__name__icontains=text)
    if organizer.has_perm("accounts.view_user"):
        member |= Q(user__email__icontains=text)
    return Q(name__icontains=text) | Q(Exists(Membership.objects.filter(member, team=OuterRef("pk"))))


def with_numbers(teams: QuerySet[Team], organizer: User) -> QuerySet[Team]:
    """Return the teams, each with how many `members` and `submitted` submissions it has, and when the `last` was."""
    judged = Q(submissions__submitted_at__isnull=False) & ~Q(submissions__track__in=closed_tracks(organizer))
    return teams.annotate(
        members=Count("memberships", distinct=True),
        submitted=Count("submissions", filter=judged, distinct=True),
        last=Max("submissions__submitted_at", filter=judged),
    )


def judged_tracks(team: Team, organizer: User) -> QuerySet[Track]:
    """Return the tracks in which the team has done something, but those that the organizer doesn't judge."""
    tracks = {
        *team.registrations.values_list("track", flat=True),
        *team.run_tokens.order_by().values_list("track", flat=True).distinct(),
        *team.submissions.order_by().values_list("track", flat=True).distinct(),
        *team.index_challenges.order_by().values_list("track", flat=True).distinct(),
    }
    return excludable(organizer).filter(pk__in=tracks)


def excludable(organizer: User) -> QuerySet[Track]:
    """Return the public tracks from which the organizer may exclude teams: those that they don't compete in."""
    return organized_tracks(organizer).filter(is_draft=False).exclude(pk__in=closed_tracks(organizer))


def tracks_of(team: Team, organizer: User, now: datetime) -> list[TeamInTrack]:
    """Return the same tracks, each with what the team did there and may still do."""
    registrations = {one.track_id: one for one in team.registrations.select_related("track")}
    tokens = {track.pk: track for track in token_counts(team)}
    active = judged_tracks(team, organizer)
    return [
        TeamInTrack(
            track,
            registrations.get(track.pk),
            quota_of(team, track, now),
            quota_of(team, track, now, practice=True),
            tokens.get(track.pk),
        )
        for track in active.prefetch_related("phases")
    ]


def judged_submissions_of(team: Team, organizer: User) -> QuerySet[Submission]:
    """Return the team's submissions, drafts included, but those that the organizer doesn't judge."""
    return Conflicts(organizer).exclude_from(submissions_of(team))


def unresolved_tokens(team: Team, tracks: Iterable[Track]) -> list[TokenFate]:
    """Return the team's run tokens in these tracks whose challenges are unresolved."""
    open_tokens = tokens_of(team).filter(track__in=tracks, challenged_at__isnull=False, run__isnull=True)
    return fates_of(open_tokens)


def index_challenges(team: Team, tracks: Iterable[Track]) -> QuerySet[IndexChallenge]:
    """Return the indexes of messages that rounds were drawn for, each with whether a run of it `is_counted`."""
    counted = Submission.objects.filter(
        runs__challenge=OuterRef("challenge"), runs__counting=COUNTED, practice=False
    )
    found = IndexChallenge.objects.filter(team=team, track__in=tracks).select_related("track")
    return found.annotate(is_counted=Exists(counted))


def conversations(submissions: QuerySet[Submission], organizer: User) -> list[Conversation]:
    """Return the messages about the proofs of these submissions, for who may read decisions on proofs."""
    if not organizer.has_perm("reviews.view_proofreview"):
        return []
    found = [
        Conversation(one, threads_for_reviewer(one, organizer, sees_decisions=sees_decisions(one, organizer)))
        for one in submissions.filter(review_messages__isnull=False).distinct()
    ]
    return [one for one in found if one.threads]
