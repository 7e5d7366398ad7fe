import math

import pytest
import torch

from evaluator.errors import ProblemError
from starter_kit.dp.grid import grid_step
from starter_kit.federation.auxiliary import AUXILIARY
from starter_kit.federation.rounds import Server
from starter_kit.learning.local_training import State
from starter_kit.methods.adaptive_clipping import AdaptiveClipping
from starter_kit.scaffolding.toy import Toy
from starter_kit.settings.configuration import load_settings

NO_NOISE = [
    "target_epsilon=null",
    "noise_multiplier=1e-9",
    "sampling.provider_rate=1",
    "local.learning_rate=0.05",
]


def method_and_server(toy: Toy, *changes: str) -> tuple[AdaptiveClipping, Server]:
    plan = load_settings("plugins/adaptive-clipping", [*changes]).plan(toy.clients)
    assert isinstance(plan.method, AdaptiveClipping)
    return plan.method, toy.server(plan.method, auxiliary=plan.auxiliary)


def test_the_clip_norm_follows_the_share_of_updates_below_it() -> None:
    toy = Toy(clients=2, providers=5)
    method, server = method_and_server(
        toy, *NO_NOISE, "clip_norm=0.1", "quantile=0.5", "clip_learning_rate=0.4"
    )
    changes = [
        change
        for client in toy.clients
        for change in toy.learner.provider_changes(
            toy.weights, client.providers, method.local, server.stream.at("round", 1, "client", client.id)
        )
    ]
    below = sum(float(change.norm()) <= 0.1 for change in changes) / 10
    clipped = torch.stack([change * min(1, 0.1 / float(change.norm())) for change in changes]).sum(0)
    first = server.round(1, toy.weights)
    assert torch.allclose(first.aggregate.total, clipped, atol=10 * grid_step(0.1, len(clipped)))
    assert torch.allclose(first.weights, toy.weights + method.server_learning_rate * clipped / 10, atol=1e-4)
    assert float(server.state[AUXILIARY][0]) == pytest.approx(-0.4 * (below - 0.5))
    server.round(2, first.weights)
    assert {message.size_bytes for message in first.messages} == {4 * 9}


def test_it_settles_where_the_quantile_is() -> None:
    toy = Toy(clients=2, providers=10)
    method, server = method_and_server(
        toy, *NO_NOISE, "clip_norm=10", "quantile=0.7", "clip_learning_rate=1.0"
    )
    norms = [float(c.norm()) for client in toy.clients for c in toy.learner.provider_changes(
        toy.weights, client.providers, method.local, server.stream)]  # fmt: skip
    for number in range(1, 13):
        server.round(number, toy.weights)
    found = 10 * math.exp(float(server.state[AUXILIARY][0]))
    assert 0.6 <= sum(norm <= found for norm in norms) / 20 <= 0.8


def test_both_releases_together_have_the_noise_that_is_accounted() -> None:
    toy = Toy(clients=4, providers=20)
    method, _ = method_and_server(toy, "count_share=0.2", "clip_norm=3", "clip_learning_rate=0.01")
    joint = (method.update_multiplier**-2 + (2 * method.count_std) ** -2) ** -0.5
    assert joint == pytest.approx(method.noise.noise.multiplier)
    state: State = {}
    total = method.accumulator(torch.zeros(4000), state).result().total
    assert float(total.std()) == pytest.approx(3 * method.update_multiplier, rel=0.15)
    counts = []
    for _ in range(400):
        state = {}
        method.accumulator(torch.zeros(1), state).result()
        counts.append(float(state[AUXILIARY][0]) / 0.01 * method.divisor)
    assert float(torch.tensor(counts).std()) == pytest.approx(method.count_std, rel=0.3)


def test_it_claims_what_the_plain_method_claims_and_writes_no_record() -> None:
    toy = Toy(clients=4, providers=20)
    plan = load_settings("plugins/adaptive-clipping").plan(toy.clients)
    assert plan.record_terms is None
    assert plan.guarantee is not None
    assert 7.9 < plan.guarantee.epsilon(plan.rounds) <= 8


@pytest.mark.parametrize(
    "change",
    ["placement=client_full", "codec=int8", "max_weight_noise=0.1", "server_optimizer=fedavgm", "codec=topk"],
)
def test_what_its_proof_does_not_cover_is_rejected(change: str) -> None:
    with pytest.raises(ProblemError):
        load_settings("plugins/adaptive-clipping", [change])
