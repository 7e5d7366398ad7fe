import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.ui.axes import (
    MOST_TICKS,
    categories,
    even_numbers,
    linear,
    logarithmic,
    round_numbers,
    stretch,
)

positive = st.floats(min_value=1e-30, max_value=1e30)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.78, 0.86, [0.78, 0.8, 0.82, 0.84, 0.86]),
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    ],
)
def test_even_numbers_cover_the_range_in_round_steps(low: float, high: float, expected: list[float]) -> None:
    assert even_numbers(low, high) == pytest.approx(expected)


def test_an_axis_of_one_value_has_a_width() -> None:
    first, second = even_numbers(0.5, 0.5)
    assert first <= 0.5 <= second
    assert first < second


@pytest.mark.parametrize(
    "high", [10.0**power * factor for power in range(-4, 6) for factor in (1.1, 3.3, 9.9)]
)
def test_an_axis_has_few_ticks_and_begins_and_ends_with_one(high: float) -> None:
    numbers = even_numbers(0.0, high)
    assert 2 <= len(numbers) <= MOST_TICKS + 1
    assert numbers[0] <= 0.0
    assert numbers[-1] >= high


@given(positive, positive)
def test_a_logarithmic_axis_covers_its_values_with_few_round_numbers(one: float, other: float) -> None:
    low, high = sorted((one, other))
    numbers = round_numbers(low, high)
    assert 2 <= len(numbers) <= MOST_TICKS
    assert numbers == sorted(set(numbers))
    assert numbers[0] <= low * (1 + 1e-12)
    assert numbers[-1] >= high * (1 - 1e-12)
    assert all(f"{number:.0e}"[0] in "125" for number in numbers)


@given(st.lists(positive, min_size=1, max_size=20))
def test_values_on_a_logarithmic_axis_keep_their_order_and_stay_inside(values: list[float]) -> None:
    axis = logarithmic("", values)
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(-0.001 <= place <= 1.001 for place in places)


def test_values_lie_between_the_ends_in_proportion() -> None:
    assert [linear("", [0, 1]).at(value) for value in (0, 0.25, 1)] == [0, 0.25, 1]
    assert [linear("", [0, 1]).reversed().at(value) for value in (0, 0.25, 1)] == [1, 0.75, 0]
    places = [logarithmic("", [1, 100]).at(value) for value in (1, math.sqrt(10), 10, 100)]
    assert places == pytest.approx([0, 0.25, 0.5, 1])


def test_zero_lies_at_the_start_of_a_logarithmic_axis_apart_from_all_other_values() -> None:
    axis = logarithmic("", [0, 1, 100])
    assert (axis.ticks[0].text, axis.ticks[0].at) == ("0", axis.at(0))
    # With room for the interval of a mark beside the texts of the other axis.
    assert 0.02 < axis.at(0) < 0.05
    assert 0.1 < axis.at(1) < axis.at(10) < axis.at(100) == 1
    assert [tick.text for tick in logarithmic("", [0, 0]).ticks][:2] == ["0", "1"]


def test_names_lie_in_the_middle_of_equal_parts() -> None:
    assert [(tick.text, tick.at) for tick in categories("", ["a", "b"]).ticks] == [("a", 0.25), ("b", 0.75)]


def test_an_axis_of_given_ticks_has_a_margin_at_both_ends() -> None:
    first, second = stretch("", [10, 20], str).ticks
    assert (first.text, second.text) == ("10", "20")
    assert 0 < first.at < second.at < 1
    assert first.at + second.at == 1


def shown(low: float, high: float, least_gap: float) -> list[str]:
    return [tick.text for tick in logarithmic("", [low, high], least_gap=least_gap).ticks]


def test_ticks_of_a_logarithmic_axis_that_would_touch_are_at_decades() -> None:
    assert shown(1, 100, 0.1) == ["1", "2", "5", "10", "20", "50", "100"]
    assert shown(1, 100, 0.16) == ["1", "10", "100"]
    assert shown(0.5, 1e7, 0.16) == ["0.1", "10", "1000", "100000", "1e+07"]


def test_where_no_two_decades_have_room_the_ends_have_ticks() -> None:
    assert shown(0.6, 4, 0.75) == ["0.5", "5"]
