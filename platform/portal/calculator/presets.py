"""Settings that the calculator offers as examples, each as an address of its own."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.urls import reverse
from django.utils.http import urlencode

from portal.calculator.forms import Participation, ScenarioForm, Wanted


@dataclass(frozen=True)
class Preset:
    """An example: its title, and the address of its result."""

    title: str
    address: str


def presets() -> list[Preset]:
    """Return the examples; what one doesn't name is as in the empty form."""
    return [
        _preset("the competition's winner", {}),
        _preset("all clients in every round", {"sampling": Participation.ONE_STAGE}),
        _preset("noise for ε = 8", {"find": Wanted.NOISE, "budget": 8}),
    ]


def _preset(title: str, changes: Mapping[str, object]) -> Preset:
    values = {name: field.initial for name, field in ScenarioForm().fields.items()}
    return Preset(title, f"{reverse('calculator:calculator')}?{urlencode({**values, **changes})}")
