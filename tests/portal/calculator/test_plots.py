import math

from hypothesis import given
from hypothesis import strategies as st

from portal.calculator.plots import Line, Plot
from portal.ui.axes import MOST_TICKS, LogAxis, round_numbers

positive = st.floats(min_value=1e-30, max_value=1e30)


@given(positive, positive)
def test_an_axis_covers_its_values_with_few_round_numbers(one: float, other: float) -> None:
    low, high = sorted((one, other))
    numbers = round_numbers(low, high)
    assert 2 <= len(numbers) <= MOST_TICKS
    assert numbers == sorted(set(numbers))
    assert numbers[0] <= low * (1 + 1e-12)
    assert numbers[-1] >= high * (1 - 1e-12)
    assert all(f"{number:.0e}"[0] in "125" for number in numbers)


@given(st.lists(positive, min_size=1, max_size=20))
def test_what_is_on_an_axis_keeps_its_order_and_stays_inside(values: list[float]) -> None:
    axis = LogAxis(values, 100, 0)
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places, reverse=True)
    assert all(-0.1 <= place <= 100.1 for place in places)


def test_equal_factors_are_equally_far_apart() -> None:
    axis = LogAxis([1, 100], 0, 200)
    assert [axis.at(value) for value in (1, 10, 100)] == [0, 100, 200]
    assert axis.at(math.sqrt(10)) == 50


def test_a_plot_places_lines_marks_and_level() -> None:
    plot = Plot("rounds", "rounds", [Line("product", "product", [(1, 1), (10, 10)])], level=10, here=10)
    assert plot.paths == [("product", f"{plot.left}.0,{plot.bottom}.0 {plot.right}.0,{plot.top}.0")]
    assert plot.marks == [("product", (plot.right, plot.top))]
    assert plot.level_at == plot.top


def test_a_line_may_lack_a_value_that_another_has() -> None:
    lines = [Line("two-stage", "", [(1, 3), (2, 4)]), Line("product", "", [(2, 1)])]
    assert Plot("rounds", "", lines, level=1, here=1).table == [(1, [3, None]), (2, [4, 1])]
