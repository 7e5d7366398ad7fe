"""Each way of sampling: its laws, its rates and how many providers it takes on average."""

import pytest
from pydantic import TypeAdapter, ValidationError

from evaluator.mechanisms.events import (
    FixedSizeGaussian,
    Gaussian,
    PoissonGaussian,
    RandomAllocationGaussian,
)
from evaluator.mechanisms.sampling import (
    Binomial,
    Exactly,
    FixedSize,
    Full,
    OncePerCycle,
    Poisson,
    RandomAllocation,
    Sampling,
)

SIZES = {0: 30, 1: 40, 2: 50, 3: 60}
COINS = Poisson(client_rate=0.25, provider_rate=0.5)
FIXED = FixedSize(clients_per_round=2, providers_per_client=6).fitted(SIZES)
ALLOCATED = RandomAllocation(rounds_per_cycle=5)
ADAPTER: TypeAdapter[Full | Poisson | FixedSize | RandomAllocation] = TypeAdapter(Sampling)


def test_coins_are_binomial_at_clients_and_at_providers() -> None:
    assert COINS.clients(4) == Binomial(4, 0.25)
    assert COINS.providers(30) == Binomial(30, 0.5)
    assert COINS.rates(4) == (0.25, 0.5)
    assert COINS.expected_providers(SIZES) == 180 * 0.125


def test_a_coin_that_always_shows_heads_is_no_chance() -> None:
    everyone = Poisson(provider_rate=1.0)
    assert everyone.clients(4) == Exactly(4)
    assert everyone.providers(30) == Exactly(30)


def test_full_participation_takes_everyone() -> None:
    assert (Full().clients(4), Full().providers(30)) == (Exactly(4), Exactly(30))
    assert Full().rates(4) == (1.0, 1.0)
    assert Full().expected_providers(SIZES) == 180


def test_the_rate_of_fixed_numbers_is_that_of_the_client_with_fewest_providers() -> None:
    assert FIXED.fewest_providers == 30
    assert FIXED.rates(4) == (0.5, 0.2)
    assert (FIXED.clients(4), FIXED.providers(60)) == (Exactly(2), Exactly(6))
    assert FIXED.expected_providers(SIZES) == 12


def test_a_smaller_number_of_providers_may_be_declared_and_a_larger_one_not() -> None:
    declared = FixedSize(clients_per_round=2, providers_per_client=6, fewest_providers=20)
    assert declared.fitted(SIZES) == declared
    assert declared.covers(20)
    assert not declared.covers(19)
    with pytest.raises(ValueError, match="fewest_providers must be from 1 to 30: 31"):
        FixedSize(clients_per_round=2, providers_per_client=6, fewest_providers=31).fitted(SIZES)


@pytest.mark.parametrize(
    ("numbers", "name"), [((5, 6), "clients_per_round"), ((2, 31), "providers_per_client")]
)
def test_more_than_there_are_is_rejected_by_name(numbers: tuple[int, int], name: str) -> None:
    clients, providers = numbers
    sampling = FixedSize(clients_per_round=clients, providers_per_client=providers)
    with pytest.raises(ValueError, match=rf"sampling\.{name} must be from 1 to"):
        sampling.fitted(SIZES)
    assert FixedSize(clients_per_round=4, providers_per_client=30).fitted(SIZES)


def test_fixed_numbers_have_no_rate_without_the_fewest_providers() -> None:
    with pytest.raises(ValueError, match="fewest_providers must be given"):
        FixedSize(clients_per_round=2, providers_per_client=6).rates(4)
    with pytest.raises(ValueError, match="clients_per_round must be at most 1"):
        FIXED.rates(1)


def test_random_allocation_takes_all_clients_and_each_provider_once_in_a_cycle() -> None:
    assert (ALLOCATED.clients(4), ALLOCATED.providers(30)) == (Exactly(4), OncePerCycle(30, 5))
    assert ALLOCATED.rates(4) == (1.0, 0.2)
    assert ALLOCATED.expected_providers(SIZES) == 36
    assert ALLOCATED.fitted(SIZES) == ALLOCATED
    law = OncePerCycle(30, 5)
    assert [law.place(number) for number in (1, 5, 6, 12)] == [(0, 0), (0, 4), (1, 0), (2, 1)]
    assert (law.mean, law.most, law.least_with_one) == (6, 30, 1)


def test_each_is_accounted_as_the_mechanism_that_it_is() -> None:
    assert Full().event(1.0, 2.0) == COINS.event(1.0, 2.0) == Gaussian(effective_noise_multiplier=2)
    assert COINS.event(0.5, 2.0) == PoissonGaussian(sampling_rate=0.5, effective_noise_multiplier=2)
    assert FIXED.event(1.0, 2.0) == FixedSizeGaussian(sampling_rate=1, effective_noise_multiplier=2)
    assert ALLOCATED.event(0.2, 2.0) == RandomAllocationGaussian(
        rounds_per_cycle=5, effective_noise_multiplier=2
    )


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"type": "poison", "provider_rate": 0.5},
        {"type": "poisson"},
        {"type": "poisson", "provider_rate": 0.0},
        {"type": "poisson", "provider_rate": "0.5"},
        {"type": "poisson", "provider_rate": 0.5, "clients_per_round": 2},
        {"type": "fixed_size", "clients_per_round": 2},
        {"type": "fixed_size", "clients_per_round": 0, "providers_per_client": 1},
        {"type": "fixed_size", "clients_per_round": 2, "providers_per_client": 1.5},
        {"type": "fixed_size", "clients_per_round": 2, "providers_per_client": 7, "fewest_providers": 6},
        {"type": "full", "provider_rate": 0.5},
        {"type": "random_allocation"},
        {"type": "random_allocation", "rounds_per_cycle": 1},
    ],
)
def test_what_is_no_sampling_cannot_be_written(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(values)


@pytest.mark.parametrize("sampling", [Full(), COINS, FIXED, ALLOCATED])
def test_it_reads_what_it_writes(sampling: Sampling) -> None:
    assert ADAPTER.validate_json(ADAPTER.dump_json(sampling), strict=True) == sampling
