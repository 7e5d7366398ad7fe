"""A scenario is what a record with the same settings is accounted as."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.accounting import pld
from evaluator.mechanisms.events import (
    FixedSizeGaussian,
    Gaussian,
    PoissonGaussian,
    TwoStage,
    Unit,
    UnsupportedError,
)
from evaluator.mechanisms.scenario import Sampling, SamplingRule, Scenario
from evaluator.records import epsilon as rules
from evaluator.records import lines

PRODUCT, TWO_STAGE = SamplingRule.PRODUCT, SamplingRule.TWO_STAGE


def test_two_stages_are_one_rate_under_the_product_rule_and_a_mixture_under_the_other() -> None:
    run = Scenario(client_rate=0.2, provider_rate=0.5, noise_multiplier=2, rounds=7)
    assert run.events(PRODUCT) == [PoissonGaussian(sampling_rate=0.1, noise_multiplier=2, rounds=7)]
    inner = PoissonGaussian(sampling_rate=0.5, noise_multiplier=2)
    assert run.events(TWO_STAGE) == [TwoStage(client_rate=0.2, within=inner, rounds=7)]


def test_a_rate_that_the_sampling_has_no_use_for_is_ignored() -> None:
    rates = {"client_rate": 0.2, "provider_rate": 0.5}
    assert Scenario(sampling=Sampling.FULL, **rates).events(PRODUCT) == [Gaussian(noise_multiplier=1)]
    global_poisson = Scenario(sampling=Sampling.GLOBAL_POISSON, **rates)
    assert global_poisson.events(TWO_STAGE) == [PoissonGaussian(sampling_rate=0.5, noise_multiplier=1)]


def test_a_fixed_number_is_no_coin() -> None:
    run = Scenario(sampling=Sampling.FIXED_SIZE, client_rate=0.2, provider_rate=0.5)
    assert run.events(PRODUCT) == [FixedSizeGaussian(sampling_rate=0.1, noise_multiplier=1)]


def test_the_published_settings_come_to_their_known_epsilon() -> None:
    run = Scenario(client_rate=0.2, noise_multiplier=0.771484375, rounds=10)
    assert pld.epsilon(run.events(PRODUCT), 1e-5) == pytest.approx(7.984, abs=2e-3)
    assert pld.epsilon(run.events(TWO_STAGE), 1e-5) == pytest.approx(14.46, abs=2e-3)


@pytest.mark.parametrize(
    ("rule", "settings", "sigma"),
    [
        (TWO_STAGE, {"client_rate": 0.2, "provider_rate": 0.1125, "rounds": 30}, 1.725),
        (TWO_STAGE, {"client_rate": 0.2, "rounds": 10}, 6.935),
        (PRODUCT, {"sampling": Sampling.GLOBAL_POISSON, "provider_rate": 0.1, "rounds": 30}, 2.410),
    ],
)
def test_the_noise_for_epsilon_1_is_the_known_one(
    rule: SamplingRule, settings: dict[str, float], sigma: float
) -> None:
    assert Scenario.model_validate(settings).noise_multiplier_for(1, rule) == pytest.approx(sigma, abs=1e-3)


def test_noise_is_sought_as_it_is_recorded() -> None:
    run = Scenario(
        client_rate=0.2, rounds=10, placement="client_share", release_view="per_client", clients=16
    )
    sigma = run.noise_multiplier_for(4, TWO_STAGE)
    found = run.with_changes(noise_multiplier=sigma)
    assert found.effective_noise_multiplier() == pytest.approx(sigma / 4)
    assert 3.99 < pld.epsilon(found.events(TWO_STAGE), 1e-5) <= 4


def test_noise_that_does_not_cover_what_is_seen_is_rejected() -> None:
    with pytest.raises(UnsupportedError, match="single clients"):
        Scenario(release_view="per_client").releases()


def test_noise_out_of_the_accountants_range_is_rejected() -> None:
    with pytest.raises(UnsupportedError, match="effective noise multiplier"):
        Scenario(
            noise_multiplier=0.2, placement="client_share", release_view="per_client", clients=100
        ).releases()


SAMPLINGS = {
    Sampling.FULL: lambda p: lines.Full(),
    Sampling.GLOBAL_POISSON: lambda p: lines.GlobalPoisson(provider_rate=p),
    Sampling.TWO_STAGE_POISSON: lambda p: lines.TwoStagePoisson(client_rate=0.3, provider_rate=p),
    Sampling.FIXED_SIZE: lambda p: lines.FixedSize(clients_per_round=3, provider_rate=p),
}


@given(
    sampling=st.sampled_from(Sampling),
    provider_rate=st.sampled_from([0.125, 1.0]),
    noise_multiplier=st.floats(1, 50),
    rounds=st.integers(1, 20),
    noise=st.sampled_from(
        [
            ("server", "aggregate"),
            ("client_full", "aggregate"),
            ("client_full", "per_client"),
            ("client_share", "aggregate"),
            ("client_share", "per_client"),
        ]
    ),
    colluding=st.integers(0, 9),
    rule=st.sampled_from(SamplingRule),
)
def test_a_record_with_the_same_settings_is_the_same_composition(
    sampling, provider_rate, noise_multiplier, rounds, noise, colluding, rule
):
    placement, release_view = noise
    client_rate = 0.3 if sampling.samples_clients else 1.0
    scenario = Scenario(
        sampling=sampling,
        client_rate=client_rate,
        provider_rate=provider_rate,
        noise_multiplier=noise_multiplier,
        rounds=rounds,
        clients=10,
        placement=placement,
        release_view=release_view,
        colluding_clients=colluding,
    )
    run = lines.RunLine.model_construct(
        unit=Unit.PROVIDER,
        adjacency=scenario.adjacency,
        clients=10,
        sampling=SAMPLINGS[sampling](provider_rate),
        noise=lines.Noise(
            multiplier=noise_multiplier,
            placement=placement,
            release_view=release_view,
            secure_aggregation="real",
            colluding_clients=colluding,
        ),
    )
    line = lines.RoundLine.model_construct(
        round=1, client_rate=client_rate, provider_rate=provider_rate, noise_multiplier=noise_multiplier
    )
    record = lines.TrainingRecord(run, [line] * rounds, lines.EndLine.model_construct(), "")
    assert rules.releases(record, rule) == scenario.events(rule)
