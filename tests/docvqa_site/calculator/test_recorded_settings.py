"""The settings that a run has recorded, as an address of the calculator: it computes the very same releases."""

from urllib.parse import parse_qs, urlsplit

import pytest

from docvqa_site.calculator.forms import ScenarioForm
from docvqa_site.calculator.presets import address_of
from evaluator.mechanisms.events import (
    FixedSizeGaussian,
    Gaussian,
    Laplace,
    PoissonGaussian,
    RandomAllocationGaussian,
    TwoStage,
)
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.units import Adjacency, PrivacyUnit

POISSON = PoissonGaussian(sampling_rate=0.1125, effective_noise_multiplier=1.2100000000000002)


@pytest.mark.parametrize(
    "event",
    [
        TwoStage(client_rate=0.2, within=POISSON, rounds=30),
        TwoStage(client_rate=0.3, within=Gaussian(effective_noise_multiplier=2), rounds=3),
        POISSON.repeated(10),
        RandomAllocationGaussian(rounds_per_cycle=4, effective_noise_multiplier=1.5, rounds=5),
        Gaussian(effective_noise_multiplier=0.7, rounds=5),
        Gaussian(effective_noise_multiplier=0.7, adjacency=Adjacency.REPLACE),
    ],
)
def test_the_address_has_the_same_releases(event):
    values = parse_qs(urlsplit(address_of(event, budget=4, delta=1e-6)).query)
    form = ScenarioForm({name: value for name, (value,) in values.items()})
    assert form.is_valid()
    scenario = form.scenario()
    assert scenario.releases()[SamplingRule.TWO_STAGE] == [event]
    assert (scenario.delta, form.cleaned_data["budget"]) == (1e-6, 4)


@pytest.mark.parametrize(
    "event",
    [
        FixedSizeGaussian(sampling_rate=0.1, effective_noise_multiplier=1),
        TwoStage(client_rate=0.2, within=Laplace(relative_scale=1)),
        Gaussian(effective_noise_multiplier=1, unit=PrivacyUnit.RECORD),
        Gaussian(effective_noise_multiplier=1, rounds=10_001),
    ],
)
def test_what_the_form_cannot_express_has_no_address(event):
    assert address_of(event, budget=4, delta=1e-6) == ""
