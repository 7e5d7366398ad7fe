"""What the calculator asks for. The bounds keep one answer to a few seconds; the library itself takes more."""

from django import forms
from django.db.models import TextChoices

from evaluator.mechanisms.events import Adjacency
from evaluator.mechanisms.scenario import Sampling, Scenario

MAX_ROUNDS = 10_000
MAX_CLIENTS = 10_000
MIN_RATE = 1e-4
MIN_NOISE, MAX_NOISE = 0.1, 1e4
MIN_DELTA, MAX_DELTA = 1e-12, 1e-2
MIN_BUDGET, MAX_BUDGET = 1e-3, 1e3


class Wanted(TextChoices):
    """What is asked for."""

    EPSILON = "epsilon", "ε, from the noise"
    NOISE = "noise", "the least noise for the budget"


def _number(label: str, initial: float, low: float, high: float) -> forms.FloatField:
    widget = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(label=label, initial=initial, min_value=low, max_value=high, widget=widget)


class ScenarioForm(forms.Form):
    """A scenario and a budget. What a kind of sampling has no use for is ignored, and may stay as it is."""

    find = forms.ChoiceField(label="Compute", choices=Wanted.choices, initial=Wanted.EPSILON)
    sampling = forms.ChoiceField(
        label="Who takes part in a round",
        initial=Sampling.TWO_STAGE_POISSON,
        choices=[
            (Sampling.TWO_STAGE_POISSON.value, "Two stages: clients by coins, then their providers by coins"),
            (Sampling.GLOBAL_POISSON.value, "All clients, and every provider by its own coin"),
            (Sampling.FIXED_SIZE.value, "A fixed number of clients, then of each one's providers"),
            (Sampling.FULL.value, "Every provider of every client"),
        ],
    )
    client_rate = _number("Client rate C", 0.2, MIN_RATE, 1)
    provider_rate = _number("Provider rate p", 0.1125, MIN_RATE, 1)
    noise_multiplier = _number("Noise multiplier σ", 1.21, MIN_NOISE, MAX_NOISE)
    rounds = forms.IntegerField(label="Rounds", initial=30, min_value=1, max_value=MAX_ROUNDS)
    budget = _number("Budget ε", 1, MIN_BUDGET, MAX_BUDGET)
    delta = _number("δ", 1e-5, MIN_DELTA, MAX_DELTA)
    adjacency = forms.ChoiceField(
        label="Neighboring datasets",
        initial=Adjacency.ADD_REMOVE,
        choices=[
            (Adjacency.ADD_REMOVE.value, "One provider more or less (the benchmark's)"),
            (Adjacency.REPLACE.value, "One provider replaced by another"),
        ],
    )
    placement = forms.ChoiceField(
        label="Who draws the noise",
        initial="server",
        choices=[
            ("server", "The server, once, on the sum"),
            ("client_full", "Each client, all of it"),
            ("client_share", "Each client, a share of it"),
        ],
    )
    release_view = forms.ChoiceField(
        label="What an adversary sees",
        initial="aggregate",
        choices=[
            ("aggregate", "The sum over clients"),
            ("per_client", "Each client's update"),
        ],
    )
    clients = forms.IntegerField(label="Clients", initial=10, min_value=1, max_value=MAX_CLIENTS)
    colluding_clients = forms.IntegerField(
        label="Colluding clients", initial=0, min_value=0, max_value=MAX_CLIENTS
    )

    def target(self) -> float | None:
        """The ε for which noise is sought; None where the noise is given."""
        return self.cleaned_data["budget"] if self.cleaned_data["find"] == Wanted.NOISE else None

    def scenario(self) -> Scenario:
        """The scenario of a valid form; where its noise is sought, that of the form doesn't count."""
        settings = {
            name: self.cleaned_data[name] for name in Scenario.model_fields if name in self.cleaned_data
        }
        if self.target() is not None:
            del settings["noise_multiplier"]
        return Scenario.model_validate(settings)
