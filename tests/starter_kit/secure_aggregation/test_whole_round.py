"""The sum, and nothing but the sum, comes out, whoever is lost."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.fixed_point import finest_grid
from starter_kit.secure_aggregation.masks import CHUNK
from tests.starter_kit.secure_aggregation.whole_round import (
    NEVER,
    Round,
    plain_sum,
    random_vectors,
    total_with_losses,
)


def check_sum_or_rejection(vectors: dict, lost_at: dict[int, int], threshold: int) -> None:
    """The exact sum of the vectors that arrived, if all legs had enough clients; else a rejection."""
    enough = all(sum(leg > past for leg in lost_at.values()) >= threshold for past in (1, 2, 3, 4))
    if not enough:
        with pytest.raises(ProtocolError, match=f"{threshold} are required"):
            total_with_losses(vectors, lost_at, threshold)
        return
    arrived = {id_: vector for id_, vector in vectors.items() if lost_at[id_] > 3}
    assert np.array_equal(total_with_losses(vectors, lost_at, threshold), plain_sum(arrived))


@pytest.mark.parametrize("clients", range(1, 11))
def test_the_sum_of_all_is_exact(clients: int) -> None:
    vectors = random_vectors(clients, 33)
    check_sum_or_rejection(vectors, dict.fromkeys(vectors, NEVER), 2 * clients // 3 + 1)


def test_every_pattern_of_losses_among_three_clients() -> None:
    vectors = random_vectors(3, 5)
    for legs in product(range(1, NEVER + 1), repeat=3):
        check_sum_or_rejection(vectors, dict(zip(vectors, legs, strict=True)), 2)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_pattern_of_losses_among_up_to_ten_clients(data: st.DataObject) -> None:
    vectors = random_vectors(data.draw(st.integers(1, 10)), 9)
    threshold = data.draw(st.integers(len(vectors) // 2 + 1, len(vectors)))
    # Weighted towards clients that stay, or hardly any round would come to its end.
    leg = st.sampled_from([1, 2, 3, 4, *[NEVER] * 8])
    check_sum_or_rejection(vectors, {id_: data.draw(leg) for id_ in vectors}, threshold)


@pytest.mark.parametrize("leg", [1, 2, 3, 4])
def test_as_many_are_lost_at_one_leg_as_the_threshold_allows(leg: int) -> None:
    vectors = random_vectors(10, 50)
    lost_at = {id_: leg if n < 3 else NEVER for n, id_ in enumerate(vectors)}
    check_sum_or_rejection(vectors, lost_at, 7)


def test_a_vector_longer_than_a_chunk_comes_out_exactly_with_a_client_lost() -> None:
    vectors = random_vectors(4, 2 * CHUNK + 5)
    check_sum_or_rejection(vectors, dict(zip(vectors, [NEVER, 3, NEVER, NEVER], strict=True)), 3)


def test_real_vectors_come_out_to_within_half_a_step_for_each_client() -> None:
    rng = np.random.default_rng(1)
    grid = finest_grid(bound=8.0, clients=5)
    real = {id_: rng.uniform(-8, 8, 1000).astype(np.float32) for id_ in range(5)}
    played = Round({id_: grid.encode(vector) for id_, vector in real.items()})
    total = grid.decode_sum(played.unmask(played.until_masked()))
    exact = np.sum([vector.astype(np.float64) for vector in real.values()], axis=0)
    assert np.abs(total - exact).max() <= 5 * grid.step / 2
    assert grid.step < 1e-7


def test_after_a_rejection_for_want_of_answers_a_late_one_completes_the_sum() -> None:
    vectors = random_vectors(4, 10)
    played = Round(vectors, 3)
    request = played.until_masked()
    answers = {id_: client.unmask(request) for id_, client in played.clients.items()}
    first, second, third, _ = answers.values()
    played.server.receive(first)
    played.server.receive(second)
    with pytest.raises(ProtocolError, match="2 clients have sent UNMASK_ANSWER; 3 are required"):
        played.server.total()
    played.server.receive(third)
    assert np.array_equal(played.server.total(), plain_sum(vectors))


def test_masking_and_unmasking_take_memory_for_a_few_vectors_only() -> None:
    vectors = random_vectors(6, 1 << 20)
    nbytes = next(iter(vectors.values())).nbytes
    played = Round(vectors)
    routed = played.until_shared()
    tracemalloc.start()
    try:
        for id_ in list(vectors)[:5]:
            tracemalloc.reset_peak()
            message = played.clients[id_].mask(routed[id_], vectors[id_])
            assert tracemalloc.get_traced_memory()[1] < 3.5 * nbytes
            played.server.receive(message)
            del message
        request = played.server.unmask_request()
        for id_ in list(vectors)[:5]:
            played.server.receive(played.clients[id_].unmask(request))
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        total = played.server.total()
        assert tracemalloc.get_traced_memory()[1] - before < nbytes
    finally:
        tracemalloc.stop()
    assert np.array_equal(total, plain_sum({id_: vectors[id_] for id_ in list(vectors)[:5]}))
