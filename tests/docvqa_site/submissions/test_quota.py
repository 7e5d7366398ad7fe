from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.submissions.quota import WINDOW, Extra, next_slot, quota

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
times = st.lists(st.integers(0, 3 * 86_400).map(lambda ago: NOW - timedelta(seconds=ago)), max_size=12)


def hours_ago(*hours):
    return [NOW - timedelta(hours=count) for count in hours]


def test_a_slot_is_free_until_the_limit_is_reached():
    assert next_slot([], NOW, 1) is None
    assert next_slot(hours_ago(1, 2), NOW, 3) is None


def test_the_next_slot_is_free_a_day_after_the_oldest_that_counts():
    assert next_slot(hours_ago(1, 2, 5), NOW, 3) == NOW + timedelta(hours=19)


def test_what_is_a_day_old_counts_no_more():
    assert next_slot(hours_ago(24), NOW, 1) is None
    assert next_slot(hours_ago(23.999), NOW, 1) is not None


def test_a_lowered_limit_waits_for_enough_slots():
    assert next_slot(hours_ago(1, 2, 5), NOW, 1) == NOW + timedelta(hours=23)


def test_a_quota_says_what_is_left():
    assert (quota(hours_ago(1, 30), NOW, 5).used, quota(hours_ago(1, 30), NOW, 5).left) == (1, 4)
    assert quota(hours_ago(1, 2, 3), NOW, 2).left == 0


def test_extra_submissions_of_a_day_never_count():
    extra = [Extra(NOW - timedelta(hours=4), 2)]
    full = quota(hours_ago(5, 6), NOW, 2, extra)
    assert (full.used, full.limit, full.next_slot) == (2, 4, None)
    one_left = quota(hours_ago(1, 5, 6), NOW, 2, extra)
    assert (one_left.used, one_left.limit, one_left.left, one_left.next_slot) == (3, 4, 1, None)
    used_up = quota(hours_ago(1, 2, 5, 6), NOW, 2, extra)
    assert (used_up.left, used_up.next_slot) == (0, NOW + timedelta(hours=18))


def test_extra_submissions_that_nobody_used_are_gone_a_day_later():
    assert quota([], NOW, 2, [Extra(NOW - WINDOW, 2)]).left == 2
    assert quota(hours_ago(25), NOW, 2, [Extra(NOW - timedelta(hours=23), 2)]).left == 4


def test_what_used_an_extra_submission_does_not_count_after_the_day_of_the_grant():
    extra = [Extra(NOW - timedelta(hours=30), 1)]
    assert quota(hours_ago(29, 8, 7), NOW, 2, extra).left == 0
    assert quota(hours_ago(8, 7), NOW, 2, extra).left == 1


@given(times, st.integers(1, 6))
def test_a_slot_is_free_at_the_time_that_is_named_and_not_a_moment_earlier(submitted, limit):
    free_at = next_slot(submitted, NOW, limit)
    if free_at is None:
        assert sum(time > NOW - WINDOW for time in submitted) < limit
    else:
        assert free_at > NOW
        assert next_slot(submitted, free_at, limit) is None
        assert next_slot(submitted, free_at - timedelta(microseconds=1), limit) == free_at
