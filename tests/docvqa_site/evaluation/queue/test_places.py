import pytest
from django.conf import settings
from django.utils import timezone

from docvqa_site.evaluation.intake.receiving import receive_progress, receive_report
from docvqa_site.evaluation.models import Evaluation, EvaluationState
from docvqa_site.evaluation.queue import dispatch, places
from docvqa_site.evaluation.services import evaluate_again
from docvqa_site.submissions.models import RunState, SubmissionState
from evaluator.messages.jobs import EVALUATOR_QUEUE, SCORING_QUEUE, Outcome, Step
from tests.docvqa_site.evaluation.messages import make_progress, make_report
from tests.docvqa_site.factories import make_run, make_submission, make_team, make_track, make_user

pytestmark = pytest.mark.django_db

SENT = settings.EVALUATION_SENT_STEPS


@pytest.fixture
def track():
    return make_track()


def join(team, track):
    submission = make_submission(team, track, state=SubmissionState.SUBMITTED)
    return dispatch.start(make_run(submission, state=RunState.QUEUED))


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def place_of(evaluation):
    evaluation = fresh(evaluation)
    return places.places([evaluation], timezone.now()).get(evaluation.pk)


def serve(broker, committed, queue=EVALUATOR_QUEUE, worker="w1"):
    """Take all that the broker has, one by one as a worker does; return the teams in the order of their service."""
    served = []
    while jobs := broker.jobs(queue):
        for job in jobs:
            evaluation = Evaluation.objects.get(pk=job.evaluation)
            committed(receive_progress, make_progress(evaluation, worker=worker))
            served.append(evaluation.run.submission.team)
    return served


def test_a_team_that_floods_the_queue_delays_each_other_team_by_what_was_sent_already(
    broker, committed, track
):
    flooding, others = make_team(), [make_team() for _ in range(5)]
    committed(lambda: [join(flooding, track) for _ in range(25)])
    evaluations = committed(lambda: [join(team, track) for team in others])
    assert [place_of(evaluation) for evaluation in evaluations] == [
        SENT + 1,
        SENT + 2,
        SENT + 3,
        SENT + 4,
        SENT + 5,
    ]
    served = serve(broker, committed)
    assert served[SENT : SENT + 5] == others
    assert served[SENT + 5 :] == [flooding] * (25 - SENT)


def test_the_place_is_the_order_in_which_steps_are_taken(broker, committed, track):
    teams = [make_team() for _ in range(3)]
    evaluations = [committed(join, teams[number % 5 % 3], track) for number in range(12)]
    expected = sorted(evaluations, key=place_of)
    assert sorted(map(place_of, evaluations)) == list(range(1, 13))
    taken = []
    while jobs := broker.jobs():
        for job in jobs:
            evaluation = Evaluation.objects.get(pk=job.evaluation)
            assert place_of(evaluation) == 1
            committed(receive_progress, make_progress(evaluation))
            taken.append(evaluation)
    assert taken == expected


def test_who_is_next_stays_next_when_another_team_comes(broker, committed, track):
    team = make_team()
    waiting = [committed(join, team, track) for _ in range(2)] + [committed(join, make_team(), track)]
    assert [place_of(evaluation) for evaluation in waiting] == [1, 2, 3]
    committed(join, make_team(), track)
    assert [place_of(evaluation) for evaluation in waiting] == [1, 2, 3]


def test_the_next_step_of_a_run_goes_before_runs_that_have_not_begun(broker, committed, track):
    evaluations = [committed(join, make_team(), track) for _ in range(6)]
    begun = evaluations[0]
    committed(receive_report, make_report(begun, Step.VALIDATE))
    # Those that the broker had already are taken first.
    assert (fresh(begun).step, place_of(begun), place_of(evaluations[3])) == (Step.COMMUNICATION, 2, 4)


def test_scoring_has_an_order_of_its_own(broker, committed, track):
    flooding, other = make_team(), make_team()
    evaluations = [committed(join, flooding, track) for _ in range(5)] + [committed(join, other, track)]
    for evaluation in evaluations:
        for step in (Step.VALIDATE, Step.COMMUNICATION):
            committed(receive_report, make_report(evaluation, step))
    assert place_of(evaluations[-1]) == SENT + 1
    assert serve(broker, committed, SCORING_QUEUE) == [*[flooding] * SENT, other, *[flooding] * (5 - SENT)]


def test_a_lost_attempt_is_tried_again_before_others_begin(broker, committed, track):
    evaluations = [committed(join, make_team(), track) for _ in range(6)]
    receive_progress(make_progress(evaluations[0]))
    Evaluation.objects.filter(pk=evaluations[0].pk).update(state=EvaluationState.LOST)
    again = committed(dispatch.start, evaluations[0].run, retry=1)
    assert place_of(again) == 2


def test_a_run_that_waits_out_a_pause_has_no_place_and_takes_none_from_others(broker, committed, track):
    failed = committed(join, make_team(), track)
    other = committed(join, make_team(), track)
    committed(receive_report, make_report(failed, Step.VALIDATE, Outcome.FAILED))
    assert place_of(Evaluation.objects.get(run=failed.run, state=EvaluationState.QUEUED)) is None
    assert place_of(other) == 1


def test_a_run_that_an_organizer_queues_again_takes_a_turn_like_any_other(broker, committed, track):
    run = join(make_team(), track).run
    Evaluation.objects.update(state=EvaluationState.REJECTED)
    run.state = RunState.REJECTED
    run.save()
    others = [committed(join, make_team(), track) for _ in range(4)]
    again = committed(evaluate_again, run, actor=make_user(is_staff=True))
    assert [place_of(evaluation) for evaluation in (*others, again)] == [1, 2, 3, 4, 5]


def test_places_of_many_take_one_query(track, committed, broker, django_assert_num_queries):
    evaluations = [committed(join, make_team(), track) for _ in range(5)]
    evaluations = list(Evaluation.objects.filter(pk__in=[evaluation.pk for evaluation in evaluations]))
    with django_assert_num_queries(1):
        assert sorted(places.places(evaluations, timezone.now()).values()) == [1, 2, 3, 4, 5]


def test_a_place_behind_a_thousand_others_takes_one_query(
    track, broker, committed, django_assert_num_queries
):
    submission = make_submission(make_team(), track, state=SubmissionState.SUBMITTED)
    run = make_run(submission, state=RunState.QUEUED)
    runs = type(run).objects.bulk_create(
        type(run)(submission=submission, state=RunState.QUEUED, rules=run.rules, budget=1 + number)
        for number in range(1_000)
    )
    Evaluation.objects.bulk_create(
        Evaluation(run=run, attempt=1, step=Step.VALIDATE, turn=number, ticket=number)
        for number, run in enumerate(runs)
    )
    last = Evaluation.objects.get(ticket=999)
    with django_assert_num_queries(1):
        assert places.places([last], timezone.now())[last.pk] == 1_000
