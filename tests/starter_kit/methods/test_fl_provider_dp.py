"""What the privacy proof says of FL-PROVIDER-DP, checked on the released weights of a toy federation."""

import weakref

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import FixedSize, Poisson, RandomAllocation
from starter_kit.dp.gaussian_sum import GaussianSum
from starter_kit.dp.grid import grid_step
from starter_kit.federation.rounds import Client, ClientTask, ClientUpdate
from starter_kit.learning.local_training import Learner, LocalTraining, Trained
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.methods.fl_provider_dp import ProviderDP, Settings
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.toy import STREAM, Toy, run_rounds, server

SIZE = 4000
LOCAL = LocalTraining(learning_rate=0.1, batch_size=100)


def method(
    *,
    providers: int = 20,
    provider_rate: float = 0.5,
    client_rate: float = 1.0,
    clip_norm: float = 0.25,
    noise_multiplier: float = 2.0,
    placement: Placement = Placement.SERVER,
    server_learning_rate: float = 1.0,
) -> ProviderDP:
    return ProviderDP(
        # Unchecked, so that rates too small for an accountant can stand for nobody.
        Poisson.model_construct(client_rate=client_rate, provider_rate=provider_rate),
        GaussianSum(clip_norm, Noise(multiplier=noise_multiplier, placement=placement)),
        divisor=providers * client_rate * provider_rate,
        local=LOCAL,
        server_learning_rate=server_learning_rate,
    )


METHOD = method()


class FixedUpdates(Learner):
    """Every example's "training" moves the weights by a vector chosen by the test."""

    def __init__(self, updates: Tensor) -> None:
        super().__init__(
            TrainableTensors({"w": torch.nn.Parameter(torch.zeros(updates.shape[1]))}), lambda _: updates
        )
        self.updates = updates

    def train(self, weights, examples, local, stream, state=None, hook=None) -> Trained:
        return Trained(self.updates[examples].sum(dim=0), None)


class WatchedUpdates(FixedUpdates):
    """Notes, whenever a provider trains, how many updates of earlier ones are still in memory."""

    def __init__(self, updates: Tensor) -> None:
        super().__init__(updates)
        self.made: list[weakref.ref[Tensor]] = []
        self.held: list[int] = []

    def train(self, weights, examples, local, stream, state=None, hook=None) -> Trained:
        self.held.append(sum(made() is not None for made in self.made))
        trained = super().train(weights, examples, local, stream)
        self.made.append(weakref.ref(trained.change))
        return trained


def settings(*changes: str) -> Settings:
    # Everybody takes part in every round, unless a test says otherwise.
    loaded = load_settings("fl-provider-dp", ["sampling.provider_rate=1", *changes])
    assert isinstance(loaded, Settings)
    return loaded


def one_provider_each(clients: int, providers: int) -> list[Client]:
    """Provider n of all has the one example n."""
    return [
        Client(c, {f"p{n}": [n] for n in range(c * providers, (c + 1) * providers)}) for c in range(clients)
    ]


def released(method: ProviderDP, clients: list[Client], learner: Learner, size: int) -> Tensor:
    """What one round adds to the model, times the public divisor and over the server's factor: the noisy sum."""
    only = server(method, clients, learner, torch.zeros(size)).round(1, torch.zeros(size))
    step = only.weights * (method.divisor / method.server_learning_rate)
    assert torch.allclose(step, only.aggregate.total, rtol=1e-5, atol=1e-9)
    return only.aggregate.total


def client_update(
    method: ProviderDP, client: Client, weights: Tensor, learner: Learner, clients: int = 4
) -> ClientUpdate:
    return method.client_update(ClientTask(client, 1, clients, weights, learner, STREAM, {}))


def noise_of(method: ProviderDP, clients: int = 4) -> Tensor:
    return released(method, one_provider_each(clients, 5), FixedUpdates(torch.zeros(5 * clients, SIZE)), SIZE)


def has_std(noise: Tensor, std: float) -> bool:
    statistic = float((noise.double() / std).square().sum())
    return bool(min(stats.chi2.cdf(statistic, len(noise)), stats.chi2.sf(statistic, len(noise))) > 1e-7)


def test_the_server_adds_noise_of_sigma_times_clip_norm_once() -> None:
    assert has_std(noise_of(METHOD), 2.0 * 0.25)
    assert not has_std(noise_of(method(noise_multiplier=2.6)), 2.0 * 0.25)
    assert not has_std(noise_of(method(noise_multiplier=1.4)), 2.0 * 0.25)


def test_each_client_adds_full_noise_to_its_own_message_under_client_full() -> None:
    full = method(placement=Placement.CLIENT_FULL)
    update = client_update(
        full, one_provider_each(1, 5)[0], torch.zeros(SIZE), FixedUpdates(torch.zeros(5, SIZE))
    )
    assert has_std(update.message, 2.0 * 0.25)
    assert has_std(noise_of(full, clients=4), 2.0 * 0.25 * np.sqrt(4))


def test_shares_of_the_clients_add_up_to_the_noise_of_one_under_client_share() -> None:
    share = method(placement=Placement.CLIENT_SHARE)
    update = client_update(
        share, one_provider_each(1, 5)[0], torch.zeros(SIZE), FixedUpdates(torch.zeros(5, SIZE)), clients=4
    )
    assert has_std(update.message, 2.0 * 0.25 / np.sqrt(4))
    assert has_std(noise_of(share, clients=4), 2.0 * 0.25)


@pytest.mark.parametrize("placement", Placement)
def test_a_round_in_which_nobody_is_sampled_is_noised_all_the_same(placement: Placement) -> None:
    assert has_std(noise_of(method(provider_rate=1e-12, placement=placement), clients=1), 2.0 * 0.25)


def test_rounds_and_coordinates_have_independent_noise() -> None:
    first, second = noise_of(METHOD), noise_of(METHOD)
    assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(SIZE)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 6 / np.sqrt(SIZE)


def test_neither_noise_nor_coins_follow_from_the_seed() -> None:
    """All of them share one stream, and a seed that a caller gave to torch and numpy."""
    draws = []
    for _ in range(2):
        torch.manual_seed(7)
        np.random.seed(7)
        half = method(noise_multiplier=1e-9, clip_norm=100.0, providers=400)
        updates = FixedUpdates(torch.eye(400))
        draws.append(released(half, one_provider_each(4, 100), updates, 400).round())
    assert not torch.equal(*draws)
    torch.manual_seed(7)
    first = noise_of(METHOD)
    torch.manual_seed(7)
    assert not torch.equal(first, noise_of(METHOD))


def test_one_provider_moves_the_sum_by_at_most_the_clip_norm_whatever_it_sends() -> None:
    exact = method(provider_rate=1.0, noise_multiplier=1e-9)
    updates = torch.zeros(20, 50)
    updates[7] = 1e6 * torch.randn(50)
    with_it = released(exact, one_provider_each(4, 5), FixedUpdates(updates), 50)
    assert 0.25 * (1 - 2.0**-9) < float(with_it.norm()) <= 0.25


def test_an_update_that_is_not_finite_is_left_out_and_counted_for_its_client_only() -> None:
    exact = method(provider_rate=1.0, noise_multiplier=1e-9)
    updates = torch.zeros(20, 50)
    updates[7] = float("nan")
    updates[8] = 0.01
    total = released(exact, one_provider_each(4, 5), FixedUpdates(updates), 50)
    assert torch.allclose(total, updates[8], atol=grid_step(0.25, 50))
    assert exact.discarded == {1: 1}


def test_sums_are_divided_by_the_expected_number_not_the_realized_one() -> None:
    half = method(noise_multiplier=1e-9, clip_norm=100.0)
    whole = server(half, one_provider_each(4, 5), FixedUpdates(torch.ones(20, 1)), torch.zeros(1))
    steps = [float(whole.round(number, torch.zeros(1)).weights) for number in range(1, 201)]
    assert len(set(np.round(np.array(steps) * 10))) > 3
    assert np.mean(steps) == pytest.approx(1.0, abs=6 * np.sqrt(20 * 0.25) / 10 / np.sqrt(200))


def test_a_provider_without_examples_contributes_nothing_rather_than_everything() -> None:
    exact = method(provider_rate=1.0, noise_multiplier=1e-9, clip_norm=100.0)
    toy = Toy(clients=1, providers=2)
    client = Client(0, {**toy.clients[0].providers, "empty": []})
    with_it = client_update(exact, client, toy.weights, toy.learner)
    without = client_update(exact, toy.clients[0], toy.weights, toy.learner)
    assert torch.allclose(with_it.message, without.message, atol=1e-6)
    assert (with_it.sampled, without.sampled) == (3, 2)


def test_how_many_took_part_is_recorded_beside_the_message_and_shown_nowhere() -> None:
    clients, learner = one_provider_each(4, 5), FixedUpdates(torch.ones(20, 1))
    exact = method(clip_norm=100.0, noise_multiplier=1e-9)
    only = server(exact, clients, learner, torch.zeros(1)).round(1, torch.zeros(1))
    assert sum(only.sampled.values()) == round(float(only.aggregate.total))
    assert set(only.sampled) == set(only.clients)
    update = client_update(exact, clients[0], torch.zeros(1), learner)
    assert "sampled" not in repr(only) + repr(update)
    assert only.loss is None
    assert update.loss is None


def test_all_clients_take_part_at_the_default_client_rate() -> None:
    assert METHOD.choose_clients(range(10), STREAM) == list(range(10))


def test_clients_flip_coins_too_at_a_lower_rate_and_the_divisor_follows() -> None:
    some = method(client_rate=0.3)
    assert len({len(some.choose_clients(range(10), STREAM)) for _ in range(200)}) > 3
    built = (
        settings("sampling.client_rate=0.3", "sampling.provider_rate=0.5")
        .plan(one_provider_each(4, 5))
        .method
    )
    assert isinstance(built, ProviderDP)
    assert built.divisor == pytest.approx(20 * 0.3 * 0.5)


def test_fixed_numbers_of_clients_and_providers_are_drawn_again_in_every_round() -> None:
    sampling = FixedSize(clients_per_round=2, providers_per_client=3)
    fixed = ProviderDP(sampling, GaussianSum(100.0, Noise(multiplier=1e-9)), 6.0, LOCAL)
    whole = server(fixed, one_provider_each(4, 5), FixedUpdates(torch.eye(20)), torch.zeros(20))
    rounds = list(run_rounds(whole, torch.zeros(20), range(1, 30)))
    assert all(sorted(finished.sampled.values()) == [3, 3] for finished in rounds)
    assert all(int(finished.aggregate.total.round().sum()) == 6 for finished in rounds)
    assert len({tuple(finished.aggregate.total.round().tolist()) for finished in rounds}) > 20


ALLOCATION = "sampling={type: random_allocation, rounds_per_cycle: 4}"


def test_by_random_allocation_each_provider_takes_part_once_in_every_cycle() -> None:
    allocated = ProviderDP(
        RandomAllocation(rounds_per_cycle=4), GaussianSum(100.0, Noise(multiplier=1e-9)), 5.0, LOCAL
    )
    whole = server(allocated, one_provider_each(4, 5), FixedUpdates(torch.eye(20)), torch.zeros(20))
    totals = [found.aggregate.total.round() for found in run_rounds(whole, torch.zeros(20), range(1, 41))]
    cycles = torch.stack(totals).reshape(10, 4, 20)
    assert torch.equal(cycles.sum(dim=1), torch.ones(10, 20))
    assert len({tuple(cycle.argmax(dim=0).tolist()) for cycle in cycles}) == 10


def test_random_allocation_needs_less_noise_than_coins_and_has_their_divisor() -> None:
    clients = one_provider_each(4, 5)
    allocated, coins = (
        settings(change).plan(clients).method for change in (ALLOCATION, "sampling.provider_rate=0.25")
    )
    assert isinstance(allocated, ProviderDP)
    assert isinstance(coins, ProviderDP)
    assert allocated.divisor == coins.divisor == 5
    assert allocated.noise.noise.multiplier < 0.9 * coins.noise.noise.multiplier


@pytest.mark.parametrize("change", ["placement=client_full", "replayable=true"])
def test_random_allocation_works_only_where_no_round_is_seen_twice_or_replayed(change: str) -> None:
    with pytest.raises(ProblemError) as caught:
        settings(ALLOCATION, change)
    assert "random_allocation" in str(caught.value.problem)


def test_fixed_numbers_cost_the_noise_of_a_provider_that_displaces_another() -> None:
    clients = one_provider_each(4, 5)
    fixed = settings("sampling={type: fixed_size, clients_per_round: 2, providers_per_client: 3}")
    coins = settings("sampling.client_rate=0.5", "sampling.provider_rate=0.6")
    with_fixed, with_coins = (chosen.plan(clients).method for chosen in (fixed, coins))
    assert isinstance(with_fixed, ProviderDP)
    assert isinstance(with_coins, ProviderDP)
    assert with_fixed.divisor == with_coins.divisor == 6
    assert with_fixed.noise.noise.multiplier > 1.5 * with_coins.noise.noise.multiplier


@pytest.mark.parametrize(
    ("name", "change"), [("clients_per_round", (5, 3)), ("providers_per_client", (2, 6))]
)
def test_more_than_there_are_can_not_be_drawn(name: str, change: tuple[int, int]) -> None:
    fixed = settings(
        f"sampling={{type: fixed_size, clients_per_round: {change[0]}, providers_per_client: {change[1]}}}"
    )
    with pytest.raises(ProblemError) as caught:
        fixed.plan(one_provider_each(4, 5))
    assert f"sampling.{name} must be from 1 to" in caught.value.problem.found


def test_the_server_learning_rate_scales_the_noisy_step() -> None:
    tripled = method(provider_rate=1.0, noise_multiplier=1e-9, clip_norm=100.0, server_learning_rate=3.0)
    learner = FixedUpdates(torch.ones(20, 2))
    only = server(tripled, one_provider_each(4, 5), learner, torch.zeros(2)).round(1, torch.zeros(2))
    assert torch.allclose(only.weights, torch.full((2,), 3.0), rtol=1e-5)


def test_it_learns_when_many_providers_agree() -> None:
    toy = Toy(clients=4, providers=50)
    noisy = method(
        providers=200, provider_rate=1.0, clip_norm=0.5, noise_multiplier=4.0, server_learning_rate=3.0
    )
    *_, last = run_rounds(toy.server(noisy), toy.weights, range(1, 16))
    assert toy.distance(last.weights) < 0.3 * toy.distance(toy.weights)


def test_with_a_target_and_noise_as_many_rounds_are_run_as_fit() -> None:
    clients = one_provider_each(4, 5)
    plan = settings("target_epsilon=4", "noise_multiplier=3", "rounds=100").plan(clients)
    within, rounds = plan.guarantee, plan.rounds
    assert 1 < rounds < 100
    assert within.epsilon(rounds) <= 4 < within.epsilon(rounds + 1)
    within.check_before(rounds)
    with pytest.raises(ProblemError) as caught:
        within.check_before(rounds + 1)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET
    assert str(rounds + 1) in caught.value.problem.where


def test_noise_that_allows_no_round_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        settings("target_epsilon=1", "noise_multiplier=0.5").plan(one_provider_each(4, 5))
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET


@pytest.mark.parametrize(
    "config", ["fl-provider-dp", "centralized-dp", "dp-clgecl", "plugins/adaptive-clipping"]
)
def test_no_update_of_a_provider_is_in_memory_while_the_next_one_trains(config: str) -> None:
    clients = one_provider_each(1, 5)
    changes = ["sampling.provider_rate=1", "noise_multiplier=1", "target_epsilon=null"]
    method = load_settings(config, changes).plan(clients).method
    learner = WatchedUpdates(torch.ones(5, SIZE))
    task = ClientTask(clients[0], 1, 1, torch.zeros(SIZE), learner, STREAM, {}, torch.zeros(1))
    method.client_update(task)
    assert learner.held == [0] * 5
