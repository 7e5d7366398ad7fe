"""The published attacks on features by hand, the published sizes, and what is done where nothing can be learned."""

import builtins
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.assessment import Options, assess
from evaluator.leakage.attacks import (
    PARTIAL_KNOWLEDGE,
    ZERO_KNOWLEDGE,
    Attacked,
    Features,
    Method,
    attack,
    attackers,
    memorization_votes,
    says_member_without_knowledge,
    split,
    vote,
)
from evaluator.leakage.features import Answers, Asked, Memorization, ProviderFeatures, provider_features
from evaluator.leakage.results import LIKELIHOOD
from tests.evaluator.leakage.planted import asked


def answers(accuracy: list[float], loss: list[float]) -> Answers:
    scores = np.array(accuracy)
    return Answers(scores, scores / 2, np.array(loss), np.array(accuracy))


def two_providers(loss: list[float], memorization: Memorization | None = None) -> Asked:
    return Asked(
        providers=["b", "a", "b"],
        is_member={"a": True, "b": False},
        submitted=answers([1, 0, 0], loss),
        base=answers([0, 0, 0], [4, 4, 4]),
        memorization=memorization,
    )


def test_features_are_the_means_over_a_providers_questions() -> None:
    found = provider_features(
        two_providers([1, 2, 3], Memorization(np.array([0.5, np.nan, 0.7]), np.array([0.2, np.nan, 0.4])))
    )
    assert found.names == ["a", "b"]
    assert found.is_member.tolist() == [True, False]
    assert found.questions.tolist() == [1, 2]
    assert found.g1.tolist() == [[0, 0], [0.5, 0.25]]
    assert found.g2.tolist() == [[2, 0], [2, 0.5]]
    # What training gained: losses of 4 before, and confidences of 0.
    assert found.g3.tolist() == [[2, 0], [2, 0.5]]
    # Where the test wasn't made, nothing was memorized.
    assert found.g4 is not None
    assert found.g4.flatten().tolist() == pytest.approx([0, 1, 0.6, 0.3])


def test_a_target_set_has_the_providers_with_enough_questions() -> None:
    assert provider_features(two_providers([1, 2, 3]), min_questions=2).names == ["b"]


def test_a_provider_without_a_question_is_in_no_target_set() -> None:
    case = replace(two_providers([1, 2, 3]), is_member={"a": True, "b": False, "empty": True})
    assert provider_features(case, min_questions=0).names == ["a", "b"]


def test_target_sets_of_the_same_providers_are_attacked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    case = asked(1, gain=1.0, questions=10)
    attacked: list[int] = []

    def counted(features: ProviderFeatures, *rest: Any, **options: Any) -> list[Attacked]:
        attacked.append(len(features.names))
        return attack(features, *rest, **options)

    monkeypatch.setattr("evaluator.leakage.assessment.attack", counted)
    found = assess(case, options=Options(target_sets=(5, 10, 11), methods=[Method.AZK], resamples=100))
    assert [(result.attack, result.target_set) for result in found.attacks] == [
        (LIKELIHOOD, 0),
        ("AZK", 5),
        ("AZK", 10),
    ]
    assert found.attacks[1].measures == found.attacks[2].measures
    # The submitted and the base weights, and once more where there is nobody to attack.
    assert attacked == [120, 120, 0]
    assert [left[:5] for left in found.left_out] == ["T_11:"]


def test_losses_that_are_no_numbers_count_as_the_worst() -> None:
    found = provider_features(two_providers([np.nan, 2, 3]))
    assert found.g2[:, 0].tolist() == [2, 3]
    assert provider_features(two_providers([np.nan] * 3)).g2[:, 0].tolist() == [0, 0]


def test_a_provider_whose_membership_is_unknown_is_rejected() -> None:
    nobody: Mapping[str, bool] = {"a": True}
    case = two_providers([1, 2, 3])
    with pytest.raises(ProblemError) as caught:
        provider_features(Asked(case.providers, nobody, case.submitted, case.base))
    assert caught.value.problem.code == ErrorCode.LEAKAGE_LABELS


@pytest.mark.parametrize(("members", "others", "known", "tested"), [(307, 353, 99, 561), (217, 249, 70, 396)])
def test_known_and_tested_providers_are_as_many_as_published(
    members: int, others: int, known: int, tested: int
) -> None:
    is_member = np.arange(members + others) < members
    parts = split(is_member, 1026)
    assert (len(parts.known), len(parts.tested)) == (known, tested)
    assert int(is_member[parts.known].sum()) == known // 2
    assert not set(parts.known) & set(parts.tested)


def test_too_few_providers_are_rejected() -> None:
    with pytest.raises(ProblemError) as caught:
        split(np.array([True, False] * 3), 1026)
    assert caught.value.problem.code == ErrorCode.LEAKAGE_PROVIDERS


def test_azk_calls_the_cluster_of_higher_accuracy_members() -> None:
    g1 = np.array([[0.9, 0.9], [0.1, 0.2], [1.0, 0.8], [0.2, 0.1]])
    assert says_member_without_knowledge(g1, 1026).tolist() == [True, False, True, False]


def test_where_all_providers_are_alike_none_is_called_a_member() -> None:
    assert not says_member_without_knowledge(np.full((5, 2), 0.3), 1026).any()


def test_the_ensemble_votes_with_what_was_memorized() -> None:
    # NLS above 0, and little change without the evidence.
    g4 = np.array([[0.6, 0.1], [0.0, 0.9], [0.0, 0.2], [0.7, 0.8]])
    above, similar = memorization_votes(g4, 1026)
    assert above.tolist() == [True, False, False, True]
    assert similar.tolist() == [True, False, True, False]
    alone = np.array([False, False, True, True])
    assert vote(alone, above, similar).tolist() == [True, False, True, True]


def test_accuracy_is_of_tested_providers_and_spread_over_seeds() -> None:
    said = np.array([[1, 0, 0, np.nan], [0, 0, np.nan, 0]], dtype=float)
    found = Attacked(attackers([Method.AZK])[0], np.array([True, True, False, False]), said, np.zeros(4))
    # Two of three right, then one of three.
    assert found.accuracies == pytest.approx([2 / 3, 1 / 3])
    assert found.accuracy == pytest.approx((1 / 2, 1 / 6))


def test_a_forest_finds_a_leak_that_accuracy_hardly_shows() -> None:
    features = provider_features(asked(1, gain=2.0))
    without, with_some = attack(features, [Method.AZK, Method.APK], seeds=(1026,))
    assert with_some.accuracy[0] > 0.9
    assert with_some.accuracy[0] > without.accuracy[0]
    assert attack(features, list(Method), seeds=(1026,))[-1].attacker.name == Method.APK


def test_attacks_on_other_features_see_only_these_and_none_is_made_twice() -> None:
    features = provider_features(asked(1, gain=2.0))
    blind = replace(features, g1=np.zeros_like(features.g1))
    sets = [
        ZERO_KNOWLEDGE,
        PARTIAL_KNOWLEDGE,
        (Features.ACCURACY,),
        (Features.G2,),
        (Features.G1, Features.G4),
    ]
    found = {
        one.attacker.name: one.accuracy[0]
        for one in attack(blind, [Method.AZK, Method.APK], feature_sets=sets, seeds=(1026,))
    }
    # What is published isn't made twice, and nothing sees a memorization test that wasn't made.
    assert list(found) == [
        "AZK",
        "APK",
        "APK, G1",
        "AZK, G1+G2+G3",
        "AZK, ACC",
        "APK, ACC",
        "AZK, G2",
        "APK, G2",
    ]
    assert found["APK"] > 0.9
    assert found["APK, G1"] == found["APK, ACC"] == found["AZK"] < 0.6


def test_without_scikit_learn_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("sklearn"):
            raise ImportError("No module named 'sklearn'")
        return real(name, *rest)

    monkeypatch.setattr("importlib.import_module", lambda name: missing(name))
    with pytest.raises(ProblemError) as caught:
        says_member_without_knowledge(np.array([[0.9, 0.9], [0.1, 0.2]]), 1026)
    assert caught.value.problem.code == ErrorCode.LEAKAGE_EXTRA
    assert "pip install" in caught.value.problem.next_step
