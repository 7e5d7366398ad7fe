"""A mechanism is what a record with the same parts is accounted as."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator.accounting import pld
from evaluator.accounting.calibration import noise_multiplier_for
from evaluator.mechanisms.events import (
    FixedSizeGaussian,
    Gaussian,
    PoissonGaussian,
    TwoStage,
    UnsupportedError,
)
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import FixedSize, Full, Poisson, Sampling
from evaluator.records import epsilon, lines

PRODUCT, TWO_STAGE = SamplingRule.PRODUCT, SamplingRule.TWO_STAGE


def mechanism(sampling: Sampling, multiplier: float = 1.0, clients: int = 10, **noise: object) -> Mechanism:
    return Mechanism(
        sampling=sampling, noise=Noise.model_validate({"multiplier": multiplier, **noise}), clients=clients
    )


def test_two_stages_are_one_rate_under_the_product_rule_and_a_mixture_under_the_other() -> None:
    run = mechanism(Poisson(client_rate=0.2, provider_rate=0.5), 2)
    assert run.events(PRODUCT, 7) == [
        PoissonGaussian(sampling_rate=0.1, effective_noise_multiplier=2, rounds=7)
    ]
    inner = PoissonGaussian(sampling_rate=0.5, effective_noise_multiplier=2)
    assert run.events(TWO_STAGE, 7) == [TwoStage(client_rate=0.2, within=inner, rounds=7)]


def test_one_stage_is_the_same_under_both_rules() -> None:
    run = mechanism(Poisson(provider_rate=0.5))
    sampled = [PoissonGaussian(sampling_rate=0.5, effective_noise_multiplier=1)]
    assert run.events(TWO_STAGE) == run.events(PRODUCT) == sampled
    assert mechanism(Full()).events(PRODUCT) == [Gaussian(effective_noise_multiplier=1)]


def test_a_fixed_number_is_no_coin() -> None:
    run = mechanism(FixedSize(clients_per_round=2, providers_per_client=5, fewest_providers=10))
    assert run.events(PRODUCT) == [FixedSizeGaussian(sampling_rate=0.1, effective_noise_multiplier=1)]


def test_the_published_settings_come_to_their_known_epsilon() -> None:
    run = mechanism(Poisson(client_rate=0.2, provider_rate=1.0), 0.771484375)
    assert pld.epsilon(run.events(PRODUCT, 10), 1e-5) == pytest.approx(7.984, abs=2e-3)
    assert pld.epsilon(run.events(TWO_STAGE, 10), 1e-5) == pytest.approx(14.46, abs=2e-3)


@pytest.mark.parametrize(
    ("rule", "sampling", "rounds", "sigma"),
    [
        (TWO_STAGE, Poisson(client_rate=0.2, provider_rate=0.1125), 30, 1.725),
        (TWO_STAGE, Poisson(client_rate=0.2, provider_rate=1.0), 10, 6.935),
        (PRODUCT, Poisson(provider_rate=0.1), 30, 2.410),
    ],
)
def test_the_noise_for_epsilon_1_is_the_known_one(
    rule: SamplingRule, sampling: Sampling, rounds: int, sigma: float
) -> None:
    found = noise_multiplier_for(mechanism(sampling), epsilon=1, delta=1e-5, rounds=rounds, rule=rule)
    assert found == pytest.approx(sigma, abs=1e-3)


def test_noise_is_calibrated_as_it_is_recorded() -> None:
    run = mechanism(Poisson(client_rate=0.2, provider_rate=1.0), clients=16, placement="client_share")
    sigma = noise_multiplier_for(run, epsilon=4, delta=1e-5, rounds=10, rule=TWO_STAGE)
    found = run.with_noise_multiplier(sigma)
    assert found.effective_noise_multiplier() == pytest.approx(sigma / 4)
    assert 3.99 < pld.epsilon(found.events(TWO_STAGE, 10), 1e-5) <= 4


def test_noise_out_of_the_accountants_range_is_rejected() -> None:
    with pytest.raises(UnsupportedError, match="effective noise multiplier"):
        mechanism(Full(), 0.2, clients=100, placement="client_share").releases()


def test_more_clients_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(ValidationError, match="clients_per_round must be at most 2"):
        mechanism(FixedSize(clients_per_round=3, providers_per_client=1, fewest_providers=1), clients=2)


@pytest.mark.parametrize("rounds", [0, 2_000_000])
def test_a_number_of_rounds_out_of_range_is_rejected(rounds: int) -> None:
    with pytest.raises(ValueError, match="rounds"):
        mechanism(Full()).events(PRODUCT, rounds)


@given(
    sampling=st.sampled_from(
        [
            Full(),
            Poisson(provider_rate=0.125),
            Poisson(provider_rate=1.0),
            Poisson(client_rate=0.3, provider_rate=0.125),
            Poisson(client_rate=0.3, provider_rate=1.0),
            FixedSize(clients_per_round=3, providers_per_client=1, fewest_providers=8),
        ]
    ),
    multiplier=st.floats(1, 50),
    rounds=st.integers(1, 20),
    noise=st.sampled_from(
        [
            ("server", "none"),
            ("client_full", "real"),
            ("client_full", "none"),
            ("client_share", "simulated"),
            ("client_share", "none"),
        ]
    ),
    colluding=st.integers(0, 9),
    rule=st.sampled_from(SamplingRule),
)
def test_a_record_with_the_same_parts_is_the_same_composition(
    sampling, multiplier, rounds, noise, colluding, rule
):
    placement, secure = noise
    run = mechanism(
        sampling, multiplier, placement=placement, secure_aggregation=secure, colluding_clients=colluding
    )
    # Of a record's lines only those parts that are accounted.
    first = lines.RunLine.model_construct(  # type: ignore[call-arg]
        unit=run.unit, adjacency=run.adjacency, clients=10, sampling=run.sampling, noise=run.noise
    )
    line = lines.RoundLine.model_construct(  # type: ignore[call-arg]
        round=1, sampling=sampling, noise_multiplier=multiplier
    )
    end = lines.EndLine.model_construct()  # type: ignore[call-arg]
    record = lines.TrainingRecord(first, [line] * rounds, end, "")
    assert epsilon.releases(record, rule) == run.events(rule, rounds)
