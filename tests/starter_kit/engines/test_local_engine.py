import pytest

from evaluator.errors import ProblemError
from starter_kit.federation.client_state import LocalState, RemoteState
from starter_kit.federation.local_engine import LocalEngine
from starter_kit.federation.plain_aggregation import PlainAggregation
from starter_kit.federation.rounds import Participant, Request
from starter_kit.learning.local_training import LocalTraining
from starter_kit.methods.fedavg import FedAvg
from tests.starter_kit.toy import STREAM, Toy, wire_from


def test_replies_come_in_the_order_of_the_requests() -> None:
    toy = Toy()
    wire = wire_from(toy.weights)
    method = FedAvg(2, LocalTraining(learning_rate=0.1, batch_size=100))
    participant = Participant(method, toy.clients, toy.learner, PlainAggregation(wire), STREAM)
    engine = LocalEngine(participant)
    model = wire.pack_model(toy.weights)
    replies = list(engine.ask([Request(1, client, 2, model) for client in (3, 1)]))
    assert [reply.client for reply in replies] == [3, 1]
    assert replies[0].payload == participant.answer(Request(1, 3, 2, model), LocalState()).payload
    assert replies[0].payload != replies[1].payload


def test_what_a_client_keeps_is_its_own_and_lasts_from_round_to_round() -> None:
    toy = Toy()
    wire = wire_from(toy.weights)

    class Counting(FedAvg):
        def client_update(self, task):
            task.state["rounds"] = task.state.get("rounds", toy.weights) + task.client.id
            return super().client_update(task)

    method = Counting(2, LocalTraining(learning_rate=0.1))
    engine = LocalEngine(Participant(method, toy.clients, toy.learner, PlainAggregation(wire), STREAM))
    for number in (1, 2):
        list(engine.ask([Request(number, client, 2, wire.pack_model(toy.weights)) for client in (1, 3)]))
    assert {
        client: state.tensors["rounds"][0].item() for client, state in engine.states.items() if state.tensors
    } == {
        1: 2,
        3: 6,
    }


def test_what_was_left_at_a_node_is_not_restored_here() -> None:
    toy = Toy()
    method = FedAvg(2, LocalTraining(learning_rate=0.1))
    aggregation = PlainAggregation(wire_from(toy.weights))
    engine = LocalEngine(Participant(method, toy.clients, toy.learner, aggregation, STREAM))
    with pytest.raises(ProblemError, match="no state of client 2 on this machine"):
        engine.restore({1: LocalState({"rounds": toy.weights}), 2: RemoteState()})
    assert engine.states[1] == LocalState()
    engine.restore({1: LocalState({"rounds": toy.weights})})
    assert engine.states[1].tensors.keys() == {"rounds"}
