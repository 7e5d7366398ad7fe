"""Reports that anyone who may write to the intake could send: none counts unless its job's worker signed it."""

from itertools import product

import pytest

from docvqa_site.evaluation import tasks
from docvqa_site.evaluation.models import EvaluationState, StepReport
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.queue.step_secrets import step_secret
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.jobs import Outcome, Step
from evaluator.messages.signed import sign
from tests.docvqa_site.evaluation.messages import make_progress, make_report, signed
from tests.docvqa_site.factories import make_run

pytestmark = pytest.mark.django_db

STEPS = [Step.VALIDATE, Step.COMMUNICATION, Step.SCORING]


@pytest.fixture
def evaluation():
    return dispatch.start(make_run(state=RunState.QUEUED))


def unsigned(report):
    return report.model_dump(mode="json")


def signed_with_a_guess(report):
    return sign(report, "0" * 64).model_dump(mode="json")


def signed_for_another_evaluation(report):
    other = dispatch.start(make_run(state=RunState.QUEUED))
    return sign(report, step_secret(other.pk, other.attempt, report.step)).model_dump(mode="json")


def signed_for_another_attempt(report):
    secret = step_secret(report.evaluation, report.attempt + 1, report.step)
    return sign(report, secret).model_dump(mode="json")


def signed_for_another_step(report):
    step = Step.SCORING if report.step is Step.VALIDATE else Step.VALIDATE
    return sign(report, step_secret(report.evaluation, report.attempt, step)).model_dump(mode="json")


def changed_after_it_was_signed(report):
    message = signed(report)
    return message | {"content": message["content"].replace('"attempt":1', '"attempt": 1')}


def with_a_signature_of_something_else(report):
    return signed(report) | {"signature": signed(make_progress(report_about(report)))["signature"]}


def report_about(report):
    return type("About", (), {"pk": report.evaluation, "attempt": report.attempt, "step": report.step})


FORGERIES = [
    unsigned,
    signed_with_a_guess,
    signed_for_another_evaluation,
    signed_for_another_attempt,
    signed_for_another_step,
    changed_after_it_was_signed,
    with_a_signature_of_something_else,
]


@pytest.mark.parametrize(("forged", "outcome"), product(FORGERIES, Outcome))
def test_a_forged_report_changes_nothing(evaluation, forged, outcome, caplog):
    for step in STEPS:
        tasks.receive_report(forged(make_report(evaluation, step, outcome)))
    run = Run.objects.get(pk=evaluation.run_id)
    assert run.state == RunState.QUEUED
    assert run.results.anls is None
    assert not StepReport.objects.exists()
    assert caplog.text.count("malformed") == len(STEPS)


@pytest.mark.parametrize("forged", FORGERIES[:5])
def test_forged_progress_keeps_nothing_alive(evaluation, forged):
    tasks.receive_progress(forged(make_progress(evaluation)))
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.QUEUED
    assert evaluation.heartbeat_at is None


def test_the_worker_that_holds_the_job_is_believed(evaluation):
    job = dispatch.job(evaluation)
    tasks.receive_report(sign(make_report(evaluation, job.step), job.secret).model_dump(mode="json"))
    assert StepReport.objects.get().outcome == Outcome.PASSED


def test_a_job_sent_before_the_secret_key_was_changed_still_counts(evaluation, settings):
    job = dispatch.job(evaluation)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another key", [settings.SECRET_KEY]
    tasks.receive_report(sign(make_report(evaluation, job.step), job.secret).model_dump(mode="json"))
    assert StepReport.objects.exists()


def test_the_secret_is_not_shown_with_the_job(evaluation):
    job = dispatch.job(evaluation)
    assert job.secret not in repr(job)
