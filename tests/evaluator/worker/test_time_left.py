import pytest

from evaluator.worker.time_left import MAX_REMAINING_S, Pace, in_words


@pytest.mark.parametrize(
    ("remaining_s", "words"),
    [
        (None, ""),
        (0, "less than a minute left"),
        (59.9, "less than a minute left"),
        (60, "about 1 min left"),
        (250, "about 4 min left"),
        (59.4 * 60, "about 59 min left"),
        (59.8 * 60, "about 1 h left"),
        (80 * 60, "about 1 h 20 min left"),
        (119 * 60, "about 2 h left"),
        (9.95 * 3600, "about 10 h left"),
        (47 * 3600, "about 47 h left"),
        (71 * 3600, "about 3 days left"),
    ],
)
def test_the_remaining_time_is_reported_no_finer_than_it_is_known(
    remaining_s: float | None, words: str
) -> None:
    assert in_words(remaining_s) == words


def pace(*reported: tuple[int, int, float]) -> Pace:
    """The pace after units done, their total and the time of each report."""
    step = Pace()
    for done, total, now_s in reported:
        step = step.at(done, total, now_s)
    return step


def test_the_pace_is_that_since_the_first_unit_finished() -> None:
    step = pace((0, 100, 0), (10, 100, 60), (30, 100, 80))
    assert step.remaining_s(80) == 70
    assert step.remaining_s(90) == 60
    assert step.remaining_s(1_000) == 0


def test_what_an_earlier_worker_finished_counts_for_no_pace() -> None:
    assert pace((80, 100, 0), (82, 100, 100), (84, 100, 110)).remaining_s(110) == 80


@pytest.mark.parametrize(
    "reported",
    [(), [(0, 100, 0)], [(0, 100, 0), (10, 100, 5)], [(0, 9, 0), (4, 9, 1), (5, 9, 2), (0, 100, 3)]],
)
def test_before_two_units_finished_nothing_can_be_said(reported: list[tuple[int, int, float]]) -> None:
    assert pace(*reported).remaining_s(9) is None


def test_an_absurd_estimate_is_none() -> None:
    step = pace((0, 10**9, 0), (1, 10**9, 0), (2, 10**9, 100))
    assert step.remaining_s(100) is None
    assert pace((0, 10, 0), (1, 10, 0), (2, 10, MAX_REMAINING_S / 9)).remaining_s(0) is not None


def test_reporting_the_same_again_changes_nothing() -> None:
    assert pace((0, 10, 0), (1, 10, 1), (2, 10, 2), (2, 10, 50)).remaining_s(2) == 8
