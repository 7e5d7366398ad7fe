"""Whole rounds under secure aggregation, on a toy federation."""

from collections.abc import Iterator, Sequence

import pytest
import torch

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.federation.client_state import LocalState
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.rounds import TRAIN, Participant, Reply, Request, Round, Server
from starter_kit.federation.secure_aggregation import SHARES, UNMASK, SecureAggregation, overhead_bytes
from starter_kit.learning.local_training import LocalTraining
from starter_kit.methods.fedavg import FedAvg
from tests.starter_kit.toy import DIMENSION, STREAM, Toy, wire_from

LOCAL = LocalTraining(learning_rate=0.05, batch_size=4)


class Losing(LocalEngine):
    """Loses what some clients answer in one leg, and all that they would have answered later."""

    def __init__(self, participant: Participant, leg: str, lost: Sequence[int]) -> None:
        super().__init__(participant)
        self.leg, self.lost, self.gone = leg, lost, set[int]()
        self.seen: list[Reply] = []

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        for reply in super().ask([request for request in requests if request.client not in self.gone]):
            if reply.client in self.lost and requests[0].leg == self.leg:
                self.gone.add(reply.client)
                continue
            self.seen.append(reply)
            yield reply


def secure_round(
    toy: Toy, leg: str = "", lost: Sequence[int] = (), *, tolerated: int = 0, bound: float = 1.0
) -> tuple[Round, Losing]:
    aggregation = SecureAggregation(wire_from(toy.weights), bound, tolerated)
    method = FedAvg(4, LOCAL)
    engine = Losing(Participant(method, toy.clients, toy.learner, aggregation, STREAM), leg, lost)
    only = Server(method, engine, aggregation, STREAM).round(1, toy.weights)
    return only, engine


def test_the_sum_is_that_of_the_open_updates_to_the_step_of_the_grid() -> None:
    toy = Toy()
    openly = toy.server(FedAvg(4, LOCAL)).round(1, toy.weights)
    securely, _ = secure_round(toy)
    assert (securely.aggregate.total - openly.aggregate.total).abs().max() < 4 * 4 * 2.0**-31 + 1e-7
    assert torch.allclose(securely.weights, openly.weights, atol=1e-7)
    assert securely.loss == openly.loss
    assert securely.sampled == openly.sampled


def test_no_message_shows_the_update_that_is_in_it() -> None:
    toy = Toy()
    _, engine = secure_round(toy)
    _, again = secure_round(toy)
    masked = [{reply.client: reply.payload for reply in seen.seen if len(reply.payload) == 24 + 4 * DIMENSION}
              for seen in (engine, again)]  # fmt: skip
    assert len(masked[0]) == 4
    assert all(masked[0][client][24:] != masked[1][client][24:] for client in masked[0])


@pytest.mark.parametrize(("leg", "left"), [(SHARES, [0, 1, 3]), (TRAIN, [0, 1, 3]), (UNMASK, [0, 1, 2, 3])])
def test_a_tolerated_loss_leaves_the_mean_of_those_whose_update_arrived(leg: str, left: list[int]) -> None:
    toy = Toy()
    openly = Server(
        method := FedAvg(4, LOCAL),
        Losing(
            Participant(method, toy.clients, toy.learner, toy.server(method).aggregation, STREAM),
            TRAIN,
            [client for client in range(4) if client not in left],
        ),
        toy.server(method).aggregation,
        STREAM,
    ).round(1, toy.weights)
    only, _ = secure_round(toy, leg, [2], tolerated=1)
    assert only.clients == left
    assert torch.allclose(only.weights, openly.weights, atol=1e-7)


@pytest.mark.parametrize("leg", ["keys", SHARES, TRAIN, UNMASK])
def test_a_loss_that_is_not_tolerated_ends_the_round_with_nothing_released(leg: str) -> None:
    with pytest.raises(ProblemError) as caught:
        secure_round(Toy(), leg, [2])
    assert caught.value.problem.code is ErrorCode.SECURE_AGGREGATION


def test_secrets_are_kept_for_the_round_only() -> None:
    _, engine = secure_round(Toy())
    assert all(state == LocalState() for state in engine.states.values())
    _, broken = secure_round(Toy(), TRAIN, [2], tolerated=1)
    assert [client for client, state in broken.states.items() if state.secrets] == [2]


def test_an_update_beyond_the_bound_is_rejected_with_what_to_do() -> None:
    with pytest.raises(ProblemError) as caught:
        secure_round(Toy(), bound=1e-6)
    assert "bound" in caught.value.problem.next_step
    assert caught.value.problem.code is ErrorCode.SECURE_AGGREGATION


def test_a_sum_of_one_update_is_rejected() -> None:
    toy = Toy(clients=1)
    aggregation = SecureAggregation(wire_from(toy.weights), 1.0)
    participant = Participant(FedAvg(1, LOCAL), toy.clients, toy.learner, aggregation, STREAM)
    with pytest.raises(ProblemError, match="hides nothing"):
        Server(FedAvg(1, LOCAL), LocalEngine(participant), aggregation, STREAM).round(1, toy.weights)


def test_too_few_parameters_for_the_protocols_own_bytes_are_rejected() -> None:
    assert overhead_bytes(10, 100_000) == 1422
    with pytest.raises(ProblemError, match="more than 1000 trained parameters"):
        overhead_bytes(10, 1000)


def test_every_leg_is_counted_in_the_log() -> None:
    only, _ = secure_round(Toy())
    assert len(only.messages) == 4 * 4 * 2
    extra = {
        sum(m.size_bytes for m in only.messages if m.receiver == client) - 4 * DIMENSION
        for client in range(4)
    } | {
        sum(m.size_bytes for m in only.messages if m.sender == client) - 4 * DIMENSION for client in range(4)
    }
    assert min(extra) == overhead_bytes(4, 100_000)
