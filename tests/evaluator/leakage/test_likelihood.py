"""Likelihood ratios by hand, what references add, and planted leaks over twenty seeds."""

from dataclasses import replace

import numpy as np
import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.features import Asked, ProviderFeatures, provider_features
from evaluator.leakage.likelihood import Calibration, Side, adjusted_gains
from evaluator.leakage.statistics import Attack, Statistic, least_auc
from tests.evaluator.leakage.planted import asked

SEEDS = range(20)


def features(names: list[str], is_member: list[bool], gained: list[float]) -> ProviderFeatures:
    g3 = np.array([[gain, 0.0] for gain in gained])
    empty = np.zeros((len(names), 2))
    return ProviderFeatures(names, np.array(is_member), empty, empty, g3, None, np.full(len(names), 4.0))


def test_a_log_density_is_the_normal_ones() -> None:
    # Variance 1 + 4/4 = 2; at a distance of 2: −(ln 4π + 2)/2.
    found = Side(1.0, 1.0, 4.0).log_densities(np.array([3.0]), np.array([4.0]))
    assert found == pytest.approx([-(np.log(4 * np.pi) + 2) / 2])


def test_a_provider_that_no_reference_knows_is_compared_with_all() -> None:
    reference = features(list("abcdefgh"), [True] * 4 + [False] * 4, [3, 4, 5, 4, 0, 1, 2, 1])
    score = Calibration.of([reference]).scores(features(["x", "y", "z"], [True] * 3, [4, 2.5, 1]))
    # Both have a variance of 2/3: log ratio (4−1)·(value − 2.5)/(2/3).
    assert score == pytest.approx([6.75, 0, -6.75])


def test_a_provider_that_references_know_is_compared_with_itself() -> None:
    names = list("abcd")
    hard = np.array([0.0, 10.0, 20.0, 30.0])
    shifts = [[2.1, 0, 2.1, 0], [0.1, 2, 0.1, 2], [1.9, 0.2, 1.9, 0.2], [-0.1, 2.2, -0.1, 2.2]]
    references = [
        features(names, [(number + place) % 2 == 0 for place in range(4)], list(hard + shift))
        for number, shift in enumerate(shifts)
    ]
    found = features(names, [True] * 4, [2, 10.1, 20, 32.1])
    assert (Calibration.of(references).scores(found) > 0).tolist() == [True, False, False, True]


def test_references_need_members_and_others() -> None:
    for references in ([], [features(["a", "b"], [True, False], [1, 0])]):
        with pytest.raises(ProblemError) as caught:
            Calibration.of(references)
        assert caught.value.problem.code == ErrorCode.LEAKAGE_PROVIDERS


def test_equal_statistics_give_scores_that_say_nothing() -> None:
    same = features(list("abcdefgh"), [True] * 4 + [False] * 4, [1] * 8)
    assert Calibration.of([same]).scores(same) == pytest.approx(np.zeros(8))


def test_a_planted_leak_is_found_in_every_seed() -> None:
    calibration = Calibration.of([provider_features(asked(1_000, gain=1.0))])
    for seed in SEEDS:
        found = provider_features(asked(seed, gain=1.0))
        auc = Attack(calibration.scores(found), found.is_member, 0.0).found[Statistic.AUC]
        assert auc > 0.9, seed


def test_no_leak_is_found_in_models_that_never_saw_the_members() -> None:
    found = [unfounded(asked(seed, gain=0.0)) for seed in range(300)]
    # Three are expected at a chance of 1%, and nine or more have a chance of 1 in 260.
    assert sum(auc >= least_auc(60, 60, 0.01) for auc in found) <= 8


def test_members_with_questions_that_training_helps_most_are_no_leak() -> None:
    """Training lowers the loss of hard questions and of one key most, and members are asked more of both."""
    for seed in SEEDS:
        case = asked(seed, gain=0.0)
        rng = np.random.default_rng(seed)
        member = np.array([case.is_member[name] for name in case.providers])
        keys = np.where(rng.random(len(member)) < np.where(member, 0.7, 0.3), "date", "name")
        loss = case.base.loss + member
        gained = 0.4 * (loss - 3) + (keys == "date") + 0.5 * rng.normal(size=len(loss))
        trained = replace(
            case,
            base=replace(case.base, loss=loss),
            submitted=replace(case.submitted, loss=loss - gained),
            keys=keys.tolist(),
        )
        after = provider_features(trained)
        assert Attack(after.g3[:, 0], after.is_member, 0.0).found[Statistic.AUC] > least_auc(60, 60, 0.001)
        assert unfounded(trained) < least_auc(60, 60, 0.001), seed


def test_an_untrained_model_gains_nothing() -> None:
    case = replace(asked(1, gain=0.0).of_base(), keys=["date", "name"] * 480)
    assert not adjusted_gains(case).any()


def unfounded(case: Asked) -> float:
    """Return the AUC of the attack without references."""
    is_member = provider_features(case).is_member
    return Attack(adjusted_gains(case), is_member, 0.0).found[Statistic.AUC]


def test_one_question_says_less_than_many() -> None:
    calibration = Calibration.of(
        [
            provider_features(asked(1_000, gain=1.0, questions=1)),
            provider_features(asked(1_001, gain=1.0, questions=16)),
        ]
    )
    found = provider_features(asked(5, gain=1.0))
    few = calibration.scores(replace(found, questions=np.ones(len(found.names))))
    many = calibration.scores(replace(found, questions=np.full(len(found.names), 16.0)))
    assert np.abs(few).mean() < np.abs(many).mean()
