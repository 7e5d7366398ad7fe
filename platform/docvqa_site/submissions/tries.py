"""Tries: the challenges that the site drew for a team in a track, and which of them were lost.

A run token is spent when its challenge is drawn. Who dislikes a challenge could drop the record and train again until
one suits, so a challenge without an accounted run is a *lost try*. It counts on every run of the team whose own
challenge was drawn later, whatever is in the queue: only its own run, once accounted, takes it away. So a run without
lost tries is one that nobody chose among several, and nothing that happens after its draw adds lost tries to it.
"""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run, RunToken, Submission
from docvqa_site.submissions.states import IN_EVALUATION
from docvqa_site.teams.models import Team
from evaluator.errors import ErrorCode, ProblemError


@dataclass(frozen=True)
class Tries:
    """What became of the tokens that a team had when the challenge of one of its runs was drawn.

    Attributes:
        accounted: Tokens with an accounted run, this run's included.
        lost: Lost tries.
        in_evaluation: How many of the lost tries have a run that is queued or running, and may be accounted yet.
        unused: All others: no challenge was drawn for them by then.
    """

    accounted: int
    lost: int
    in_evaluation: int
    unused: int


def tries_before(own: RunToken) -> Tries:
    """Return what became of the team's tokens by the draw of this one's challenge; its run is accounted, or is now."""
    tokens = RunToken.objects.filter(team=own.team_id, track=own.track_id, issued_at__lte=own.challenged_at)
    waiting = Run.objects.filter(
        challenge=OuterRef("challenge"), submission__team=own.team_id, state__in=IN_EVALUATION
    )
    lost = Q(run__isnull=True, challenged_at__lte=own.challenged_at)
    counts = (
        tokens.exclude(pk=own.pk)
        .annotate(waits=Exists(waiting))
        .aggregate(
            all=Count("pk"),
            accounted=Count("run"),
            lost=Count("pk", filter=lost),
            in_evaluation=Count("pk", filter=lost & Q(waits=True)),
        )
    )
    return Tries(
        accounted=counts["accounted"] + 1,
        lost=counts["lost"],
        in_evaluation=counts["in_evaluation"],
        unused=counts["all"] - counts["accounted"] - counts["lost"],
    )


def lost_tries(team: Team, track: Track) -> QuerySet[RunToken]:
    """Return the team's lost tries in the track, in the order of their challenges."""
    return RunToken.objects.filter(
        team=team, track=track, challenged_at__isnull=False, run__isnull=True
    ).order_by("challenged_at")


def tries_against(submission: Submission) -> QuerySet[RunToken]:
    """Return the lost tries that count on a run of the submission; on a draft without a record, all of them."""
    own = RunToken.objects.filter(
        team=submission.team_id,
        track=submission.track_id,
        challenged_at__isnull=False,
        challenge__in=submission.runs.values("challenge"),
    )
    lost = lost_tries(submission.team, submission.track).exclude(pk__in=own.values("pk"))
    last = own.aggregate(last=Max("challenged_at"))["last"]
    return lost.filter(challenged_at__lte=last) if last else lost


@transaction.atomic
def explain(token: RunToken, explanation: str, actor: User) -> RunToken:
    """Store what the team says about a lost try, in place of what it said before, and return the token.

    Raises `ProblemError` (`E_RUN_TOKEN`) if it is no lost try.
    """
    current = RunToken.objects.select_for_update(of=("self",)).select_related("track").get(pk=token.pk)
    if current.challenged_at is None or current.run_id is not None:
        raise ProblemError.of(
            ErrorCode.RUN_TOKEN,
            message="There is nothing to explain about this run token.",
            where=current.token,
            expected="a lost try: a token whose challenge was drawn, but without a run whose ε was "
            "recomputed",
            found="an unused token"
            if current.challenged_at is None
            else "a token with a run whose ε was recomputed",
            next_step="`pfl tries list` shows your team's lost tries.",
        )
    before, current.explanation = current.explanation, explanation
    current.save(update_fields=["explanation"])
    record(actor, "run_token.explained", current, before=before, after=explanation)
    return current
