"""Effective noise, against an enumeration of who may contribute and who may collude."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.mechanisms.events import UnsupportedError
from evaluator.mechanisms.placement import Placement, ReleaseView, effective_noise_multiplier


def effective(
    placement: Placement, view: ReleaseView, *, contributors: int = 2, clients: int = 10, colluding: int = 0
) -> float:
    return effective_noise_multiplier(
        1.0,
        placement=placement,
        release_view=view,
        contributors=contributors,
        clients=clients,
        colluding=colluding,
    )


@pytest.mark.parametrize(
    ("placement", "view", "expected"),
    [
        ("server", "aggregate", 1),
        ("client_full", "per_client", 1),
        ("client_full", "aggregate", math.sqrt(2)),
        ("client_share", "aggregate", 1),
        ("client_share", "per_client", 1 / math.sqrt(10)),
    ],
)
def test_noise_without_collusion(placement: Placement, view: ReleaseView, expected: float) -> None:
    assert effective(placement, view) == pytest.approx(expected)


def test_noise_at_the_server_covers_no_single_update() -> None:
    with pytest.raises(UnsupportedError, match="doesn't cover"):
        effective("server", "per_client")


def test_noise_at_the_server_is_unknown_to_all_clients() -> None:
    assert effective("server", "aggregate", colluding=9) == 1


def test_a_share_is_what_colluding_clients_leave_of_the_whole() -> None:
    assert effective("client_share", "aggregate", contributors=10, colluding=2) == pytest.approx(
        math.sqrt(0.8)
    )


def test_the_worst_number_of_sharers_is_one_more_than_collude() -> None:
    assert effective("client_share", "aggregate", contributors=1, colluding=3) == pytest.approx(0.5)


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
    assert effective("client_full", "aggregate", **values) == pytest.approx(min(full))
    assert effective("client_share", "aggregate", **values) == pytest.approx(min(share))


@pytest.mark.parametrize(("contributors", "colluding"), [(0, 0), (11, 0), (1, 10), (1, -1)])
def test_impossible_counts_are_rejected(contributors: int, colluding: int) -> None:
    with pytest.raises(UnsupportedError, match="clients"):
        effective("client_share", "aggregate", contributors=contributors, colluding=colluding)
