"""What of an assessment leaves the worker: rounded figures for everyone, and the attacks' statistics for organizers."""

from evaluator.leakage.results import LeakageResult
from evaluator.leakage.statistics import Statistic
from evaluator.messages.leakage import AttackMeasure, Leakage, LeakageDetail

# The set is secret, and submissions are many: finer figures would reveal providers by what they change.
STEPS_OF_ONE = 20


def published(found: LeakageResult) -> Leakage:
    """Return the figures of our own attack as everyone may read them; none where nothing was found."""
    measures = found.strongest.measures
    above = measures[Statistic.AUC].above_base
    if above.low <= 0:
        # A difference below 0 is no leak, either.
        return Leakage(providers=len(found.providers))
    return Leakage(
        providers=len(found.providers),
        auc=_rounded(measures[Statistic.AUC].value),
        balanced_accuracy=_rounded(measures[Statistic.BALANCED_ACCURACY].value),
        tpr_at_1_percent=_rounded(measures[Statistic.TPR_AT_1].value),
        tpr_at_10_percent=_rounded(measures[Statistic.TPR_AT_10].value),
    )


def detail_of(found: LeakageResult) -> LeakageDetail:
    """Return what organizers read: every statistic of every attack, without a provider's name."""
    return LeakageDetail(
        measures=[
            AttackMeasure(
                **attack.model_dump(include={"attack", "target_set", "members", "nonmembers"}),
                **measure.model_dump(include={"value", "low", "high", "p_value"}),
                statistic=statistic,
                above_base=measure.above_base.value,
                above_base_low=measure.above_base.low,
                above_base_high=measure.above_base.high,
            )
            for attack in found.attacks
            for statistic, measure in attack.measures.items()
        ],
        left_out=found.left_out,
    )


def _rounded(value: float) -> float:
    return round(value * STEPS_OF_ONE) / STEPS_OF_ONE
