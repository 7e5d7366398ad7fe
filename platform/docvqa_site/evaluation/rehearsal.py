"""The test of a draft track: its base weights, untrained, go the way of a submission through the workers' steps.

The workers take their own base weights, and a log without messages, in place of a team's files. Such a run belongs to a
team without members and to a submission that stays a draft, so nobody but the organizers sees it and no figure counts
it; both go when the track is published. A run without training has no record, so it isn't accounted: the draft's
readiness list says so.
"""

import secrets

from django.db import transaction
from django.db.models import QuerySet

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions.models import Run, RunState, Submission
from docvqa_site.submissions.states import IN_EVALUATION, move_run
from docvqa_site.teams.models import Team


def rehearsal_of(track: Track) -> Run | None:
    """Return the run by which the draft was tested last."""
    return Run.objects.filter(submission__in=_tests(track)).order_by("-submission__created_at").first()


@transaction.atomic
def rehearse(track: Track, actor: User) -> Run:
    """Test the draft under its present rules, in place of an earlier test."""
    # Locked, so that of two requests at once one waits, and replaces the other's test.
    track = Track.with_drafts.select_for_update().get(pk=track.pk, is_draft=True)
    discard_rehearsal(track)
    team = Team.objects.create(name="Test of a draft", slug=f"test-{secrets.token_hex(8)}")
    submission = Submission.objects.create(team=team, track=track, created_by=actor, title="Base weights")
    run = Run.objects.create(submission=submission)
    move_run(run, RunState.QUEUED, actor=actor, rules=track.rules(None).model_dump(mode="json"))
    dispatch.start(run)
    record(actor, "track.tested", track)
    return run


def discard_rehearsal(track: Track) -> None:
    """Remove the test of a draft; what a worker still reports of it is dropped."""
    teams = list(_tests(track).values_list("team", flat=True))
    _tests(track).delete()
    Team.objects.filter(pk__in=teams).delete()


def _tests(track: Track) -> QuerySet[Submission]:
    """Return the submissions of the draft that are tests: nobody is in their team, and they were never submitted."""
    return Submission.objects.filter(
        track=track,
        track__is_draft=True,
        submitted_at=None,
        team__memberships=None,
        team__past_memberships=None,
    )


def problem_of(track: Track, run: Run | None) -> str:
    """Return why the test doesn't show that the draft works, in a sentence; empty where it does."""
    if run is None:
        return "The track hasn't been tested."
    if run.rules != track.rules(None).model_dump(mode="json"):
        return "The rules have changed since the test."
    if run.state in IN_EVALUATION:
        return "The test is in progress."
    if run.state != RunState.SCORED:
        return "The test has failed."
    if track.leakage_set and run.results.leakage is None:
        return "The test has a score; its leakage isn't measured yet."
    return ""
