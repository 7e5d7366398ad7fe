"""What of an assessment leaves the worker."""

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


def found(auc: float = FIGURES[Statistic.AUC], *, of_each: int = 60) -> LeakageResult:
    """An assessment with such an AUC, of so many members and others."""

    def measure(value: float) -> Measure:
        return Measure(
            value=value,
            low=value - 0.1,
            high=value + 0.1,
            null_low=0.4,
            null_high=0.6,
            p_value=0.01,
            above_base=Interval(value=value - 0.5, low=value - 0.6, high=value - 0.4),
        )

    attack = AttackResult(
        attack=LIKELIHOOD,
        target_set=0,
        members=of_each,
        nonmembers=of_each,
        chance=0.5,
        measures={statistic: measure(value) for statistic, value in {**FIGURES, Statistic.AUC: auc}.items()},
    )
    providers = [
        ProviderScore(provider=name, is_member=number < 3, questions=2, score=0.5)
        for number, name in enumerate(["Ada Ltd", "Bo Ltd", "Cy Ltd", "Di Ltd", "Ed Ltd"])
    ]
    return LeakageResult(
        questions=10, providers=providers, attacks=[attack], left_out=["T_5: too few providers"]
    )


def test_everyone_reads_figures_rounded_to_a_twentieth() -> None:
    assert published(found()) == Leakage(
        providers=5,
        least_auc=0.67,
        # The nearest twentieth would be below the least AUC that is shown.
        auc=0.67,
        balanced_accuracy=0.6,
        tpr_at_1_percent=0.05,
        tpr_at_10_percent=0.2,
        auc_interval=(0.55, 0.8),
        balanced_accuracy_interval=(0.5, 0.75),
        tpr_at_1_percent_interval=(0, 0.15),
        tpr_at_10_percent_interval=(0.1, 0.35),
    )


def test_an_interval_that_ends_on_a_twentieth_is_not_widened() -> None:
    assert published(found(0.75)).auc_interval == (0.65, 0.85)
    assert published(found(0.95)).auc_interval == (0.85, 1)


def test_no_figure_is_published_that_chance_reaches_more_often_than_once_in_a_thousand_sets() -> None:
    # 0.5 + 3.0902 · √(121 / (12 · 60 · 60)) = 0.66355
    assert published(found(0.6635)) == Leakage(providers=5, least_auc=0.67)
    assert published(found(0.6636)).auc == 0.67
    assert published(found(0.6, of_each=400)).auc == 0.6


def test_too_few_providers_show_nothing() -> None:
    assert published(found(1.0, of_each=6)) == Leakage(providers=5)
    assert published(found(1.0, of_each=7)).auc == 1


def test_organizers_read_every_statistic_and_no_provider() -> None:
    detail = detail_of(found())
    assert [measure.statistic for measure in detail.measures] == list(FIGURES)
    assert [measure.value for measure in detail.measures] == list(FIGURES.values())
    assert detail.measures[0].members == 60
    assert detail.left_out == ["T_5: too few providers"]
    assert "Ltd" not in detail.model_dump_json()
