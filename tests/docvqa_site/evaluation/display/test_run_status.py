import html
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from docvqa_site.evaluation.display.status import statuses
from docvqa_site.evaluation.models import Evaluation, EvaluationState, StepReport
from docvqa_site.submissions.models import RunState
from evaluator.mechanisms.events import (
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocationGaussian,
    TwoStage,
)
from evaluator.mechanisms.noise import Noise
from evaluator.messages.jobs import ArtifactKind, Step
from tests.docvqa_site.factories import make_artifact, make_epsilons, make_run, make_submission, owner_of
from tests.docvqa_site.submissions.drafts import make_private_track

pytestmark = pytest.mark.django_db

PROVENANCE = {
    "worker": "gpu-1",
    "evaluator_version": "1.0",
    "finished_at": "2026-03-01T12:00:00Z",
    "libraries": {},
}
PROBLEM = {"code": "E_LOG_ROW", "message": "Not four numbers.", "where": "line 7"}


def evaluate(run, attempt=1, step=Step.VALIDATE, state=EvaluationState.RUNNING, **fields):
    return Evaluation.objects.create(run=run, attempt=attempt, step=step, state=state, **fields)


def report(evaluation, step, outcome="passed", problems=(), result=None):
    return StepReport.objects.create(
        evaluation=evaluation,
        step=step,
        outcome=outcome,
        problems=list(problems),
        result=result,
        provenance=PROVENANCE,
    )


def status_of(run):
    (status,) = statuses([run])
    return status


def states(status):
    return [step.state for step in status.steps]


def test_a_draft_has_no_steps():
    assert status_of(make_run()).steps == []


def test_a_run_without_an_attempt_waits():
    status = status_of(make_run(state=RunState.QUEUED))
    assert (status.attempt, states(status), status.queue_position) == (0, ["waiting"] * 3, None)


def test_a_private_run_is_accounted():
    run = make_run(make_submission(track=make_private_track()), budget=1.0, state=RunState.QUEUED)
    assert [step.step for step in status_of(run).steps] == [
        Step.VALIDATE,
        Step.COMMUNICATION,
        Step.ACCOUNTING,
        Step.SCORING,
    ]


def test_progress_and_the_sign_of_life_are_those_of_the_current_step():
    run, now = make_run(state=RunState.RUNNING), timezone.now()
    evaluation = evaluate(run, step=Step.SCORING, done=30, total=100, remaining_s=250, heartbeat_at=now)
    report(evaluation, Step.VALIDATE)
    report(evaluation, Step.COMMUNICATION)
    status = status_of(run)
    assert states(status) == ["passed", "passed", "running"]
    assert (status.step, status.done, status.total, status.heartbeat_at) == (Step.SCORING, 30, 100, now)
    assert (status.remaining_s, status.time_left) == (250, "about 4 min left")
    assert status.queue_position is None
    assert not status.is_final


def test_nothing_is_left_of_an_attempt_that_has_ended():
    run = make_run(state=RunState.REJECTED)
    evaluate(run, step=Step.SCORING, state=EvaluationState.REJECTED, remaining_s=250)
    assert (status_of(run).remaining_s, status_of(run).time_left) == (None, "")


def test_a_waiting_run_knows_its_place_among_those_that_share_its_workers():
    def waiting(turn, step, state=EvaluationState.QUEUED, **fields):
        run = make_run(state=RunState.QUEUED)
        evaluate(run, step=step, state=state, turn=turn, ticket=turn, **fields)
        return run

    now = timezone.now()
    waiting(1, Step.SCORING)
    waiting(2, Step.COMMUNICATION)
    waiting(3, Step.VALIDATE, EvaluationState.RUNNING)
    waiting(4, Step.VALIDATE)
    waiting(5, Step.VALIDATE, not_before=now + timedelta(minutes=1))
    own = waiting(6, Step.VALIDATE)
    waiting(7, Step.VALIDATE)
    sent = waiting(8, Step.VALIDATE, sent_at=now)
    status = status_of(own)
    assert (status.queue_position, status.runs_before) == (4, 3)
    assert status_of(sent).queue_position == 1


def test_a_run_that_waits_out_a_pause_says_when_it_is_tried_again(client):
    run, later = make_run(state=RunState.QUEUED), timezone.now() + timedelta(minutes=10)
    evaluate(run, attempt=2, state=EvaluationState.QUEUED, not_before=later)
    status = status_of(run)
    assert (status.queue_position, status.next_attempt_at) == (None, later)
    client.force_login(run.submission.created_by)
    page = client.get(run.submission.get_absolute_url()).text
    assert "failed because of a platform error" in page
    assert re.search(r"The next attempt starts .*\(in (9|10)\xa0min\)", page)


def test_a_pause_that_is_over_is_not_mentioned():
    run, before = make_run(state=RunState.QUEUED), timezone.now() - timedelta(minutes=10)
    evaluate(run, attempt=2, state=EvaluationState.QUEUED, not_before=before)
    assert (status_of(run).queue_position, status_of(run).next_attempt_at) == (1, None)


def test_a_rejected_run_shows_the_problems_and_where_it_ended():
    run = make_run(state=RunState.REJECTED)
    evaluation = evaluate(run, step=Step.COMMUNICATION, state=EvaluationState.REJECTED)
    report(evaluation, Step.VALIDATE)
    report(evaluation, Step.COMMUNICATION, "rejected", [PROBLEM])
    status = status_of(run)
    assert states(status) == ["passed", "rejected", "not run"]
    assert [problem.where for problem in status.problems] == ["line 7"]
    assert (status.step, status.is_final) == (None, True)


def test_a_run_that_was_lost_says_that_it_is_our_fault():
    run = make_run(state=RunState.FAILED)
    evaluate(run, step=Step.SCORING, state=EvaluationState.LOST)
    status = status_of(run)
    assert [problem.code for problem in status.problems] == ["E_PLATFORM_FAULT"]
    assert states(status)[-1] == "failed"


def test_only_the_newest_attempt_counts():
    run = make_run(state=RunState.RUNNING)
    report(evaluate(run, 1, Step.VALIDATE, EvaluationState.FAILED), Step.VALIDATE, "failed", [PROBLEM])
    evaluate(run, 2)
    status = status_of(run)
    assert (status.attempt, status.problems, states(status)[0]) == (2, [], "running")


def test_the_number_of_queries_does_not_grow_with_the_runs(django_assert_num_queries):
    submission = make_submission(track=make_private_track())
    runs = [make_run(submission, budget=budget, state=RunState.RUNNING) for budget in (1.0, 4.0, 8.0)]
    for run in runs:
        report(evaluate(run, step=Step.SCORING), Step.VALIDATE)
    with django_assert_num_queries(3):
        assert len(statuses(runs)) == 3


def test_nor_with_those_that_wait(django_assert_num_queries):
    submission = make_submission(track=make_private_track())
    runs = [make_run(submission, budget=budget, state=RunState.QUEUED) for budget in range(1, 9)]
    for run in runs:
        evaluate(run, state=EvaluationState.QUEUED)
    # Evaluations, their reports, the time, the places in the one queue, and which queues are paused.
    with django_assert_num_queries(6):
        found = statuses(runs)
    assert {status.queue_position for status in found} == {1, 2, 3, 4, 5, 6, 7, 8}


def accounted_run(*events, **accounting):
    """A run with what its accounting reported."""
    submission = make_submission(track=make_private_track(), state="submitted")
    run = make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9, epsilons=make_epsilons(3.9))
    evaluation = evaluate(run, state=EvaluationState.PASSED, finished_at=timezone.now())
    found = {
        "kind": "accounting",
        "delta": 1e-5,
        "events": [event.model_dump(mode="json") for event in events],
    }
    report(evaluation, Step.ACCOUNTING, result=found | accounting)
    return run


def evidence(client, run):
    return " ".join(client.get(f"{run.submission.get_absolute_url()}runs/{run.pk}/").text.split())


def cells(page, caption):
    table = page[page.index(caption) :].partition("</table>")[0]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", table)]
    return [[re.sub("<[^>]*>", "", cell) for cell in row] for row in rows if row]


def test_the_inputs_of_epsilon_are_for_those_who_may_read_the_record(client):
    run = accounted_run(Gaussian(effective_noise_multiplier=4.5, rounds=3), clip_norms=[0.5, 0.5])
    assert "Open in the calculator" not in evidence(client, run)
    client.force_login(owner_of(run.submission.team))
    page = evidence(client, run)
    assert "noise_multiplier=4.5&amp;rounds=3" in page
    assert "Only the team and the organizers see these inputs" in page
    client.logout()
    make_artifact(run, ArtifactKind.TRAINING_RECORD, b"the record", "record.jsonl")
    page = evidence(client, run)
    assert "noise_multiplier=4.5&amp;rounds=3" in page
    assert "Clip norm: 0.5; ε doesn't depend on it." in page
    assert "Only the team and the organizers see these inputs" not in page
    assert cells(page, "3 rounds, from the training record") == [
        ["3", "all", "all", "4.5", "Open in the calculator"]
    ]


@pytest.mark.parametrize(
    ("noise", "holds"),
    [
        ({"placement": "server"}, "ε doesn't hold against the server, which has to be trusted."),
        ({"placement": "client_full"}, "so ε holds against the server, too."),
        (
            {"placement": "client_share", "secure_aggregation": "simulated"},
            "nothing but trust hid the updates in this run.",
        ),
        ({"placement": "client_share", "secure_aggregation": "real"}, "a protocol shows the server nothing"),
    ],
)
def test_everybody_reads_whether_epsilon_holds_against_the_server(client, noise, holds):
    stated = Noise(multiplier=4.5, **noise).model_dump(mode="json")
    run = accounted_run(Gaussian(effective_noise_multiplier=4.5, rounds=3), noise=stated)
    assert holds in html.unescape(evidence(client, run))


def test_each_group_of_rounds_has_a_row_and_a_link_of_its_own(client):
    sampled = PoissonGaussian(sampling_rate=0.1125, effective_noise_multiplier=1.21)
    fixed = FixedSizeGaussian(sampling_rate=0.25, effective_noise_multiplier=1.5)
    run = accounted_run(
        TwoStage(client_rate=0.2, within=sampled, rounds=20),
        TwoStage(client_rate=0.3, within=Laplace(relative_scale=2), rounds=4),
        fixed.repeated(2),
        RandomAllocationGaussian(rounds_per_cycle=4, effective_noise_multiplier=1.25, rounds=2),
        clip_norms=[0.25, 0.5],
    )
    make_artifact(run, ArtifactKind.TRAINING_RECORD, b"the record", "record.jsonl")
    page = evidence(client, run)
    assert "so each group has a link of its own" in page
    assert "Clip norm: 0.25 to 0.5" in page
    assert cells(page, "34 rounds in 4 groups that differ in rates or noise") == [
        ["20", "0.2", "0.1125", "1.21", "Open in the calculator"],
        ["4", "0.3", "all", "2 (Laplace)", "not in the calculator"],
        ["2", "all", "0.25, fixed size", "1.5", "not in the calculator"],
        ["8", "all", "once in 4 rounds", "1.25", "Open in the calculator"],
    ]


def test_a_long_schedule_is_cut(client):
    run = accounted_run(*(Gaussian(effective_noise_multiplier=1 + step) for step in range(12)))
    make_artifact(run, ArtifactKind.TRAINING_RECORD, b"the record", "record.jsonl")
    page = evidence(client, run)
    assert len(cells(page, "12 rounds in 12 groups")) == 10
    assert "2 more groups of rounds are in the training record" in page
