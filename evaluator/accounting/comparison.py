"""One composition under every sampling rule, by every method: what the calculator and `pfl privacy compare` list."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evaluator.accounting import classical, pld, rdp
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.events import Event, Gaussian, UnsupportedError
from evaluator.mechanisms.mechanism import SamplingRule

OFFICIAL = "PLD"

# From a composition and δ to ε.
Accounting = Callable[[Sequence[Event], float], float]

ACCOUNTANTS: dict[Accountant, Accounting] = {Accountant.PLD: pld.epsilon, Accountant.RDP: rdp.epsilon}
TEXTBOOK: dict[str, Callable[[Gaussian, float], float]] = {
    "classical, basic composition": classical.basic_composition,
    "classical, advanced composition": classical.advanced_composition,
}


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
