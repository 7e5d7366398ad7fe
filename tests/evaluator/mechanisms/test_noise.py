"""Effective noise, against an enumeration of who may contribute and who may collude."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator.mechanisms.events import UnsupportedError
from evaluator.mechanisms.noise import Noise, Placement, ReleaseView


def effective(
    placement: str, secure: str = "none", *, contributors: int = 2, clients: int = 10, colluding: int = 0
) -> float:
    noise = Noise.model_construct(
        multiplier=1.0,
        placement=Placement(placement),
        secure_aggregation=secure,  # type: ignore[arg-type]
        colluding_clients=colluding,
    )
    return noise.effective_multiplier(contributors=contributors, clients=clients)


@pytest.mark.parametrize(
    ("placement", "secure", "view", "expected"),
    [
        ("server", "none", "aggregate", 1),
        ("server", "real", "aggregate", 1),
        ("client_full", "none", "per_client", 1),
        ("client_full", "simulated", "aggregate", math.sqrt(2)),
        ("client_share", "real", "aggregate", 1),
        ("client_share", "none", "per_client", 1 / math.sqrt(10)),
    ],
)
def test_noise_without_collusion(placement: str, secure: str, view: str, expected: float) -> None:
    noise = Noise.model_validate({"multiplier": 1, "placement": placement, "secure_aggregation": secure})
    assert noise.release_view == view
    assert effective(placement, secure) == pytest.approx(expected)


def test_noise_at_the_server_is_unknown_to_all_clients() -> None:
    assert effective("server", colluding=9) == 1


def test_a_share_is_what_colluding_clients_leave_of_the_whole() -> None:
    assert effective("client_share", "real", contributors=10, colluding=2) == pytest.approx(math.sqrt(0.8))


def test_the_worst_number_of_sharers_is_one_more_than_collude() -> None:
    assert effective("client_share", "real", contributors=1, colluding=3) == pytest.approx(0.5)


@st.composite
def parties(draw: st.DrawFn) -> tuple[int, int, int]:
    clients = draw(st.integers(1, 30))
    return draw(st.integers(1, clients)), clients, draw(st.integers(0, clients - 1))


@given(parties())
def test_no_possible_round_leaves_less_noise(counts: tuple[int, int, int]) -> None:
    contributors, clients, colluding = counts
    full, share = [], []
    for taking_part in range(contributors, clients + 1):
        for against in range(min(colluding, taking_part - 1) + 1):  # of the others who take part
            honest = taking_part - against
            full.append(math.sqrt(honest))
            share.append(math.sqrt(honest / taking_part))
    values = {"contributors": contributors, "clients": clients, "colluding": colluding}
    assert effective("client_full", "real", **values) == pytest.approx(min(full))
    assert effective("client_share", "real", **values) == pytest.approx(min(share))


@pytest.mark.parametrize(("contributors", "colluding"), [(0, 0), (11, 0), (1, 10), (1, -1)])
def test_impossible_counts_are_rejected(contributors: int, colluding: int) -> None:
    with pytest.raises(UnsupportedError, match="clients"):
        effective("client_share", "real", contributors=contributors, colluding=colluding)


@pytest.mark.parametrize(
    ("placement", "contributors", "expected"),
    [("server", 0, 2.0), ("server", 9, 2.0), ("client_full", 9, 6.0), ("client_full", 0, 0.0),
     ("client_share", 9, 2.0), ("client_share", 0, 0.0)],
)  # fmt: skip
def test_the_noise_of_a_sum_is_that_of_all_draws_in_it(
    placement: str, contributors: int, expected: float
) -> None:
    noise = Noise(multiplier=2.0, placement=Placement(placement))
    assert noise.multiplier_of_sum(contributors) == expected


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), float("inf"), "1"])
def test_a_multiplier_is_a_positive_number(multiplier: object) -> None:
    with pytest.raises(ValidationError):
        Noise.model_validate({"multiplier": multiplier})


def test_what_is_seen_is_a_word_of_its_own() -> None:
    assert set(ReleaseView) == {"aggregate", "per_client"}
