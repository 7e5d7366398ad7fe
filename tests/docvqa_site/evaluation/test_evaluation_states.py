import pytest
from django.db import IntegrityError, transaction

from docvqa_site.audit.transitions import IllegalTransitionError
from docvqa_site.evaluation.models import EvaluationState
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.evaluation.services import evaluate_again
from docvqa_site.evaluation.states import EVALUATION_TRANSITIONS, move_evaluation
from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.results import RunResults
from tests.docvqa_site.factories import make_run, make_user

pytestmark = pytest.mark.django_db


def test_the_table_names_every_state():
    assert set(EVALUATION_TRANSITIONS) == set(EvaluationState)


@pytest.mark.parametrize("before", EvaluationState)
@pytest.mark.parametrize("after", EvaluationState)
def test_only_what_the_table_allows_is_done(before, after):
    evaluation = dispatch.start(make_run(state=RunState.QUEUED))
    evaluation.state = before
    evaluation.save()
    if after in EVALUATION_TRANSITIONS[before]:
        move_evaluation(evaluation, after)
        assert evaluation.state == after
    else:
        with pytest.raises(IllegalTransitionError):
            move_evaluation(evaluation, after)


@pytest.mark.django_db(transaction=True)
def test_states_change_inside_a_transaction_only():
    evaluation = dispatch.start(make_run(state=RunState.QUEUED))
    with pytest.raises(IllegalTransitionError):
        move_evaluation(evaluation, EvaluationState.RUNNING)


def test_a_run_has_one_active_evaluation():
    run = make_run(state=RunState.QUEUED)
    dispatch.start(run)
    with pytest.raises(IntegrityError), transaction.atomic():
        dispatch.start(run)


@pytest.mark.parametrize("state", [RunState.REJECTED, RunState.FAILED])
def test_a_finished_run_is_evaluated_again_without_its_old_results(state, broker, committed):
    run = make_run(state=state, bytes_total=5)
    evaluation = committed(evaluate_again, run, actor=make_user(is_staff=True))
    run = Run.objects.get()
    assert (run.state, run.results) == (RunState.QUEUED, RunResults())
    assert (evaluation.attempt, evaluation.retry) == (1, 0)
    assert [job.evaluation for job in broker.jobs()] == [evaluation.pk]


def test_a_scored_run_keeps_its_results_until_the_new_ones_are_in(committed):
    run = make_run(state=RunState.SCORED, bytes_total=5)
    committed(evaluate_again, run, actor=make_user(is_staff=True))
    run = Run.objects.get()
    assert (run.state, run.results.bytes_total, run.pending) == (RunState.QUEUED, 5, RunResults())
    assert run.is_evaluated_again


@pytest.mark.parametrize("state", [RunState.DRAFT, RunState.QUEUED, RunState.RUNNING])
def test_an_unfinished_run_is_not_evaluated_again(state):
    with pytest.raises(IllegalTransitionError):
        evaluate_again(make_run(state=state), actor=make_user(is_staff=True))
