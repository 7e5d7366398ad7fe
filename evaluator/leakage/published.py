"""What of an assessment leaves the worker: rounded figures for everyone, and the attacks' statistics for organizers.

A board shows many models that were asked the same questions. Members who are easier by chance are so for all of them:
an interval of 95% for each model would show a leak that isn't there on one leakage set in forty, in row after row. So
a figure is published from an AUC that chance reaches once in a thousand sets. By Bonferroni's inequality, which holds
however much the models depend on each other, a board of 50 models without a leak shows none on 19 of 20 sets.
"""

from math import ceil, floor

from evaluator.leakage.results import LeakageResult
from evaluator.leakage.statistics import Interval, Statistic, least_auc
from evaluator.messages.leakage import AttackMeasure, Leakage, LeakageDetail

# The set is secret, and submissions are many: finer figures would reveal providers by what they change.
STEPS_OF_ONE = 20
# With which a board shows any leak where no model has one, and the number of models for which that holds.
FALSE_ALARM, ROWS = 0.05, 50
FIELDS = {
    Statistic.AUC: "auc",
    Statistic.BALANCED_ACCURACY: "balanced_accuracy",
    Statistic.TPR_AT_1: "tpr_at_1_percent",
    Statistic.TPR_AT_10: "tpr_at_10_percent",
}


def published(found: LeakageResult) -> Leakage:
    """Return the figures of our own attack as everyone may read them; none where nothing was found."""
    ours = found.strongest
    measures = ours.measures
    least = least_auc(ours.members, ours.nonmembers, FALSE_ALARM / ROWS)
    shown = Leakage(providers=len(found.providers), least_auc=ceil(100 * least) / 100 if least <= 1 else None)
    if measures[Statistic.AUC].value < least:
        return shown
    figures = {name: _rounded(measures[statistic].value) for statistic, name in FIELDS.items()}
    intervals = {f"{name}_interval": _outward(measures[statistic]) for statistic, name in FIELDS.items()}
    return Leakage.model_validate({**shown.model_dump(exclude_none=True), **figures, **intervals})


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


def _outward(interval: Interval) -> tuple[float, float]:
    """Return the ends of an interval, rounded so that it never excludes what the interval itself includes."""
    # A product may miss a whole number by its rounding.
    low, high = (round(STEPS_OF_ONE * end, 9) for end in (interval.low, interval.high))
    return max(floor(low), 0) / STEPS_OF_ONE, min(ceil(high), STEPS_OF_ONE) / STEPS_OF_ONE
