"""Every statistic on numbers that are computed by hand; intervals and the null band; what there was before training."""

import numpy as np
import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.resampling import Draws
from evaluator.leakage.statistics import (
    Attack,
    Statistic,
    bootstrap_interval,
    difference,
    estimate,
    shortest_interval,
)
from tests.studies.reproduction.leakage.coverage import simulate_coverage


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
    assert difference(same, before, Statistic.AUC, resamples=400).covers_zero
    found = difference(leaking, before, Statistic.AUC, resamples=400)
    assert not found.covers_zero
    assert 0 < found.low < found.value < found.high


def test_who_guesses_has_as_many_true_positives_as_false_ones() -> None:
    is_member = np.arange(400) < 200
    guessing = Attack(np.zeros(400), is_member, 0.0)
    noise = Attack(np.random.default_rng(2).normal(size=400), is_member, 0.0)
    found = difference(noise, guessing, Statistic.TPR_AT_10, resamples=400)
    assert found.value == pytest.approx(noise.found[Statistic.TPR_AT_10] - 0.1)
    assert found.covers_zero
    assert difference(guessing, guessing, Statistic.TPR_AT_10, resamples=400).value == 0


def test_the_curve_has_a_step_for_each_different_score() -> None:
    curve = attack([3, 2], [2, 1]).roc()
    assert curve.false_positive_rates.tolist() == [0, 0, 0.5, 1]
    assert curve.true_positive_rates.tolist() == [0, 0.5, 1, 1]


def test_permutations_are_judged_as_the_labels_are() -> None:
    rng = np.random.default_rng(4)
    # Many scores are equal.
    scores, is_member = rng.normal(size=60).round(), rng.random(60) < 0.4
    permuted = Attack(scores, is_member, 0.5).permuted(20)
    for row, labels in enumerate(Draws(is_member, 20).labels):
        found = Attack(scores, labels, 0.5).found
        assert {statistic: permuted[statistic][row] for statistic in Statistic} == pytest.approx(found)


def test_resamples_count_the_providers_that_are_drawn() -> None:
    rng = np.random.default_rng(5)
    scores, is_member = rng.normal(size=50).round(1), rng.random(50) < 0.5
    resampled = Attack(scores, is_member, 0.2).resampled(20)
    for row, counts in enumerate(Draws(is_member, 20).counts):
        assert counts[is_member].sum() == is_member.sum()
        drawn = np.repeat(np.arange(50), counts)
        found = Attack(scores[drawn], is_member[drawn], 0.2).found
        for statistic in (Statistic.AUC, Statistic.BALANCED_ACCURACY):
            assert resampled[statistic][row] == pytest.approx(found[statistic])


def test_as_many_nonmembers_are_above_a_threshold_as_coins_say() -> None:
    # Every nonmember has a member just below it, of 200: true positives count the nonmembers above the threshold.
    numbers = np.arange(200.0)
    sampled = attack(list(numbers - 0.5), list(numbers)).resampled(4000)[Statistic.TPR_AT_10]
    # A binomial count of nonmembers, and as many members again that vary: twice its variance.
    assert sampled.mean() == pytest.approx(0.1, abs=0.003)
    assert sampled.std() == pytest.approx(np.sqrt(2 * 0.1 * 0.9 / 200), rel=0.1)


def test_the_shortest_interval_is_on_the_side_where_most_resamples_are() -> None:
    sampled = np.linspace(0, 1, 10_001) ** 2
    # 95% are below 0.95², and any later interval is longer.
    assert shortest_interval(sampled, 0.2) == pytest.approx((0, 0.9025))
    assert shortest_interval(sampled, 0.99) == pytest.approx((0, 0.99))


def test_little_is_known_below_where_no_nonmember_may_be_above_the_threshold() -> None:
    rng = np.random.default_rng(6)
    found = attack(list(rng.normal(1, 1, 60)), list(rng.normal(0, 1, 60)))
    low, high = bootstrap_interval(found, Statistic.TPR_AT_1)
    # It is Φ(1 − 2.326) = 0.092.
    assert low < 0.05
    assert high > 0.2


@pytest.mark.parametrize(("providers", "shift"), [(100, 0.5), (100, 1.5), (300, 1.5)])
def test_intervals_hold_the_true_value_as_often_as_they_say(providers: int, shift: float) -> None:
    (found,) = simulate_coverage(400, sizes=[providers], shifts=[shift], resamples=400)
    # 95% of 400, three standard errors below.
    assert {statistic: found.share(statistic) > 0.917 for statistic in Statistic} == dict.fromkeys(
        Statistic, True
    )


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
