"""Authentic reports that can't be true of the run: a fault of the worker, which the organizers read of."""

import pytest

from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.evaluation import models
from docvqa_site.evaluation.intake.receiving import receive_report
from docvqa_site.evaluation.models import EvaluationState, StepReport
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions.models import RunState
from evaluator.messages.jobs import Outcome, Step
from tests.docvqa_site.evaluation.messages import make_report, make_result
from tests.docvqa_site.factories import make_run, make_submission, make_track

pytestmark = pytest.mark.django_db


@pytest.fixture
def private_evaluation():
    submission = make_submission(track=make_track(BEST_ANLS_AT_BUDGET), state="submitted")
    return dispatch.start(make_run(submission, state=RunState.QUEUED, budget=4.0))


def advance(evaluation, step):
    for earlier in list(Step)[: list(Step).index(step)]:
        receive_report(make_report(evaluation, earlier))
    evaluation.refresh_from_db()


def report(evaluation, step, **changes):
    """Report the step with parts of its result changed; return what is stored of it."""
    advance(evaluation, step)
    result = make_result(evaluation, step).model_copy(update=changes)
    receive_report(make_report(evaluation, step, result=result))
    evaluation.refresh_from_db()
    return StepReport.objects.get(evaluation=evaluation, step=step)


@pytest.mark.parametrize(
    ("step", "changes", "reason"),
    [
        (Step.VALIDATE, {"sha256": "1" * 64}, "read a checkpoint of SHA-256 1111"),
        (Step.VALIDATE, {"tensors": 0}, "0 tensors"),
        (Step.VALIDATE, {"changed": ["a", "b", "c"]}, "3 of 2 tensors changed"),
        (Step.COMMUNICATION, {"bytes_total": 1}, "3000 + 3000 bytes are not 1"),
        (Step.COMMUNICATION, {"bytes_sent": 1}, "3000 + 3000 bytes are not 1"),
        (
            Step.COMMUNICATION,
            {"bytes_sent": 6000, "first_download_bytes": 1000, "bytes_total": 4999},
            "4999 bytes; from 5000 to 6000 follow from 6000 sent ones",
        ),
        (Step.COMMUNICATION, {"counting": "counted", "rounds_folded": 99}, "99 of 3 rounds folded"),
        (Step.COMMUNICATION, {"counting": "declared"}, "3 of 3 rounds folded, the bytes declared"),
        (Step.COMMUNICATION, {"rounds": 0}, "0 rounds"),
        (Step.COMMUNICATION, {"messages": 0}, "rounds with 0 messages"),
        (Step.COMMUNICATION, {"rounds": 10**6, "messages": 10**6}, "1000000 rounds"),
        (Step.ACCOUNTING, {"delta": 0.1}, "δ = 0.1"),
        (Step.ACCOUNTING, {"epsilon": 400.0}, "ε = 400.0"),
        (Step.ACCOUNTING, {"within_budget": False}, "within is False"),
        (Step.ACCOUNTING, {"rounds": 10**6}, "1000000 rounds"),
        (Step.SCORING, {"anls": 1.0001}, "ANLS = 1.0001"),
        (Step.SCORING, {"accuracy": 17}, "accuracy = 17"),
        (Step.SCORING, {"questions": 0}, "0 questions"),
        (Step.SCORING, {"checkpoint_sha256": "1" * 64}, "read a checkpoint of SHA-256 1111"),
    ],
)
def test_what_can_not_be_true_is_a_fault_of_the_platform(private_evaluation, step, changes, reason, caplog):
    stored = report(private_evaluation, step, **changes)
    assert stored.outcome == Outcome.FAILED
    assert [problem["code"] for problem in stored.problems] == ["E_PLATFORM_FAULT"]
    assert reason in stored.operator_trace
    assert reason in caplog.text
    assert reason not in str(stored.problems)
    assert stored.result is None
    assert private_evaluation.state == EvaluationState.FAILED


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {
                "rounds": 0,
                "rounds_folded": 0,
                "messages": 0,
                "bytes_total": 0,
                "bytes_down": 0,
                "bytes_up": 0,
            },
            id="no messages",
        ),
        pytest.param({"rounds": 5, "messages": 2}, id="rounds without clients"),
        pytest.param(
            {"bytes_sent": 6000, "first_download_bytes": 1000, "bytes_total": 5004, "decoder_bytes": 4},
            id="a free first download and a decoder",
        ),
        pytest.param({"counting": "counted", "rounds_folded": 3, "bytes_sent": 6000}, id="counted bytes"),
    ],
)
def test_what_a_log_may_say_is_no_fault_of_the_platform(private_evaluation, changes):
    assert report(private_evaluation, Step.COMMUNICATION, **changes).outcome == Outcome.PASSED


def test_all_runs_are_scored_on_the_test_set_of_the_first(private_evaluation):
    assert report(private_evaluation, Step.SCORING).outcome == Outcome.PASSED
    other = dispatch.start(
        make_run(make_submission(track=private_evaluation.run.submission.track, state="submitted"),
                 state=RunState.QUEUED, budget=4.0)
    )  # fmt: skip
    stored = report(other, Step.SCORING, test_set_sha256="1" * 64)
    assert stored.outcome == Outcome.FAILED
    assert "Give a changed test set a new name" in stored.operator_trace


def test_an_organizer_may_accept_a_changed_test_set(private_evaluation):
    models.TestSet.objects.create(name=private_evaluation.run.rules["test_set"], sha256="1" * 64)
    models.TestSet.objects.get().delete()
    assert report(private_evaluation, Step.SCORING).outcome == Outcome.PASSED
    assert models.TestSet.objects.get().sha256 == "0" * 64
