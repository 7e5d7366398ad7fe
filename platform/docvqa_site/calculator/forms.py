"""The form of the calculator. Its limits keep one answer to a few seconds; the library itself accepts more."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from django import forms
from django.db.models import TextChoices
from django.http import QueryDict

from docvqa_site.calculator.scenario import Scenario
from evaluator.mechanisms.mechanism import Mechanism
from evaluator.mechanisms.noise import Noise, Placement
from evaluator.mechanisms.sampling import FixedSize, Full, Poisson, RandomAllocation, Sampling
from evaluator.mechanisms.units import Adjacency

MAX_ROUNDS = 10_000
MAX_CLIENTS = 10_000
MIN_CYCLE, MAX_CYCLE = 2, 200
MIN_RATE = 1e-4
MIN_NOISE, MAX_NOISE = 0.1, 1e4
MIN_DELTA, MAX_DELTA = 1e-12, 1e-2
MIN_BUDGET, MAX_BUDGET = 1e-3, 1e3
# How far a product of two typed numbers may be from a whole number by rounding.
WHOLE = 1e-9


class Wanted(TextChoices):
    EPSILON = "epsilon", "ε for given noise"
    NOISE = "noise", "the smallest noise for a budget"


def _messages(label: str, low: float, high: float) -> dict[str, str]:
    """Return what is said of a value that the field rejects: which field it is, and what it takes."""
    text = f"{label} must be a number from {low:g} to {high:g}."
    return dict.fromkeys(("required", "invalid", "min_value", "max_value"), text)


def _number(label: str, initial: float, low: float, high: float) -> forms.FloatField:
    return forms.FloatField(
        label=label,
        initial=initial,
        min_value=low,
        max_value=high,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text=f"{low:g} to {high:g}",
        error_messages=_messages(label, low, high),
    )


def _count(label: str, initial: int, low: int, high: int) -> forms.IntegerField:
    limits = f"{low} to {high}"
    return forms.IntegerField(
        label=label,
        initial=initial,
        min_value=low,
        max_value=high,
        help_text=limits,
        error_messages=_messages(label, low, high),
    )


def _choice(label: str, choices: Sequence[tuple[str, str]]) -> forms.ChoiceField:
    """Return a field whose first choice is made until another one is."""
    return forms.ChoiceField(label=label, initial=choices[0][0], choices=choices)


class Participation(TextChoices):
    TWO_STAGES = "two_stages", "Poisson: clients, then providers"
    ONE_STAGE = "one_stage", "Poisson: providers of all clients"
    FIXED_SIZE = "fixed_size", "fixed size: clients, then providers"
    RANDOM_ALLOCATION = "random_allocation", "random allocation in cycles"
    FULL = "full", "no sampling (all take part)"


class ScenarioForm(forms.Form):
    """A scenario and a budget. Fields that a kind of sampling doesn't use are ignored."""

    find = _choice("Compute", Wanted.choices)
    sampling = _choice("Sampling", Participation.choices)
    client_rate = _number("Client rate C", 0.2, MIN_RATE, 1)
    provider_rate = _number("Provider rate p", 0.1125, MIN_RATE, 1)
    rounds_per_cycle = _count("Rounds per cycle", 10, MIN_CYCLE, MAX_CYCLE)
    noise_multiplier = _number("Noise multiplier σ", 1.21, MIN_NOISE, MAX_NOISE)
    rounds = _count("Rounds", 30, 1, MAX_ROUNDS)
    budget = _number("Budget ε", 1, MIN_BUDGET, MAX_BUDGET)
    delta = _number("δ", 1e-5, MIN_DELTA, MAX_DELTA)
    adjacency = _choice(
        "Adjacency",
        [
            (Adjacency.ADD_REMOVE.value, "add or remove one provider"),
            (Adjacency.REPLACE.value, "replace one provider of a client"),
        ],
    )
    placement = _choice(
        "Noise added by",
        [
            ("server", "the server (once, to the sum)"),
            ("client_full", "each client (full noise)"),
            ("client_share", "each client (a share of the noise)"),
        ],
    )
    secure_aggregation = _choice(
        "What the server sees (client-side noise)",
        [("simulated", "the sum (secure aggregation)"), ("none", "each client's update")],
    )
    clients = _count("Clients", 10, 1, MAX_CLIENTS)
    colluding_clients = _count("Colluding clients", 0, 0, MAX_CLIENTS)

    @classmethod
    def of_address(cls, given: QueryDict) -> "ScenarioForm":
        """Return the form with the values of an address, and its own for those that the address leaves out."""
        if not cls.base_fields.keys() & given.keys():
            return cls()
        left_out = {name: field.initial for name, field in cls.base_fields.items() if name not in given}
        return cls({**given.dict(), **left_out})

    def target(self) -> float | None:
        """Return the ε for which noise is calibrated; None where the noise is given."""
        return self.cleaned_data["budget"] if self.cleaned_data["find"] == Wanted.NOISE else None

    def clean(self) -> dict[str, Any]:
        """Reject a fixed number of clients that is not a whole number."""
        data: dict[str, Any] = super().clean() or {}
        if {"client_rate", "clients"} <= data.keys() and data.get("sampling") == Participation.FIXED_SIZE:
            wanted = data["client_rate"] * data["clients"]
            if abs(wanted - round(wanted)) > WHOLE or round(wanted) < 1:
                self.add_error(
                    "client_rate", f"C times {data['clients']} clients must be a whole number of clients."
                )
        return data

    def scenario(self) -> Scenario:
        """Return the scenario of a valid form; where the noise is to be computed, the form's own value is ignored.

        Raises `ValueError` if the numbers don't fit together.
        """
        data = self.cleaned_data
        noise = Noise(
            multiplier=1.0 if self.target() is not None else data["noise_multiplier"],
            placement=Placement(data["placement"]),
            secure_aggregation=data["secure_aggregation"],
            colluding_clients=data["colluding_clients"],
        )
        mechanism = Mechanism(
            sampling=self._sampling(),
            noise=noise,
            clients=data["clients"],
            adjacency=Adjacency(data["adjacency"]),
        )
        return Scenario(mechanism, data["rounds"], data["delta"])

    def _sampling(self) -> Sampling:
        data = self.cleaned_data
        match data["sampling"]:
            case Participation.FULL:
                return Full()
            case Participation.ONE_STAGE:
                return Poisson(provider_rate=data["provider_rate"])
            case Participation.TWO_STAGES:
                return Poisson(client_rate=data["client_rate"], provider_rate=data["provider_rate"])
            case Participation.RANDOM_ALLOCATION:
                return RandomAllocation(rounds_per_cycle=data["rounds_per_cycle"])
        # The rate as typed, as an exact fraction of two numbers of providers.
        rate = Fraction(str(data["provider_rate"]))
        return FixedSize(
            clients_per_round=round(data["client_rate"] * data["clients"]),
            providers_per_client=rate.numerator,
            fewest_providers=rate.denominator,
        )
