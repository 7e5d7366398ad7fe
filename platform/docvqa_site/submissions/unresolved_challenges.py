"""The challenges that the site drew for a team in a track: which were accounted, and which are unresolved.

A run token is spent when its challenge is drawn. Who dislikes a challenge could drop the record and train again until
one suits, so a challenge without an accounted run is *unresolved*. It counts on every run of the team whose own
challenge was drawn later, whatever is in the queue: only its own run, once accounted, takes it away. So a run without
unresolved challenges is one that nobody chose among several, and nothing that happens after its draw adds any to it.

The challenges of other teams count too where somebody was on them who was on this team when its run's challenge was
drawn. A run for practice resolves no challenge: nobody but its team sees what became of it.

An index of messages has a challenge too, which opens some rounds. One without a run whose bytes were counted is
unresolved in the same way: the team may have dropped the index because the challenge opened a round that doesn't follow
from its messages. Those of the run's own team count, whoever uploaded its index first, and those of that team too.
"""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import IndexChallenge, Run, RunToken, Submission
from docvqa_site.submissions.selectors import counts_for
from docvqa_site.submissions.states import IN_EVALUATION
from docvqa_site.teams.models import Team
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.rankings import COUNTED


@dataclass(frozen=True)
class Outcomes:
    """What became of the tokens that a team had when the challenge of one of its runs was drawn.

    Attributes:
        accounted: Tokens with an accounted run, this run's included.
        unresolved: Unresolved challenges.
        elsewhere: How many of the unresolved challenges are other teams', in which somebody of this one was.
        in_evaluation: How many of the unresolved ones have a run that is queued or running, and may be accounted yet.
        unused: All others: no challenge was drawn for them by then.
    """

    accounted: int
    unresolved: int
    elsewhere: int
    in_evaluation: int
    unused: int


def outcomes_before(own: RunToken) -> Outcomes:
    """Return what became of the team's tokens by the draw of this one's challenge; its run is accounted, or is now."""
    tokens = counted_with(own).filter(issued_at__lte=own.challenged_at)
    waiting = Run.objects.filter(
        challenge=OuterRef("challenge"), submission__practice=False, state__in=IN_EVALUATION
    )
    unresolved = Q(run__isnull=True, challenged_at__lte=own.challenged_at)
    counts = (
        tokens.exclude(pk=own.pk)
        .annotate(waits=Exists(waiting))
        .aggregate(
            all=Count("pk"),
            accounted=Count("run"),
            unresolved=Count("pk", filter=unresolved),
            elsewhere=Count("pk", filter=unresolved & ~Q(team=own.team_id)),
            in_evaluation=Count("pk", filter=unresolved & Q(waits=True)),
        )
    )
    return Outcomes(
        accounted=counts["accounted"] + 1,
        unresolved=counts["unresolved"],
        elsewhere=counts["elsewhere"],
        in_evaluation=counts["in_evaluation"],
        unused=counts["all"] - counts["accounted"] - counts["unresolved"],
    )


def counted_with(own: RunToken) -> QuerySet[RunToken]:
    """Return the tokens that count together with this one: the team's, and earlier ones that its people brought."""
    brought = Q(
        counts_for(own.team, "challenged_at", own.challenged_at), challenged_at__lte=own.challenged_at
    )
    return RunToken.objects.filter(Q(team=own.team_id) | brought, track=own.track_id)


def unresolved_challenges(team: Team, track: Track) -> QuerySet[RunToken]:
    """Return the team's unresolved challenges in the track, in the order of their challenges."""
    return RunToken.objects.filter(
        team=team, track=track, challenged_at__isnull=False, run__isnull=True
    ).order_by("challenged_at")


def challenges_against(submission: Submission) -> QuerySet[RunToken]:
    """Return the unresolved challenges that count on a run of the submission, in the order of their challenges.

    On a draft without a record, they are all. Some may be other teams'; only those explain theirs.
    """
    own = RunToken.objects.filter(
        team=submission.team_id,
        track=submission.track_id,
        challenged_at__isnull=False,
        challenge__in=submission.runs.values("challenge"),
    )
    last = own.aggregate(last=Max("challenged_at"))["last"] or timezone.now()
    counted = counts_for(submission.team, "challenged_at", last)
    unresolved = RunToken.objects.filter(
        counted, track=submission.track_id, challenged_at__lte=last, run__isnull=True
    )
    return unresolved.exclude(pk__in=own.values("pk")).order_by("challenged_at")


def unresolved_indexes(own: IndexChallenge, team: Team, track: Track) -> QuerySet[IndexChallenge]:
    """Return the unresolved challenges that count on a run of the team in the track with this index.

    They are indexes drawn for in the track before this one, for the team or for the one that this index was drawn for.
    """
    at = own.challenged_at
    tried = counts_for(team, "challenged_at", at) | counts_for(own.team, "challenged_at", at)
    counted = Run.objects.filter(
        challenge=OuterRef("challenge"), counting=COUNTED, submission__practice=False
    )
    earlier = IndexChallenge.objects.filter(tried, track=track, challenged_at__lte=at)
    return earlier.filter(~Exists(counted)).exclude(pk=own.pk)


@transaction.atomic
def explain(token: RunToken, explanation: str, actor: User) -> RunToken:
    """Store what the team says about an unresolved challenge, in place of what it said before, and return the token.

    Raises `ProblemError` (`E_RUN_TOKEN`) if its challenge isn't unresolved.
    """
    current = RunToken.objects.select_for_update(of=("self",)).select_related("track").get(pk=token.pk)
    if current.challenged_at is None or current.run_id is not None:
        raise ProblemError.of(
            ErrorCode.RUN_TOKEN,
            message="There is nothing to explain about this run token.",
            where=current.token,
            expected="a token with an unresolved challenge, for which no ε was recomputed",
            found="an unused token"
            if current.challenged_at is None
            else "a token with a run whose ε was recomputed",
            next_step="`pfl challenges list` shows your team's unresolved challenges.",
        )
    before, current.explanation = current.explanation, explanation
    current.save(update_fields=["explanation"])
    record(actor, "run_token.explained", current, before=before, after=explanation)
    return current
