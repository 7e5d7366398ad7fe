"""Leakage: measured after the score, of what has a rank, and never in its way."""

import pytest
from django.core.management import CommandError, call_command

from docvqa_site.audit.versions import boards_versions
from docvqa_site.evaluation import clock, services
from docvqa_site.evaluation.display.status import statuses
from docvqa_site.evaluation.examining import leakage
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState, Worker
from docvqa_site.evaluation.queue import dispatch, places
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from evaluator.messages.jobs import SCORING_QUEUE, ArtifactKind, LeakageSet, Outcome, Step
from evaluator.messages.leakage import Leakage
from tests.docvqa_site.evaluation.messages import fresh, make_leakage, make_report
from tests.docvqa_site.factories import make_run, make_submission, make_track, make_user

pytestmark = pytest.mark.django_db

STEPS = [Step.VALIDATE, Step.COMMUNICATION, Step.SCORING]


def make_queued_run(**rules):
    track = make_track(**{"anls_threshold": 0.4, "leakage_set": "red-team", **rules})
    return make_run(make_submission(track=track, state=SubmissionState.SUBMITTED), state=RunState.QUEUED)


def score(run):
    evaluation = dispatch.start(run)
    for step in STEPS:
        receive_report(make_report(evaluation, step))
    return fresh(run)


def measurement(run):
    return run.evaluations.filter(step=Step.LEAKAGE).order_by("-attempt").first()


@pytest.fixture
def scored():
    """A run that has just been scored, with its measurement queued."""
    return score(make_queued_run())


def test_a_run_with_a_rank_is_measured_after_it_has_its_score(broker, committed):
    run = committed(score, make_queued_run())
    assert (run.state, run.results.anls, run.results.leakage) == (RunState.SCORED, 0.5, None)
    assert measurement(run).state == EvaluationState.QUEUED
    (job,) = [job for job in broker.jobs(SCORING_QUEUE) if job.step is Step.LEAKAGE]
    assert job.rules.leakage_set == LeakageSet(folder="red-team", split="red")
    assert [ref.kind for ref in job.artifacts] == [ArtifactKind.CHECKPOINT]


def test_the_figures_join_the_results_and_the_boards_change(scored):
    track = scored.submission.track
    before = boards_versions([track.pk])
    receive_report(make_report(measurement(scored), Step.LEAKAGE))
    run = fresh(scored)
    assert (run.state, run.results.anls, run.results.leakage.auc) == (RunState.SCORED, 0.5, 0.65)
    assert measurement(run).state == EvaluationState.PASSED
    assert boards_versions([track.pk]) != before


def test_nothing_found_is_stored_as_measured(scored):
    result = make_leakage(measurement(scored)).model_copy(update={"leakage": Leakage(providers=40)})
    receive_report(make_report(measurement(scored), Step.LEAKAGE, result=result))
    assert fresh(scored).results.leakage == Leakage(providers=40)


@pytest.mark.parametrize("rules", [{"anls_threshold": 0.6}, {"leakage_set": ""}], ids=["no rank", "no set"])
def test_other_runs_are_not_measured(rules):
    assert measurement(score(make_queued_run(**rules))) is None


def test_a_fault_is_tried_again_and_costs_the_run_nothing(scored, settings):
    settings.EVALUATION_BACKOFF_SECONDS = [0]
    first = measurement(scored)
    receive_report(make_report(first, Step.LEAKAGE, Outcome.FAILED))
    second = measurement(scored)
    assert fresh(first).state == EvaluationState.FAILED
    assert (second.state, second.faults) == (EvaluationState.QUEUED, 1)
    receive_report(make_report(second, Step.LEAKAGE, Outcome.FAILED))
    assert measurement(scored) == second
    run = fresh(scored)
    assert (run.state, run.results.anls) == (RunState.SCORED, 0.5)
    assert run.submission.refunded_at is None


def test_what_a_worker_rejects_is_no_news_to_the_team(scored, mailoutbox):
    sent = len(mailoutbox)
    receive_report(make_report(measurement(scored), Step.LEAKAGE, Outcome.REJECTED))
    assert fresh(scored).state == RunState.SCORED
    assert len(mailoutbox) == sent


def test_a_report_on_another_checkpoint_is_not_believed(scored):
    result = make_leakage(measurement(scored)).model_copy(update={"checkpoint_sha256": "f" * 64})
    receive_report(make_report(measurement(scored), Step.LEAKAGE, result=result))
    assert fresh(scored).results.leakage is None


def test_evaluating_again_ends_the_measurement_and_keeps_what_was_measured(scored):
    receive_report(make_report(measurement(scored), Step.LEAKAGE))
    again = services.evaluate_again(scored, actor=make_user())
    assert fresh(scored).results.leakage.auc == 0.65
    for step in STEPS:
        receive_report(make_report(again, step))
    run = fresh(scored)
    assert (run.state, run.results.leakage.auc) == (RunState.SCORED, 0.65)
    newest = measurement(run)
    assert newest.state == EvaluationState.QUEUED
    services.evaluate_again(run, actor=make_user())
    assert fresh(newest).state == EvaluationState.CANCELED
    assert Evaluation.objects.get(run=run, state=EvaluationState.QUEUED).step == Step.VALIDATE


def test_the_status_of_a_run_shows_the_attempt_at_its_score(scored):
    (status,) = statuses([Run.objects.get(pk=scored.pk)])
    assert (status.attempt, status.step) == (1, None)
    assert [step.step for step in status.steps] == STEPS
    assert status.is_final


def test_organizers_have_the_rest_measured_by_a_command(scored, capsys):
    slug = scored.submission.track.slug
    measurement(scored).delete()
    call_command("measure_leakage", slug)
    assert capsys.readouterr().out == "1 run queued.\n"
    assert measurement(scored).state == EvaluationState.QUEUED
    # It waits already.
    call_command("measure_leakage", slug)
    assert capsys.readouterr().out == "Nothing to measure.\n"
    receive_report(make_report(measurement(scored), Step.LEAKAGE))
    assert not leakage.measure(fresh(scored))
    assert leakage.measure(fresh(scored), again=True)


def test_no_score_waits_for_a_measurement(scored, broker, committed, settings):
    # There is room for one step.
    settings.EVALUATION_SENT_STEPS = 1
    Worker.objects.all().delete()
    measured = measurement(scored)
    other = dispatch.start(make_run(make_submission(track=scored.submission.track), state=RunState.QUEUED))
    Evaluation.objects.filter(pk=other.pk).update(step=Step.SCORING)
    committed(dispatch.dispatch_on_commit)
    (job,) = broker.jobs(SCORING_QUEUE)
    assert job.step is Step.SCORING
    measured = fresh(measured)
    assert measured.sent_at is None
    assert places.places([measured, fresh(other)], clock.now()) == {other.pk: 1, measured.pk: 2}


def test_a_measurement_ends_when_its_track_names_no_data_any_more(scored, broker, committed):
    measured, track = measurement(scored), scored.submission.track
    track.leakage_set = ""
    track.save()
    committed(dispatch.dispatch_on_commit)
    assert broker.jobs(SCORING_QUEUE) == []
    assert fresh(measured).state == EvaluationState.CANCELED
    assert fresh(scored).state == RunState.SCORED


@pytest.mark.parametrize("slug", ["nothing", "track-without"])
def test_a_track_without_a_leakage_set_has_nothing_to_measure(slug):
    make_track(slug="track-without")
    with pytest.raises(CommandError, match=r"There is no track|has no leakage data set"):
        call_command("measure_leakage", slug)
