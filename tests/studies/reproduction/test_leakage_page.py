"""What docs/leakage.md says of outcomes that are made up: order, significance, and what ε allows."""

import pytest

from evaluator.accounting.bounds import MembershipBounds, TruePositiveRate
from evaluator.leakage.results import AttackResult, Measure
from evaluator.leakage.statistics import Interval, Statistic
from starter_kit.data.forms import FormSettings
from tests.studies.reproduction.leakage.coverage import simulate_coverage, true_value
from tests.studies.reproduction.leakage.experiment import (
    ATTACKED_ROWS,
    QUESTIONS,
    LeakageOutcome,
    LeakageResults,
    Size,
)
from tests.studies.reproduction.leakage.page import page

BOUNDS = MembershipBounds(
    balanced_accuracy=0.6,
    true_positive_rates=[
        TruePositiveRate(false_positive_rate=rate, at_most=most) for rate, most in ((0.01, 0.05), (0.1, 0.3))
    ],
    gaussian_mu=0.5,
)


def measure(value: float) -> Measure:
    return Measure(
        value=value,
        low=value - 0.1,
        high=value + 0.1,
        null_low=0.4,
        null_high=0.6,
        p_value=0.5,
        above_base=Interval(value=value - 0.5, low=value - 0.6, high=value - 0.4),
    )


def outcome(row: str, questions: str, auc: float) -> LeakageOutcome:
    values = {
        Statistic.AUC: auc,
        Statistic.BALANCED_ACCURACY: auc - 0.05,
        Statistic.TPR_AT_1: 0.01,
        Statistic.TPR_AT_10: 0.1,
    }
    return LeakageOutcome(
        row=row,
        seed=1,
        questions=questions,
        attacks=[
            AttackResult(
                attack="likelihood",
                target_set=0,
                members=20,
                nonmembers=20,
                chance=0.5,
                measures={statistic: measure(value) for statistic, value in values.items()},
            )
        ],
        bounds=BOUNDS if "dp-" in row else None,
        left_out=[],
    )


def results(**aucs: float) -> LeakageResults:
    return LeakageResults(
        kit_version="1",
        torch_version="2",
        machine="a machine",
        task=FormSettings(),
        size=Size(),
        outcomes=[
            outcome(row.name, questions, aucs.get(row.name.replace("-", "_"), 0.5))
            for row in ATTACKED_ROWS
            for questions in QUESTIONS
        ],
    )


def seeds(of: LeakageResults, count: int, *more: LeakageResults) -> LeakageResults:
    """Return one outcome of each row for each seed: `count` times the first, and once each of `more`."""
    outcomes = [
        outcome.model_copy(update={"seed": seed})
        for seed, found in enumerate([*[of] * count, *more], 1)
        for outcome in found.outcomes
    ]
    return of.model_copy(update={"outcomes": outcomes})


def test_the_order_of_epsilon_is_compared_with_that_of_leakage() -> None:
    text = page(results(fl_provider_dp_4=0.55, fl_provider_dp_8=0.6, fedavg=0.9, dp_lora_1=0.6))
    error = " ± 0.051"  # of an interval of ± 0.1
    numbers = ", ".join(f"{auc:.3f}{error}" for auc in (0.5, 0.55, 0.6, 0.9))
    assert f"- FL-PROVIDER-DP, new forms: **yes**; AUC {numbers} at ε = 1, 4, 8" in text
    # 0.6 at ε = 1 is above 0.5 at ε = 4, by less than two standard errors of a difference.
    assert "- DP-LoRA, training forms: **not at every step**, but no reversed pair" in text
    assert "- DP-LoRA, training forms: **no**; AUC 0.700" in page(results(dp_lora_1=0.7))


def test_what_is_significant_is_counted_and_marked() -> None:
    text = page(results(fedavg=0.9))
    assert "- FedAvg: 1 of 1 seeds on new forms, 1 of 1 seeds on training forms." in text
    assert "- Zero-shot: 0 of 1 seeds on new forms, 0 of 1 seeds on training forms." in text
    assert "0.900 (0.800–1.000) *" in text
    # A leak is above the base weights, not below.
    assert "- FedAvg: 0 of 1 seeds on new forms" in page(results(fedavg=0.3))


def test_whether_any_is_significant_at_epsilon_one_is_compared_with_chance() -> None:
    assert "\n**No**: 0 of 4 AUCs are significantly above the base weights'" in page(results())
    text = page(results(fl_provider_dp_1=0.9))
    assert "\n**Yes**: 2 of 4 AUCs" in text
    assert "of the same number of models that leak nothing, 0.1 would be." in text
    many = page(seeds(results(), 24, results(fl_provider_dp_1=0.9)))
    assert "\n**No more than by chance**: 2 of 100 AUCs" in many
    assert "\n**Yes**: 8 of 100 AUCs" in page(seeds(results(), 21, *[results(fl_provider_dp_1=0.9)] * 4))


def test_sizes_below_the_full_ones_are_named() -> None:
    assert "The sizes were reduced to 1 of 3 seeds, and 800 of 1,000 training providers; without" in page(
        results()
    )
    full = seeds(results(), 3).model_copy(update={"task": FormSettings(providers=1_000)})
    assert "reduced" not in page(full)


def test_rates_above_what_epsilon_allows_are_named() -> None:
    assert (
        "**Yes**: of 36 measured rates of private rows, 36 are within what ε allows; for 0, the whole"
        in page(results())
    )
    assert "**As far as intervals tell, yes**: of 36" in page(results(dp_lora_1=0.7))
    text = page(results(dp_lora_1=0.85))
    assert (
        "**No**: of 36 measured rates of private rows, 34 are within what ε allows; for 2, the whole" in text
    )
    assert "interval is above the limit. These are above:" in text
    assert "DP-LoRA, ε = 1, seed 1, likelihood, new forms: balanced accuracy 0.800" in text


def test_target_sets_of_the_same_providers_are_one_column() -> None:
    one = outcome("dp-lora-1", "red", 0.85)
    (ours,) = one.attacks
    azk = ours.model_copy(update={"attack": "AZK", "target_set": 5, "accuracy": 0.5})
    more = azk.model_copy(update={"target_set": 10})
    fewer = azk.model_copy(update={"target_set": 12, "members": 10, "accuracy": 0.625})
    found = one.model_copy(update={"attacks": [ours, azk, more, fewer]})
    text = page(results().model_copy(update={"outcomes": [found]}))
    assert "| row | AZK, s = 5 and 10 | AZK, s = 12 | published AZK, s = 5 | published AZK, s = 10 |" in text
    assert "| DP-LoRA, ε = 1 | 50.0 | 62.5 |" in text
    assert "of 9 measured rates of private rows" in text
    assert "- DP-LoRA, ε = 1, seed 1, AZK, s = 5 and 10, new forms: balanced accuracy 0.800" in text


def test_true_values_are_those_of_normal_scores() -> None:
    assert true_value(Statistic.AUC, 0) == pytest.approx(0.5)
    assert true_value(Statistic.BALANCED_ACCURACY, 2) == pytest.approx(0.8413, abs=1e-4)
    assert true_value(Statistic.TPR_AT_10, 1.2816) == pytest.approx(0.5, abs=1e-4)


def test_coverage_is_counted() -> None:
    (found,) = simulate_coverage(20, sizes=[40], shifts=[1.0], resamples=200)
    assert found.runs == 20
    assert found.share(Statistic.AUC) >= 0.8
    assert "| 40 | 0.76 |" in page(results().model_copy(update={"coverage": [found]}))
