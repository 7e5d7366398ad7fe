"""Events are data that can't be out of range, and compositions have one privacy unit and one adjacency."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from evaluator.mechanisms.events import AdmmLaplace, Event, FedAvgLaplace, Gaussian, TwoStage, merged
from evaluator.mechanisms.units import PrivacyUnit
from tests.evaluator.accounting.compositions import (
    REPLACE,
    allocation,
    fixed_size,
    gaussian,
    laplace,
    poisson,
    two_stage,
)

EVENTS = [
    gaussian(1.0, 3),
    poisson(0.2, 1.0),
    fixed_size(0.2, 1.0, 2),
    laplace(2.0),
    FedAvgLaplace(clip_norm=1, learning_rate=0.1, examples=50, scale=0.1),
    AdmmLaplace(clip_norm=1, penalty=2, examples=500, scale=0.1, adjacency=REPLACE),
    two_stage(0.2, poisson(0.125, 1.145), 5),
    allocation(8, 1.0, 3),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_an_event_survives_json(event: Event) -> None:
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    assert adapter.validate_json(adapter.dump_json(event)) == event


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, 1e-12, math.nan])
def test_a_rate_is_a_probability_above_zero(rate: float) -> None:
    with pytest.raises(ValidationError):
        poisson(rate, 1)


@pytest.mark.parametrize("noise", [0, -1, 1e-3, 1e5, math.inf, math.nan])
def test_noise_has_a_range(noise: float) -> None:
    with pytest.raises(ValidationError):
        gaussian(noise)


def test_cycles_of_random_allocation_count_all_of_their_rounds() -> None:
    assert [event.total_rounds for event in (gaussian(1.0, 3), allocation(8, 1.0, 3))] == [3, 24]


@pytest.mark.parametrize("rounds", [1, 0, 10_001])
def test_a_cycle_has_several_rounds_but_not_too_many(rounds: int) -> None:
    with pytest.raises(ValidationError):
        allocation(rounds, 1.0)


@pytest.mark.parametrize("rounds", [0, -1, 10**9])
def test_rounds_have_a_range(rounds: int) -> None:
    with pytest.raises(ValidationError):
        gaussian(1.0, rounds)


def test_two_stages_have_one_adjacency() -> None:
    with pytest.raises(ValidationError, match="same unit and adjacency"):
        TwoStage(client_rate=0.2, within=gaussian(1.0, adjacency=REPLACE))


@given(st.permutations(EVENTS[:4] * 2))
def test_equal_mechanisms_are_merged_in_any_order(events: list[Event]) -> None:
    assert {(event.type, event.rounds) for event in merged(events)} == {
        ("gaussian", 6),
        ("poisson_gaussian", 2),
        ("fixed_size_gaussian", 4),
        ("laplace", 2),
    }


@pytest.mark.parametrize(
    "other",
    [gaussian(1.0, adjacency=REPLACE), Gaussian(effective_noise_multiplier=1, unit=PrivacyUnit.CLIENT)],
)
def test_what_protects_something_else_does_not_compose(other: Event) -> None:
    with pytest.raises(ValueError, match="one privacy unit and one adjacency"):
        merged([gaussian(1.0), other])


def test_sensitivities_of_output_perturbation() -> None:
    values: dict[str, Any] = {"clip_norm": 3, "scale": 1}
    assert FedAvgLaplace(learning_rate=0.5, examples=10, **values).sensitivity == pytest.approx(0.3)
    assert AdmmLaplace(penalty=2, examples=10, **values).sensitivity == pytest.approx(0.15)
    assert AdmmLaplace(penalty=2, examples=10, adjacency=REPLACE, **values).sensitivity == pytest.approx(0.3)
