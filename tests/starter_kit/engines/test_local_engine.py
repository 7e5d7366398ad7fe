from starter_kit.engines.local import LocalEngine
from starter_kit.learning import LocalTraining
from starter_kit.methods.fedavg import FedAvg
from tests.starter_kit.toy import Toy


def test_updates_come_in_the_order_of_the_chosen_clients_and_are_reported() -> None:
    toy = Toy()
    seen: list[None] = []
    engine = LocalEngine(toy.clients, toy.learner, on_client=lambda: seen.append(None))
    method = FedAvg(2, LocalTraining(learning_rate=0.1, batch_size=100))
    chosen = list(engine.client_updates(method, [3, 1], toy.weights))
    third = method.client_update(toy.clients[3], toy.weights, toy.learner)
    assert (chosen[0].message - third.message).abs().max() < 1e-6
    assert (chosen[1].message - third.message).abs().max() > 1e-6
    assert len(seen) == 2
