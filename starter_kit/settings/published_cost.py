"""What a run as published costs by the rules of track 2, and how it would keep a budget.

The competition's kit draws fixed numbers of clients and providers, and accounts them as coins. Under the rule that
decides, fixed numbers cost more: a first run with `--use_dp` keeps none of the budgets, and learns that before it
trains. The papers' noise counts the sampling of clients as amplification, and the track's rule doesn't: a record that
claims the ε of the papers' rule is rejected.
"""

from collections.abc import Callable, Sequence

from evaluator.accounting import official
from evaluator.mechanisms.mechanism import Mechanism
from evaluator.mechanisms.sampling import FixedSize, Poisson
from evaluator.mechanisms.values import MIN_SAMPLING_RATE
from evaluator.records.epsilon import CLAIM_TOLERANCE
from starter_kit.federation.rounds import Client
from starter_kit.settings.run_settings import RecordedSettings, RunSettings
from starter_kit.settings.track_rules import BUDGETS, RULE

# Halvings in the search for a rate: to one in a thousand of the first.
STEPS = 10


def cost_notes(
    settings: RunSettings, clients: Sequence[Client], budgets: Sequence[float] = BUDGETS
) -> list[str]:
    """Return lines on what the run costs and what keeps each budget that it exceeds; none where it keeps all of them.

    Raises:
        ProblemError: The settings don't fit the clients.
    """
    plan = settings.plan(clients)
    if not (isinstance(settings, RecordedSettings) and plan.record_terms and plan.guarantee):
        return []
    mechanism = plan.record_terms.mechanism
    spent = plan.guarantee.epsilon(plan.rounds)
    exceeded = [budget for budget in sorted(budgets, reverse=True) if spent > budget]
    if not exceeded or not isinstance(mechanism.sampling, FixedSize):
        return []
    over = ", ".join(f"{budget:g}" for budget in exceeded)
    lines = [
        f"These settings spend ε = {spent:.4g} at δ = {settings.delta:g} under the rule "
        f"{settings.sampling_rule.value}. This exceeds the competition's budgets {over}, so "
        f"the run can't be ranked there."
    ]
    for budget in exceeded:

        def keeps(changed: Mechanism, budget: float = budget) -> bool:
            events = changed.events(settings.sampling_rule, plan.rounds)
            return official.epsilon(events, settings.delta) <= budget

        lines.append(f"  To keep ε = {budget:g}: {_ways(mechanism, mechanism.sampling, keeps, budget)}")
    return lines


def rule_notes(settings: RunSettings, clients: Sequence[Client]) -> list[str]:
    """Return a line where track 2 would reject the record, because another rule than the track's gives a smaller ε.

    Raises:
        ProblemError: The settings don't fit the clients.
    """
    if not isinstance(settings, RecordedSettings) or settings.sampling_rule is RULE:
        return []
    plan = settings.plan(clients)
    if not (plan.record_terms and plan.guarantee):
        return []
    claimed = plan.guarantee.epsilon(plan.rounds)
    spent = official.epsilon(plan.record_terms.mechanism.events(RULE, plan.rounds), settings.delta)
    if claimed >= spent - CLAIM_TOLERANCE:
        return []
    return [
        f"The record will claim ε = {claimed:.4g}, under the rule {settings.sampling_rule.value}. Under "
        f"track 2's rule, {RULE.value}, these settings spend ε = {spent:.4g}, and the track rejects "
        f"a record that claims less. "
        f"To get a rank: --set sampling_rule={RULE.value} --set noise_multiplier=null --set target_epsilon=8"
    ]


def _ways(mechanism: Mechanism, fixed: FixedSize, keeps: Callable[[Mechanism], bool], budget: float) -> str:
    ways = []
    if count := _most_providers(mechanism, fixed, keeps):
        ways.append(f"use --providers_per_fl_round {count}")
    if rate := _highest_rate(mechanism, fixed, keeps):
        client_rate = fixed.clients_per_round / mechanism.clients
        ways.append(
            f"flip coins: --set 'sampling={{type: poisson, client_rate: {client_rate:g}, provider_rate: {rate:.3g}}}'"
        )
    ways.append(f"add noise: --set noise_multiplier=null --set target_epsilon={budget:g}")
    return "; or ".join(ways)


def _most_providers(mechanism: Mechanism, fixed: FixedSize, keeps: Callable[[Mechanism], bool]) -> int:
    """Return the largest number of providers a client that keeps the budget; 0 if not even one does."""
    low, high = 0, fixed.providers_per_client
    while high - low > 1:
        middle = (low + high) // 2
        sampling = fixed.model_copy(update={"providers_per_client": middle})
        low, high = (
            (middle, high) if keeps(mechanism.model_copy(update={"sampling": sampling})) else (low, middle)
        )
    return low


def _highest_rate(mechanism: Mechanism, fixed: FixedSize, keeps: Callable[[Mechanism], bool]) -> float:
    """Return a provider rate of coins that keeps the budget, at most that of the fixed numbers; 0 if none was found."""
    client_rate, most = fixed.rates(mechanism.clients)
    low, high = 0.0, most
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle < MIN_SAMPLING_RATE:
            break
        sampling = Poisson(client_rate=client_rate, provider_rate=middle)
        low, high = (
            (middle, high) if keeps(mechanism.model_copy(update={"sampling": sampling})) else (low, middle)
        )
    # Shown with three digits, rounded down: it still keeps the budget.
    return float(f"{low * (1 - 5e-3):.3g}")
