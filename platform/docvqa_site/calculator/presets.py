"""Settings as addresses of the calculator: those that it offers as examples, and those that a run has recorded."""

from collections.abc import Mapping
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from docvqa_site.calculator.forms import Participation, ScenarioForm, Wanted
from evaluator.mechanisms.events import (
    Event,
    Gaussian,
    PoissonGaussian,
    RandomAllocationGaussian,
    TwoStage,
)
from evaluator.mechanisms.units import PrivacyUnit


def presets() -> dict[str, str]:
    """Return the examples by their titles, as addresses of their results."""
    # What one doesn't name is as in the empty form.
    changes: dict[str, dict[str, object]] = {
        "the competition's winner": {},
        "all clients in every round": {"sampling": Participation.ONE_STAGE},
        "one client as the privacy unit": {
            "client_rate": 0.5,
            "provider_rate": 1.0,
            "noise_multiplier": 2.0,
            "rounds": 18,
            "budget": 8,
        },
        **{f"noise for ε = {e}": {"find": Wanted.NOISE, "budget": e} for e in (1, 4, 8)},
    }
    return {title: _address({**_initial(), **values}) for title, values in changes.items()}


def address_of(event: Event, *, budget: float | None, delta: float) -> str:
    """Return the address that computes ε of the rounds of an event; empty where the form can't express them.

    The event's noise is that of all who added some, so the form has it as the server's.
    """
    settings = _sampling(event)
    if settings is None or event.unit is not PrivacyUnit.PROVIDER:
        return ""
    noise = {"noise_multiplier": settings.pop("noise"), "rounds": event.total_rounds}
    values = {**_initial(), **settings, **noise, "budget": budget, "delta": delta}
    values["adjacency"] = event.adjacency.value
    return _address(values) if ScenarioForm(values).is_valid() else ""


def _sampling(event: Event) -> dict[str, object] | None:
    match event:
        case Gaussian(effective_noise_multiplier=noise):
            return {"sampling": Participation.FULL, "noise": noise}
        case PoissonGaussian(sampling_rate=rate, effective_noise_multiplier=noise):
            return {"sampling": Participation.ONE_STAGE, "provider_rate": rate, "noise": noise}
        case RandomAllocationGaussian(rounds_per_cycle=rounds, effective_noise_multiplier=noise):
            return {
                "sampling": Participation.RANDOM_ALLOCATION,
                "rounds_per_cycle": rounds,
                "noise": noise,
            }
        case TwoStage(client_rate=rate, within=Gaussian() | PoissonGaussian() as within):
            inner = _sampling(within) or {}
            both = {"sampling": Participation.TWO_STAGES, "client_rate": rate}
            return {"provider_rate": 1.0, **inner, **both}
    return None


def _initial() -> dict[str, Any]:
    return {name: field.initial for name, field in ScenarioForm().fields.items()}


def _address(values: Mapping[str, Any]) -> str:
    return f"{reverse('calculator:calculator')}?{urlencode(values)}"
