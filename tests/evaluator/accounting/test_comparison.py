import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.accounting import pld, rdp
from evaluator.accounting.comparison import OFFICIAL, Bound, compare, distinct
from evaluator.mechanisms.events import Gaussian, PoissonGaussian
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.units import Adjacency

BOTH = (SamplingRule.TWO_STAGE, SamplingRule.PRODUCT)


def bounds(event: Gaussian | PoissonGaussian, delta: float = 1e-5) -> dict[str, Bound]:
    """By method, of one composition that both rules lead to."""
    return {bound.method: bound for bound in compare({rule: [event] for rule in BOTH}, delta)}


def test_rules_that_lead_to_the_same_composition_share_its_bounds() -> None:
    assert all(bound.rules == BOTH for bound in bounds(Gaussian(effective_noise_multiplier=1)).values())


def test_different_compositions_keep_their_rules_in_order() -> None:
    one, other = Gaussian(effective_noise_multiplier=1), Gaussian(effective_noise_multiplier=2)
    releases = {SamplingRule.TWO_STAGE: [one], SamplingRule.PRODUCT: [other]}
    assert distinct(releases) == {(one,): BOTH[:1], (other,): BOTH[1:]}


def test_what_an_accountant_rejects_has_its_own_row() -> None:
    sampled = PoissonGaussian(sampling_rate=0.1, effective_noise_multiplier=1, adjacency=Adjacency.REPLACE)
    found = bounds(sampled)
    assert found[OFFICIAL].epsilon is not None
    assert found["RDP"].epsilon is None
    assert found["RDP"].rejection


def test_classical_bounds_need_equal_unsampled_rounds_with_much_noise() -> None:
    assert len(bounds(Gaussian(effective_noise_multiplier=100))) == 4
    assert set(bounds(Gaussian(effective_noise_multiplier=1))) == {OFFICIAL, "RDP"}
    assert set(bounds(PoissonGaussian(sampling_rate=0.5, effective_noise_multiplier=100))) == {
        OFFICIAL,
        "RDP",
    }


def test_the_classical_bound_of_one_round_is_the_textbook_one() -> None:
    classical = bounds(Gaussian(effective_noise_multiplier=10))["classical, basic composition"]
    assert classical.epsilon == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 10)


@given(
    noise_multiplier=st.floats(20, 1000),
    rounds=st.integers(1, 200),
    adjacency=st.sampled_from(Adjacency),
    delta=st.sampled_from([1e-3, 1e-5, 1e-7]),
)
def test_no_classical_bound_is_below_the_official_one(
    noise_multiplier: float, rounds: int, adjacency: Adjacency, delta: float
) -> None:
    event = Gaussian(effective_noise_multiplier=noise_multiplier, rounds=rounds, adjacency=adjacency)
    found = bounds(event, delta)
    official = pld.epsilon([event], delta)
    assert all(bound.epsilon is not None and bound.epsilon >= official for bound in found.values())


def test_the_best_of_several_runs_is_a_row_of_its_own() -> None:
    run = PoissonGaussian(sampling_rate=0.2, effective_noise_multiplier=2.8515625, rounds=10)
    rows = compare({rule: [run] for rule in BOTH}, 1e-5, tuning_runs=10)
    found = {row.method: row.epsilon or 0 for row in rows}
    assert found["RDP, best of about 10 runs"] == rdp.best_of([run], 1e-5, 10)
    assert found["RDP, best of about 10 runs"] > found["RDP"]
