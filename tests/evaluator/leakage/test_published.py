"""What of an assessment leaves the worker."""

import pytest

from evaluator.leakage.published import detail_of, published
from evaluator.leakage.results import (
    LIKELIHOOD,
    AttackResult,
    LeakageResult,
    Measure,
    ProviderScore,
)
from evaluator.leakage.statistics import Interval, Statistic
from evaluator.messages.leakage import Leakage

FIGURES = {
    Statistic.AUC: 0.6667,
    Statistic.BALANCED_ACCURACY: 0.624,
    Statistic.TPR_AT_1: 0.0251,
    Statistic.TPR_AT_10: 0.21,
}


def found(low: float, high: float) -> LeakageResult:
    """An assessment whose AUC lies so far above that of the base weights."""

    def measure(value: float) -> Measure:
        return Measure(
            value=value,
            low=value - 0.1,
            high=value + 0.1,
            null_low=0.4,
            null_high=0.6,
            p_value=0.01,
            above_base=Interval(value=(low + high) / 2, low=low, high=high),
        )

    attack = AttackResult(
        attack=LIKELIHOOD,
        target_set=0,
        members=3,
        nonmembers=2,
        chance=0.6,
        measures={statistic: measure(value) for statistic, value in FIGURES.items()},
    )
    providers = [
        ProviderScore(provider=name, is_member=number < 3, questions=2, score=0.5)
        for number, name in enumerate(["Ada Ltd", "Bo Ltd", "Cy Ltd", "Di Ltd", "Ed Ltd"])
    ]
    return LeakageResult(
        questions=10, providers=providers, attacks=[attack], left_out=["T_5: too few providers"]
    )


def test_everyone_reads_figures_rounded_to_a_twentieth() -> None:
    assert published(found(0.02, 0.3)) == Leakage(
        providers=5, auc=0.65, balanced_accuracy=0.6, tpr_at_1_percent=0.05, tpr_at_10_percent=0.2
    )


@pytest.mark.parametrize(("low", "high"), [(-0.01, 0.3), (0.0, 0.3), (-0.3, -0.01)])
def test_no_figure_is_published_where_the_base_weights_do_as_well(low: float, high: float) -> None:
    assert published(found(low, high)) == Leakage(providers=5)


def test_organizers_read_every_statistic_and_no_provider() -> None:
    detail = detail_of(found(0.02, 0.3))
    assert [measure.statistic for measure in detail.measures] == list(FIGURES)
    assert [measure.value for measure in detail.measures] == list(FIGURES.values())
    assert detail.measures[0].members == 3
    assert detail.left_out == ["T_5: too few providers"]
    assert "Ltd" not in detail.model_dump_json()
