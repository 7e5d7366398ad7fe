from uuid import UUID

import pytest

from docvqa_site.evaluation.queue.diagnosis import MANY, Ending, Outage, SickWorker, diagnose


def fault(run, worker="w1", team=None):
    return Ending(UUID(int=run), run if team is None else team, worker, is_healthy=False)


def passed(run, worker="w1"):
    return Ending(UUID(int=run), run, worker, is_healthy=True)


def diagnosis(*endings, working=("w1",), teams=(99,)):
    """What the endings mean, of which the last is the newest."""
    return diagnose(list(reversed(endings)), working, teams)


def test_nothing_means_nothing():
    assert diagnosis() is None


def test_few_faults_may_be_due_to_their_runs():
    assert diagnosis(*[fault(run) for run in range(MANY - 1)]) is None


def test_one_run_that_fails_again_and_again_is_no_outage():
    assert diagnosis(*[fault(1)] * 10) is None


def test_many_runs_that_fail_at_the_only_worker_are_an_outage():
    assert diagnosis(*[fault(run) for run in range(MANY)]) == Outage()


def test_many_runs_that_fail_at_several_workers_are_an_outage():
    assert diagnosis(fault(1), fault(2, "w2"), fault(3), working=("w1", "w2")) == Outage()


def test_a_step_that_passes_in_between_says_that_nothing_is_away():
    assert diagnosis(fault(1), fault(2), passed(9), fault(3)) is None


@pytest.mark.parametrize("between", [[], [passed(9, "w2")]])
def test_a_worker_that_fails_many_runs_while_others_work_is_sick(between):
    endings = [ending for run in range(MANY) for ending in (*between, fault(run))]
    assert diagnosis(*endings, working=("w1", "w2")) == SickWorker("w1")


def test_a_worker_that_has_passed_a_step_since_is_not():
    endings = [fault(1), fault(2), passed(3), fault(4)]
    assert diagnosis(*endings, working=("w1", "w2")) is None


def test_others_that_are_sick_themselves_don_t_count_as_working():
    assert diagnosis(*[fault(run) for run in range(MANY)], working=()) == Outage()


@pytest.mark.parametrize("working", [("w1",), ("w1", "w2")])
def test_runs_of_one_team_are_neither_an_outage_nor_a_sick_worker(working):
    faults = [fault(run, team=1) for run in range(5 * MANY)]
    assert diagnosis(*faults, working=working, teams=(1, 2)) is None


def test_but_when_no_other_team_is_there_they_may_be():
    faults = [fault(run, team=1) for run in range(MANY)]
    assert diagnosis(*faults, teams=(1,)) == diagnosis(*faults, teams=()) == Outage()
