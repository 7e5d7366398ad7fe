"""What the published sampler costs is reported with ways that keep each budget: settings that really do."""

import re

import pytest

from starter_kit.federation.rounds import Client
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.published_cost import cost_notes, rule_notes
from starter_kit.settings.run_settings import RunSettings

CLIENTS = [Client(client, {f"{client}-{number}": [0] for number in range(400)}) for client in range(10)]
FIXED = "sampling={type: fixed_size, clients_per_round: 2, providers_per_client: 50}"


def published(*changes: str) -> RunSettings:
    """The published kit's settings for ε = 4, as `--use_dp` reads them."""
    base = ["rounds=5", "target_epsilon=null", "noise_multiplier=0.637", "clip_norm=0.5", FIXED]
    return load_settings("fl-provider-dp", [*base, *changes])


def spent(settings: RunSettings) -> float:
    plan = settings.plan(CLIENTS)
    assert plan.guarantee
    return plan.guarantee.epsilon(plan.rounds)


def test_budgets_that_are_exceeded_are_named_with_epsilon() -> None:
    first, *others = cost_notes(published(), CLIENTS)
    assert "ε = 18.54" in first
    assert "budgets 8, 4, 1" in first
    assert [line.split()[4].rstrip(":") for line in others] == ["8", "4", "1"]


@pytest.mark.parametrize("budget", [8.0, 4.0])
def test_the_ways_that_are_named_keep_the_budget(budget: float) -> None:
    line = next(line for line in cost_notes(published(), CLIENTS) if f"To keep ε = {budget:g}:" in line)
    coins = re.search(r"--set '(sampling=[^']*)'", line)
    assert coins
    assert spent(published(coins[1])) <= budget
    if fewer := re.search(r"--providers_per_fl_round (\d+)", line):
        assert spent(published(f"sampling.providers_per_client={fewer[1]}")) <= budget
    assert spent(published("noise_multiplier=null", f"target_epsilon={budget:g}")) <= budget


def test_nothing_is_reported_of_a_run_within_all_budgets_or_with_coins_or_without_privacy() -> None:
    coins = "sampling={type: poisson, client_rate: 0.2, provider_rate: 0.125}"
    for settings in (published("noise_multiplier=20"), published(coins), load_settings("fedavg")):
        assert cost_notes(settings, CLIENTS) == []


COINS = "sampling={type: poisson, client_rate: 0.2, provider_rate: 0.125}"


def test_a_record_that_the_track_will_reject_is_announced_with_settings_that_rank() -> None:
    (line,) = rule_notes(published(COINS, "sampling_rule=product"), CLIENTS)
    claimed, due = re.findall(r"ε = ([\d.]+[\d])", line)
    assert float(claimed) < float(due)
    changes = re.findall(r"--set (\S+)", line)
    assert rule_notes(published(COINS, *changes), CLIENTS) == []
    assert spent(published(COINS, *changes)) <= 8


def test_a_record_is_not_announced_as_rejected_where_both_rules_agree_or_nothing_is_recorded() -> None:
    all_clients = "sampling={type: poisson, provider_rate: 0.125}"
    for settings in (
        published(COINS),
        published(all_clients, "sampling_rule=product"),
        load_settings("fedavg"),
    ):
        assert rule_notes(settings, CLIENTS) == []
