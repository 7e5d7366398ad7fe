"""The parts of a test set that is split: on which of them results are, and the private scores before they are revealed.

Until the organizers reveal it, the private score of a run is in one place only: the detail of its scoring step's
report, which nobody but the organizers reads. What `drawn_means` stores of the private part is read by nothing before
that. The run's results are those on the public part. So whatever shows, ranks, exports or mails results can't show
more. Revealing writes the private scores into the results, and the public ones beside them.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.versions import boards_changed
from docvqa_site.challenge.models import RuleChange, Track
from docvqa_site.evaluation.models import EvaluationState, ScoredPart, StepReport, TestSet
from docvqa_site.evaluation.notifications import notify_of_reveal
from docvqa_site.evaluation.test_sets.question_types import question_types
from docvqa_site.submissions.models import Run
from evaluator.messages.jobs import GroupScore, ScoringDetail, Step
from evaluator.messages.results import QuestionTypeScore, RunResults, supported_decimals
from evaluator.scoring.metrics import cut

# Of the scores of practice submissions.
PRACTICE_DECIMALS = 2
# What the tracks' pages note when the private part is revealed.
NOTE = "Results: public part of the test set → private part."
# An earlier attempt may have left some.
NO_PUBLIC_SCORES = {"public_anls": None, "public_accuracy": None}


def scored_test_set(track: Track) -> TestSet | None:
    """Return the test set of a track; None before a run was scored on it."""
    return TestSet.objects.filter(name=track.test_set).first()


def scored_part(track: Track) -> ScoredPart:
    test_set = scored_test_set(track)
    return test_set.part if test_set else ScoredPart.ALL


def tracks_on(test_set: TestSet) -> list[Track]:
    return list(Track.objects.filter(test_set=test_set.name).prefetch_related("phases"))


def earliest_reveal(tracks: Iterable[Track], now: datetime) -> datetime | None:
    """Return when the last of these tracks closes; None where one has no deadline, or all are closed for good."""
    ends = [track.closes_at for track in tracks]
    last = max((end for end in ends if end), default=now)
    return last if all(ends) and last > now else None


def open_because(tracks: Iterable[Track], now: datetime) -> str:
    """Return why the private part of these tracks' test set can't be revealed; empty if it can."""
    running = [track.name for track in tracks if not track.closed_because(now)]
    if not running:
        return ""
    verb = "is" if len(running) == 1 else "are"
    return (
        f"{', '.join(running)} {verb} still open. Once private scores are public, later submissions could be fitted to "
        "them. Close or pause all tracks on this test set first."
    )


def private_scores(runs: Collection[UUID]) -> dict[UUID, GroupScore]:
    """Return the scores on the private part of these runs, each by the attempt from which its results are."""
    found = {run: detail.part("private") for run, detail in scoring_details(runs).items()}
    return {run: score for run, score in found.items() if score is not None}


def scoring_details(runs: Collection[UUID]) -> dict[UUID, ScoringDetail]:
    """Return the details of the scores of these runs, each by the attempt from which its results are."""
    reports = StepReport.objects.filter(
        step=Step.SCORING, evaluation__run__in=runs, evaluation__state=EvaluationState.PASSED
    ).order_by("evaluation__attempt")
    # The last attempt is that of the results.
    return {
        run: ScoringDetail.model_validate(detail)
        for run, detail in reports.values_list("evaluation__run", "detail")
        if detail
    }


def revealed(results: RunResults, private: GroupScore, types: Sequence[QuestionTypeScore] = ()) -> RunResults:
    """Return results on the public part as they are once the private part is revealed, with the scores of `types`."""
    return results.model_copy(
        update={
            "anls": private.anls,
            "anls_low": private.anls_low,
            "anls_high": private.anls_high,
            "accuracy": private.accuracy,
            "public_anls": results.anls,
            "public_accuracy": results.accuracy,
            "decimals": supported_decimals(private.questions),
            "question_types": list(types),
        }
    )


def stored_scores(results: RunResults, detail: ScoringDetail | None, *, is_revealed: bool) -> RunResults:
    """Return the results of a scoring as they are stored: on the private part where that is revealed."""
    if detail is None:
        return results.model_copy(update={**NO_PUBLIC_SCORES, "question_types": []})
    private = detail.part("private")
    if private and is_revealed:
        return revealed(results, private, question_types(detail, "private"))
    types = question_types(detail, "public" if private else "")
    return results.model_copy(update={**NO_PUBLIC_SCORES, "question_types": types})


def with_practice_scores(results: RunResults) -> RunResults:
    """Return the results of a practice submission: scores of two decimals, by which nothing can be chosen."""
    scores = {name: getattr(results, name) for name in ("anls", "accuracy", "public_anls", "public_accuracy")}
    shown = {
        name: float(cut(score, PRACTICE_DECIMALS)) for name, score in scores.items() if score is not None
    }
    decimals = min(results.decimals, PRACTICE_DECIMALS)
    rest: dict[str, object] = {"anls_low": None, "anls_high": None, "question_types": []}
    return results.model_copy(update={**shown, **rest, "decimals": decimals})


@transaction.atomic
def reveal(test_set: TestSet, reason: str, *, actor: User, now: datetime | None = None) -> str:
    """Make the private scores those of all runs on the test set, and notify their teams; return why not, or "".

    A run that is being scored meanwhile waits for this, or this for it.
    """
    now = now or timezone.now()
    # Runs first, as those who report on them lock them; then nobody waits for the other.
    ranked = Run.objects.filter(rules__test_set=test_set.name, submission__practice=False)
    runs = list(ranked.select_for_update(of=("self",)).order_by("pk"))
    current = TestSet.objects.select_for_update().get(pk=test_set.pk)
    tracks = list(Track.objects.select_for_update().filter(test_set=test_set.name).order_by("pk"))
    if current.part is not ScoredPart.PUBLIC:
        return "The test set isn't split, or its private part has already been revealed."
    if reason_against := open_because(tracks, now):
        return reason_against
    current.revealed_at = now
    current.save(update_fields=["revealed_at"])
    details = scoring_details([run.pk for run in runs if run.scored_at is not None])
    scores = {run: score for run, detail in details.items() if (score := detail.part("private"))}
    for run in runs:
        if run.pk in scores:
            types = question_types(details[run.pk], "private")
            run.results = revealed(run.results, scores[run.pk], types)
            run.save(update_fields=["results"])
    for track in tracks:
        RuleChange.objects.create(track=track, at=now, text=NOTE, reason=reason)
        boards_changed(track.pk)
    record(actor, "test_set.revealed", current, test_set=current.name, runs=len(scores), reason=reason)
    notify_of_reveal(current, tracks, scores, reason)
    return ""
