"""One composition under every sampling rule, by every method: what the calculator and `pfl privacy compare` list."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evaluator.accounting import classical, pld, rdp
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.events import Event, Gaussian, UnsupportedError
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.units import Adjacency

OFFICIAL = "PLD"

# From a composition and δ to ε.
Accounting = Callable[[Sequence[Event], float], float]

ACCOUNTANTS: dict[Accountant, Accounting] = {Accountant.PLD: pld.epsilon, Accountant.RDP: rdp.epsilon}


@dataclass(frozen=True)
class Bound:
    """ε by one method: infinite where no finite ε holds, None where `rejection` gives the reason.

    Attributes:
        rules: All amplification rules for which the composition is the same.
    """

    rules: tuple[SamplingRule, ...]
    method: str
    epsilon: float | None
    rejection: str = ""


def compare(
    releases: Mapping[SamplingRule, Sequence[Event]], delta: float, *, tuning_runs: float | None = None
) -> list[Bound]:
    """Return every bound on what was released according to each amplification rule, in the order of the rules.

    Args:
        tuning_runs: If given, the best of several such runs is bounded too; their number is Poisson-distributed with
            this mean.
    """
    accountants = {name.upper(): accounting for name, accounting in ACCOUNTANTS.items()}
    if tuning_runs is not None:
        accountants[f"RDP, best of about {tuning_runs:g} runs"] = partial(rdp.best_of, runs=tuning_runs)
    return [
        bound
        for events, rules in distinct(releases).items()
        for bound in (*_accounted(accountants, rules, events, delta), *_textbook(rules, events, delta))
    ]


def distinct(
    releases: Mapping[SamplingRule, Sequence[Event]],
) -> dict[tuple[Event, ...], tuple[SamplingRule, ...]]:
    """Return the different compositions, each with the rules that lead to it."""
    rules_of: dict[tuple[Event, ...], tuple[SamplingRule, ...]] = {}
    for rule, events in releases.items():
        rules_of[*events] = (*rules_of.get((*events,), ()), rule)
    return rules_of


def _accounted(
    accountants: Mapping[str, Accounting],
    rules: tuple[SamplingRule, ...],
    events: Sequence[Event],
    delta: float,
) -> Iterator[Bound]:
    """Yield one bound per accountant; where an accountant has no proof, its bound carries the reason."""
    for method, epsilon in accountants.items():
        try:
            yield Bound(rules, method, epsilon(events, delta))
        except UnsupportedError as error:
            yield Bound(rules, method, None, str(error))


def _textbook(rules: tuple[SamplingRule, ...], events: Sequence[Event], delta: float) -> Iterator[Bound]:
    """Yield the bounds of the classical theorems that apply: to equal Gaussian rounds, each with an ε of at most 1."""
    match events:
        case [Gaussian() as event]:
            for method, epsilon in TEXTBOOK.items():
                with contextlib.suppress(UnsupportedError):
                    yield Bound(rules, method, epsilon(event, delta))


def _basic(event: Gaussian, delta: float) -> float:
    return classical.basic_composition(_one_round(event, delta / event.rounds), event.rounds)


def _advanced(event: Gaussian, delta: float) -> float:
    """Return ε by advanced composition, which gives half of δ to the rounds and half to the composition."""
    one_round = _one_round(event, delta / (2 * event.rounds))
    return classical.advanced_composition(one_round, event.rounds, delta / 2)


def _one_round(event: Gaussian, delta: float) -> float:
    """Return the classical ε of one round, which is inversely proportional to σ."""
    sensitivity = 2 if event.adjacency is Adjacency.REPLACE else 1
    epsilon = classical.gaussian_noise_multiplier(1, delta) * sensitivity / event.effective_noise_multiplier
    if epsilon > 1:
        raise UnsupportedError(f"the classical bound holds for ε up to 1, not {epsilon:.4g}")
    return epsilon


TEXTBOOK: dict[str, Callable[[Gaussian, float], float]] = {
    "classical, basic composition": _basic,
    "classical, advanced composition": _advanced,
}
