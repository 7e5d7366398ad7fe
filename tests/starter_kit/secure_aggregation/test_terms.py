"""Which rounds can be agreed on."""

import pytest

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.terms import MAX_CLIENT, Terms


@pytest.mark.parametrize(("clients", "threshold"), [(4, 2), (5, 2), (4, 5), (3, 0), (1, 0), (2, 1)])
def test_a_threshold_of_half_or_less_or_of_more_than_all_is_rejected(clients: int, threshold: int) -> None:
    with pytest.raises(ProtocolError, match="above half of them and at most all"):
        Terms(0, tuple(range(clients)), threshold)


@pytest.mark.parametrize("clients", [[], [-1, 1], [0, MAX_CLIENT + 1], [1, 1]])
def test_clients_without_an_id_of_their_own_are_rejected(clients: list[int]) -> None:
    with pytest.raises(ProtocolError, match="client"):
        Terms(0, tuple(clients), 1)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_round_without_a_number_is_rejected(number: int) -> None:
    with pytest.raises(ProtocolError, match="a round's number"):
        Terms(number, (0,), 1)
