"""What the privacy proof says of FL-PROVIDER-DP, checked on the released weights of a toy federation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from starter_kit.engines.local import LocalEngine
from starter_kit.learning import Learner, LocalTraining
from starter_kit.methods.fl_provider_dp import NoisePlacement, ProviderDP
from starter_kit.rounds import Client, run_rounds
from starter_kit.tensors import TrainableTensors
from tests.starter_kit.toy import Toy

SIZE = 4000
LOCAL = LocalTraining(learning_rate=0.1, batch_size=100)
METHOD = ProviderDP(providers=20, provider_rate=0.5, clip_norm=0.25, noise_multiplier=2.0, local=LOCAL)


class FixedUpdates(Learner):
    """Every example's "training" moves the weights by a vector chosen by the test."""

    def __init__(self, updates: Tensor) -> None:
        super().__init__(
            TrainableTensors({"w": torch.nn.Parameter(torch.zeros(updates.shape[1]))}), lambda _: updates
        )
        self.updates = updates

    def update(self, weights: Tensor, examples: list[int], local: LocalTraining) -> Tensor:  # type: ignore[override]
        return self.updates[examples].sum(dim=0)


def one_provider_each(clients: int, providers: int) -> list[Client]:
    """Provider n of all has the one example n."""
    return [
        Client(c, {f"p{n}": [n] for n in range(c * providers, (c + 1) * providers)}) for c in range(clients)
    ]


def released(method: ProviderDP, clients: list[Client], learner: Learner, size: int) -> Tensor:
    """What one round adds to the model, times the public divisor and over the server's factor: the noisy sum."""
    (only,) = run_rounds(method, LocalEngine(clients, learner), torch.zeros(size), 1)
    step = only.weights * (method.expected_providers / method.server_learning_rate)
    assert torch.allclose(step, only.aggregate.total, rtol=1e-5, atol=1e-9)
    return only.aggregate.total


def noise_of(method: ProviderDP, clients: int = 4) -> Tensor:
    return released(method, one_provider_each(clients, 5), FixedUpdates(torch.zeros(5 * clients, SIZE)), SIZE)


def has_std(noise: Tensor, std: float) -> bool:
    statistic = float((noise.double() / std).square().sum())
    return bool(min(stats.chi2.cdf(statistic, len(noise)), stats.chi2.sf(statistic, len(noise))) > 1e-7)


def test_the_server_adds_noise_of_sigma_times_clip_norm_once() -> None:
    assert has_std(noise_of(METHOD), 2.0 * 0.25)
    assert not has_std(noise_of(replace(METHOD, noise_multiplier=2.6)), 2.0 * 0.25)
    assert not has_std(noise_of(replace(METHOD, noise_multiplier=1.4)), 2.0 * 0.25)


def test_each_client_adds_full_noise_to_its_own_message_under_client_full() -> None:
    method = replace(METHOD, placement=NoisePlacement.CLIENT_FULL)
    update = method.client_update(
        one_provider_each(1, 5)[0], torch.zeros(SIZE), FixedUpdates(torch.zeros(5, SIZE))
    )
    assert has_std(update.message, 2.0 * 0.25)
    assert has_std(noise_of(method, clients=4), 2.0 * 0.25 * np.sqrt(4))


@pytest.mark.parametrize("placement", NoisePlacement)
def test_a_round_in_which_nobody_is_sampled_is_noised_all_the_same(placement: NoisePlacement) -> None:
    method = replace(METHOD, provider_rate=1e-12, placement=placement)
    noise = noise_of(method, clients=1)
    assert has_std(noise, 2.0 * 0.25)


def test_rounds_and_coordinates_have_independent_noise() -> None:
    first, second = noise_of(METHOD), noise_of(METHOD)
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(SIZE)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 6 / np.sqrt(SIZE)


def test_one_provider_moves_the_sum_by_at_most_the_clip_norm_whatever_it_sends() -> None:
    exact = replace(METHOD, provider_rate=1.0, noise_multiplier=1e-9)
    updates = torch.zeros(20, 50)
    updates[7] = 1e6 * torch.randn(50)
    with_it = released(exact, one_provider_each(4, 5), FixedUpdates(updates), 50)
    assert float(with_it.norm()) == pytest.approx(0.25, rel=1e-4)


def test_an_update_that_is_not_finite_is_left_out_and_counted_for_its_client_only() -> None:
    method = replace(METHOD, provider_rate=1.0, noise_multiplier=1e-9)
    updates = torch.zeros(20, 50)
    updates[7] = float("nan")
    updates[8] = 0.01
    total = released(method, one_provider_each(4, 5), FixedUpdates(updates), 50)
    assert torch.allclose(total, updates[8], atol=1e-6)
    assert method.discarded == {1: 1}


def test_sums_are_divided_by_the_expected_number_not_the_realised_one() -> None:
    method = replace(METHOD, noise_multiplier=1e-9, clip_norm=100.0)
    learner, clients = FixedUpdates(torch.ones(20, 1)), one_provider_each(4, 5)
    engine = LocalEngine(clients, learner)
    steps = [float(next(run_rounds(method, engine, torch.zeros(1), 1)).weights) for _ in range(200)]
    assert len(set(np.round(np.array(steps) * 10))) > 3
    assert np.mean(steps) == pytest.approx(1.0, abs=6 * np.sqrt(20 * 0.25) / 10 / np.sqrt(200))


def test_a_provider_without_examples_contributes_nothing_rather_than_everything() -> None:
    exact = replace(METHOD, provider_rate=1.0, noise_multiplier=1e-9, clip_norm=100.0)
    toy = Toy(clients=1, providers=2)
    client = Client(0, {**toy.clients[0].providers, "empty": []})
    with_it = exact.client_update(client, toy.weights, toy.learner)
    without = exact.client_update(toy.clients[0], toy.weights, toy.learner)
    assert torch.allclose(with_it.message, without.message, atol=1e-6)
    assert (with_it.sampled, without.sampled) == (3, 2)


def test_how_many_took_part_is_told_beside_the_message_and_shown_nowhere() -> None:
    clients, learner = one_provider_each(4, 5), FixedUpdates(torch.ones(20, 1))
    exact = replace(METHOD, clip_norm=100.0, noise_multiplier=1e-9)
    (only,) = run_rounds(exact, LocalEngine(clients, learner), torch.zeros(1), 1)
    assert sum(only.sampled.values()) == round(float(only.aggregate.total))
    assert set(only.sampled) == set(only.clients)
    update = exact.client_update(clients[0], torch.zeros(1), learner)
    assert "sampled" not in repr(only) + repr(update)


def test_all_clients_take_part_at_the_default_client_rate() -> None:
    assert METHOD.choose_clients(range(10)) == list(range(10))


def test_clients_flip_coins_too_at_a_lower_rate_and_the_divisor_follows() -> None:
    method = replace(METHOD, client_rate=0.3)
    sizes = {len(method.choose_clients(range(10))) for _ in range(200)}
    assert len(sizes) > 3
    assert method.expected_providers == pytest.approx(20 * 0.3 * 0.5)


def test_the_server_learning_rate_scales_the_noisy_step() -> None:
    method = replace(
        METHOD, provider_rate=1.0, noise_multiplier=1e-9, clip_norm=100.0, server_learning_rate=3.0
    )
    engine = LocalEngine(one_provider_each(4, 5), FixedUpdates(torch.ones(20, 2)))
    (only,) = run_rounds(method, engine, torch.zeros(2), 1)
    assert torch.allclose(only.weights, torch.full((2,), 3.0), rtol=1e-5)


def test_it_learns_when_many_providers_agree() -> None:
    toy = Toy(clients=4, providers=50)
    method = ProviderDP(200, 1.0, clip_norm=0.5, noise_multiplier=4.0, local=LOCAL, server_learning_rate=3.0)
    *_, last = run_rounds(method, LocalEngine(toy.clients, toy.learner), toy.weights, 15)
    assert toy.distance(last.weights) < 0.3 * toy.distance(toy.weights)
