import pytest

from portal.ui.axes import MOST_TICKS, LinearAxis, LogAxis, even_numbers


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.78, 0.86, [0.78, 0.8, 0.82, 0.84, 0.86]),
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    ],
)
def test_even_numbers_cover_the_range_in_round_steps(low, high, expected):
    assert even_numbers(low, high) == pytest.approx(expected)


def test_an_axis_of_one_value_has_a_width():
    first, second = even_numbers(0.5, 0.5)
    assert first <= 0.5 <= second
    assert first < second


@pytest.mark.parametrize(
    "high", [10.0**power * factor for power in range(-4, 6) for factor in (1.1, 3.3, 9.9)]
)
def test_an_axis_has_few_ticks_and_begins_and_ends_with_one(high):
    numbers = even_numbers(0.0, high)
    assert 2 <= len(numbers) <= MOST_TICKS + 1
    assert numbers[0] <= 0.0
    assert numbers[-1] >= high


def test_values_lie_between_the_ends_in_proportion():
    assert [LinearAxis([0, 1], 100, 0).at(value) for value in (0, 0.25, 1)] == [100, 75, 0]
    assert [LogAxis([1, 100], 0, 100).at(value) for value in (1, 10, 100)] == [0, 50, 100]


def shown(low: float, high: float, least_gap: float) -> list[str]:
    return [tick.text for tick in LogAxis([low, high], 0, 400, least_gap=least_gap).ticks]


def test_ticks_of_a_logarithmic_axis_that_would_touch_are_at_decades():
    assert shown(1, 100, 40) == ["1", "2", "5", "10", "20", "50", "100"]
    assert shown(1, 100, 64) == ["1", "10", "100"]
    assert shown(0.5, 1e7, 64) == ["0.1", "10", "1000", "100000", "1e+07"]


def test_where_no_two_decades_have_room_the_ends_have_ticks():
    assert shown(0.6, 4, 300) == ["0.5", "5"]
