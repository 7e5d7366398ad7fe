"""All attacks on one model, by the features of its providers: the statistics of a report."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluator.errors import ProblemError
from evaluator.leakage.attacks import Attacked, FeatureSet, Method, attack
from evaluator.leakage.features import TARGET_SETS, Asked, ProviderFeatures, provider_features
from evaluator.leakage.likelihood import Calibration, adjusted_gains
from evaluator.leakage.results import LIKELIHOOD, AttackResult, LeakageResult, Measure, ProviderScore
from evaluator.leakage.statistics import RESAMPLES, Attack, Bools, Statistic, difference, estimate


@dataclass(frozen=True)
class Options:
    """How much is assessed.

    Attributes:
        memorization: Whether hidden answers are asked for, which takes five more passes over part of the questions.
        feature_sets: What AZK and APK also try to see, beside what the published attacks see.
        search: Whether the forests' settings are searched.
    """

    memorization: bool = True
    target_sets: Sequence[int] = TARGET_SETS
    methods: Sequence[Method] = tuple(Method)
    feature_sets: Sequence[FeatureSet] = ()
    resamples: int = RESAMPLES
    search: bool = False


EVERYTHING = Options()


def assess(
    asked: Asked, references: Sequence[ProviderFeatures] = (), options: Options = EVERYTHING
) -> LeakageResult:
    """Return what the attacks find: ours on all providers, the published ones on the target sets.

    A target set with too few providers is left out, and the result says so.

    Args:
        references: Features of reference models, for the calibration; without them our own attack's threshold is the
            median of the scores, which no label enters.

    Raises:
        ProblemError: (`E_LEAKAGE_PROVIDERS`, `E_LEAKAGE_LABELS`, `E_LEAKAGE_EXTRA`) There is nothing to assess.
    """
    features = provider_features(asked)
    scores = Calibration.of(references).scores(features) if references else adjusted_gains(asked)
    ours = Attack(scores, features.is_member, 0.0 if references else float(np.median(scores)))
    # The base weights gained nothing: our attack has nothing to tell providers by.
    before = Attack(np.zeros(len(scores)), features.is_member, 0.0)
    attacks = [_result(LIKELIHOOD, 0, ours, before, options)]
    left_out = []
    # Each target set is part of those with a smaller s: sets of one size are the same.
    by_size: dict[int, list[AttackResult]] = {}
    for s in options.target_sets:
        size = int((features.questions >= s).sum())
        try:
            if size not in by_size:
                by_size[size] = _published(asked, s, options)
        except ProblemError as error:
            left_out.append(f"T_{s}: {error.problem.code}, {error.problem.found}")
        else:
            attacks += [found.model_copy(update={"target_set": s}) for found in by_size[size]]
    return LeakageResult(
        questions=len(asked.providers),
        providers=[
            ProviderScore(provider=name, is_member=bool(member), questions=int(count), score=float(score))
            for name, member, count, score in zip(
                features.names, features.is_member, features.questions, scores, strict=True
            )
        ],
        attacks=attacks,
        without_loss=int((~np.isfinite(asked.submitted.loss)).sum()),
        references=len(references),
        left_out=left_out,
    )


def _published(asked: Asked, s: int, options: Options) -> list[AttackResult]:
    after, base = (
        attack(
            provider_features(some, min_questions=s),
            options.methods,
            feature_sets=options.feature_sets,
            search=options.search,
        )
        for some in (asked, asked.of_base())
    )
    before = {found.attacker: found for found in base}
    # The memorization test is compared by itself: of the base weights, the attack it joins stands for the ensemble, and
    # the published attack for one that sees the test.
    alone = {found.attacker.is_trained: found for found in reversed(base)}
    return [
        _result(
            found.attacker.name,
            s,
            _as_attack(found),
            _as_attack(before.get(found.attacker) or alone[found.attacker.is_trained]),
            options,
            accuracy=found.accuracy,
        )
        for found in after
    ]


def _as_attack(found: Attacked) -> Attack:
    return Attack(found.scores, found.is_member, 0.5)


def _result(
    name: str,
    s: int,
    found: Attack,
    base: Attack,
    options: Options,
    accuracy: tuple[float | None, float | None] = (None, None),
) -> AttackResult:
    is_member: Bools = found.is_member
    members = int(is_member.sum())
    return AttackResult(
        attack=name,
        target_set=s,
        members=members,
        nonmembers=len(is_member) - members,
        accuracy=accuracy[0],
        accuracy_spread=accuracy[1],
        chance=max(members, len(is_member) - members) / len(is_member),
        measures={
            statistic: Measure(
                **dict(estimate(found, statistic, resamples=options.resamples)),
                above_base=difference(found, base, statistic, resamples=options.resamples),
            )
            for statistic in Statistic
        },
    )
