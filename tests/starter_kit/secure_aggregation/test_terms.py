"""Which rounds can be agreed on."""

import pytest

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.terms import MAX_CLIENT, agreed, default_threshold


@pytest.mark.parametrize(
    ("clients", "threshold"), [(1, 1), (2, 2), (3, 3), (4, 3), (9, 7), (10, 7), (100, 67)]
)
def test_the_default_threshold_is_two_thirds_and_one(clients: int, threshold: int) -> None:
    assert default_threshold(clients) == threshold
    assert agreed(0, range(clients), None).threshold == threshold


def test_clients_are_put_in_order() -> None:
    assert agreed(0, [5, 0, 3], None).clients == (0, 3, 5)


@pytest.mark.parametrize(("clients", "threshold"), [(4, 2), (5, 2), (4, 5), (3, 0), (1, 0), (2, 1)])
def test_a_threshold_of_half_or_less_or_of_more_than_all_is_rejected(clients: int, threshold: int) -> None:
    with pytest.raises(ProtocolError, match="above half of them and at most all"):
        agreed(0, range(clients), threshold)


@pytest.mark.parametrize("clients", [[], [-1, 1], [0, MAX_CLIENT + 1], [1, 1]])
def test_clients_without_an_id_of_their_own_are_rejected(clients: list[int]) -> None:
    with pytest.raises(ProtocolError, match="client"):
        agreed(0, clients, 1)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_round_without_a_number_is_rejected(number: int) -> None:
    with pytest.raises(ProtocolError, match="a round's number"):
        agreed(number, [0], None)
