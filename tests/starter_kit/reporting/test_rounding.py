import math

import pytest

from starter_kit.reporting.rounding import decimal_unit, epsilon_text, rounded_up, significant, size_text


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        (7.99991, "8.0000"),
        (1.00001, "1.0001"),
        (4.0, "4.0000"),
        (0.0, "0.0000"),
        (12.34567, "12.346"),
        (None, "∞"),
    ],
)
def test_epsilon_is_never_shown_below_what_it_is(epsilon: float | None, text: str) -> None:
    assert epsilon_text(epsilon) == text


@pytest.mark.parametrize(
    ("bound", "text"),
    [
        (4.0000001, "4.000001"),
        (3.9999999, "4.000000"),
        (1.909, "1.909000"),
        (0.0, "0.000000"),
        (123456.7, "123456.700000"),
        (math.inf, "inf"),
    ],
)
def test_a_bound_is_rounded_up_to_so_many_decimals(bound: float, text: str) -> None:
    assert rounded_up(bound, 6) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0012, "0.00120"),
        (1.2, "1.20"),
        (1234.5, "1230"),
        (0.9999, "1.00"),
        (3.2e-7, "0.000000320"),
        (0, "0"),
    ],
)
def test_three_digits_are_significant(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (24_000_000, "24.0 MB"),
        (1_246_000_000, "1.25 GB"),
        (10**19, "10000 PB"),
    ],
)
def test_a_size_is_given_in_decimal_units(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_a_unit_begins_at_one() -> None:
    assert [decimal_unit(size) for size in (999_999, 1_000_000)] == [(1000, "kB"), (10**6, "MB")]
