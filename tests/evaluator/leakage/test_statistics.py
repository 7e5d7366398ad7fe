"""Every statistic on numbers that are computed by hand; intervals and the null band; what there was before training."""

import numpy as np
import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.statistics import Attack, Statistic, difference, estimate


def attack(members: list[float], others: list[float], threshold: float = 0.0) -> Attack:
    return Attack(
        np.array([*members, *others], dtype=float),
        np.array([True] * len(members) + [False] * len(others)),
        threshold,
    )


@pytest.mark.parametrize(
    ("members", "others", "auc"),
    [
        ([3, 1], [2, 0], 3 / 4),
        ([3, 2], [1, 0], 1.0),
        ([1, 0], [3, 2], 0.0),
        ([1, 1], [1, 1], 1 / 2),
        # Of nine pairs six are right, and two are equal.
        ([3, 2, 1], [2, 1, 0], 7 / 9),
    ],
)
def test_auc_is_the_share_of_pairs_in_the_right_order(
    members: list[float], others: list[float], auc: float
) -> None:
    assert attack(members, others).found[Statistic.AUC] == pytest.approx(auc)


def test_balanced_accuracy_is_the_mean_of_the_shares_of_both_kinds() -> None:
    # Three of four members are above 0, and one of two others isn't.
    found = attack([1, 1, 1, -1], [1, -1]).found[Statistic.BALANCED_ACCURACY]
    assert found == pytest.approx((3 / 4 + 1 / 2) / 2)


def test_a_score_at_the_threshold_is_no_member() -> None:
    assert attack([0, 0], [0, 0]).found[Statistic.BALANCED_ACCURACY] == pytest.approx(1 / 2)


def test_the_true_positive_rate_is_the_highest_with_so_many_false_positives() -> None:
    # One of ten others may be above the threshold: it is at 9, where four of five members are.
    others = [9, *range(9)]
    ten = attack([10, 10, 9.5, 8.5, 0], [float(number) for number in others])
    assert ten.found[Statistic.TPR_AT_10] == pytest.approx(4 / 5)
    assert ten.found[Statistic.TPR_AT_1] == pytest.approx(3 / 5)


def test_equal_scores_are_on_one_side_of_every_threshold() -> None:
    assert attack([1, 1], [1] * 10).found[Statistic.TPR_AT_10] == pytest.approx(0)


def test_intervals_and_the_null_band_enclose_what_they_should() -> None:
    rng = np.random.default_rng(3)
    found = estimate(
        attack(list(rng.normal(1, 1, 60)), list(rng.normal(0, 1, 60)), 0.5), Statistic.AUC, resamples=400
    )
    # The true value is Φ(1/√2) = 0.760.
    assert found.low < 0.760 < found.high
    assert found.null_low < 0.5 < found.null_high < found.low
    assert found.p_value == pytest.approx(1 / 401)


def test_scores_that_are_all_equal_are_chance_without_spread() -> None:
    found = estimate(attack([1, 1, 1], [1, 1, 1]), Statistic.AUC, resamples=100)
    assert (found.value, found.low, found.high, found.p_value) == (0.5, 0.5, 0.5, 1.0)


def test_what_the_base_weights_had_before_is_no_difference() -> None:
    rng = np.random.default_rng(1)
    hard = np.concatenate([rng.normal(1, 1, 80), rng.normal(0, 1, 80)])
    is_member = np.arange(160) < 80
    before = Attack(hard + 0.1 * rng.normal(size=160), is_member, 0.5)
    same = Attack(hard + 0.1 * rng.normal(size=160), is_member, 0.5)
    leaking = Attack(hard + 2.0 * is_member, is_member, 0.5)
    assert not difference(same, before, Statistic.AUC, resamples=400).is_significant
    found = difference(leaking, before, Statistic.AUC, resamples=400)
    assert found.is_significant
    assert 0 < found.low < found.value < found.high


def test_attacks_on_different_providers_are_not_compared() -> None:
    with pytest.raises(ValueError, match="different providers"):
        difference(attack([1, 2], [0, 0]), attack([1, 2, 3], [0, 0]), Statistic.AUC)


def test_one_member_alone_is_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        attack([1], [0, 0])
    assert caught.value.problem.code == ErrorCode.LEAKAGE_PROVIDERS
    assert "1 members and 2 nonmembers" in str(caught.value)


def test_scores_that_are_no_numbers_are_the_callers_fault() -> None:
    with pytest.raises(ValueError, match="not finite"):
        attack([1, float("nan")], [0, 0])
