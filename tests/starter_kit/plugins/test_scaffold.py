import pytest
import torch

from evaluator.errors import ProblemError
from starter_kit.randomness import Stream
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.plugins.examples import example

RATE = 0.01
SETTINGS = [f"local.learning_rate={RATE}", "local.batch_size=4", "local.epochs=2", "server_learning_rate=0.5"]


def test_two_rounds_are_what_the_equations_say() -> None:
    toy = Toy(clients=2, providers=3)
    settings = load_settings(example("scaffold"), SETTINGS)
    rounds = toy.run_settings(settings, 2)
    w, c, own = torch.zeros(8), torch.zeros(8), [torch.zeros(8)] * 2
    for number, finished in enumerate(rounds, start=1):
        ends, moved = [], []
        for client in toy.clients:
            stream = Stream(settings.seed).at("round", number, "client", client.id)
            y, steps = w.clone(), 0
            draw = stream.at("batches").random()
            for _ in range(2):
                order = list(client.examples)
                draw.shuffle(order)
                for start in range(0, 6, 4):
                    g = toy.learner.gradient(y, order[start : start + 4], 4)
                    y, steps = y - RATE * (g - own[client.id] + c), steps + 1
            ends.append(y)
            moved.append(own[client.id] - c + (w - y) / (steps * RATE))
        w = w + 0.5 * (sum(ends) / 2 - w)
        c, own = c + sum(m - o for m, o in zip(moved, own, strict=True)) / 2, moved
        assert torch.allclose(finished.weights, w, atol=1e-6)
        assert {message.size_bytes for message in finished.messages} == {2 * 4 * 8}
        assert finished.loss is not None


def test_a_share_of_the_clients_moves_the_servers_variate_by_that_share() -> None:
    toy = Toy(clients=4)
    settings = load_settings(example("scaffold"), [*SETTINGS, "clients_per_round=1"])
    plan = settings.plan(toy.clients)
    server = toy.server(plan.method, auxiliary=plan.auxiliary)
    first = server.round(1, toy.weights)
    assert torch.allclose(server.state["beside"], first.aggregate.total[8:] / 4)


@pytest.mark.parametrize("change", ["local.optimizer=adamw", "local.momentum=0.5", "local.hook=fedprox"])
def test_what_its_equations_do_not_cover_is_rejected(change: str) -> None:
    with pytest.raises(ProblemError, match="SCAFFOLD"):
        load_settings(example("scaffold"), [change])
