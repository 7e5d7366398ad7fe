"""The published attacks: is a provider among those that a model was trained on?

Source: Tito et al., "Privacy-Aware Document Visual Question Answering" (2024), sections 5.2.3, 7.2 and D.3: AZK without
knowledge, by k-means on accuracy and NLS; APK with partial knowledge, by a random forest on G1 to G3 that is trained on
r = 0.15 of the providers, as many members as nonmembers; both in a hard-voting ensemble with two classifiers on the
memorization test. Five seeds draw the known providers again. AZK is evaluated on the same providers as APK, those that
are not known. What the paper leaves open is as in the kit of its red-team challenge: k-means begins at random points,
ten times; the depth of the trees and their number are searched only where `search` is set, as the paper does in its
ablations (D.4).

Accuracy is the paper's figure: of all providers tested, so that chance is the share of the larger class, and not one
half. Balanced accuracy stands beside it, whose chance is one half.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, pstdev
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.features import ProviderFeatures
from evaluator.leakage.statistics import Bools, Floats, check_both_kinds

if TYPE_CHECKING:
    from types import ModuleType

SEEDS = (1026, 1027, 1028, 1029, 1030)
KNOWN_SHARE = 0.15
TREES, DEPTH = 275, 10
SEARCHED = 5


class Method(StrEnum):
    """The published attacks."""

    AZK = "AZK"
    APK = "APK"
    AZK_ENSEMBLE = "AZK+CLS1+CLS2"
    APK_ENSEMBLE = "APK+CLS1+CLS2"


class Features(StrEnum):
    """What an attack may see of a provider: the paper's groups, and accuracy alone, as in its Table A7."""

    ACCURACY = "ACC"
    G1 = "G1"
    G2 = "G2"
    G3 = "G3"
    G4 = "G4"


FeatureSet = tuple[Features, ...]
# What AZK and APK see unless they are asked to see something else.
ZERO_KNOWLEDGE: FeatureSet = (Features.G1,)
PARTIAL_KNOWLEDGE: FeatureSet = (Features.G1, Features.G2, Features.G3)
# Of the attacks in the paper's Table A6 without ensembles.
ALL_SETS: list[FeatureSet] = [
    ZERO_KNOWLEDGE,
    (Features.G1, Features.G4),
    PARTIAL_KNOWLEDGE,
    (*PARTIAL_KNOWLEDGE, Features.G4),
]


@dataclass(frozen=True)
class Attacker:
    """An attack: k-means without knowledge (AZK), or a forest with some (APK).

    Attributes:
        is_ensemble: Whether CLS1 and CLS2 vote too.
    """

    name: str
    is_trained: bool
    sees: FeatureSet
    is_ensemble: bool = False

    @property
    def alone(self) -> "Attacker":
        """The attack without the votes of others."""
        return _PUBLISHED[Method.APK if self.is_trained else Method.AZK] if self.is_ensemble else self

    @property
    def needs_memorization(self) -> bool:
        """Whether it sees the memorization test."""
        return self.is_ensemble or Features.G4 in self.sees


_PUBLISHED = {
    Method.AZK: Attacker(Method.AZK, False, ZERO_KNOWLEDGE),
    Method.APK: Attacker(Method.APK, True, PARTIAL_KNOWLEDGE),
    Method.AZK_ENSEMBLE: Attacker(Method.AZK_ENSEMBLE, False, ZERO_KNOWLEDGE, is_ensemble=True),
    Method.APK_ENSEMBLE: Attacker(Method.APK_ENSEMBLE, True, PARTIAL_KNOWLEDGE, is_ensemble=True),
}


def attackers(methods: Sequence[Method], feature_sets: Sequence[FeatureSet] = ()) -> list[Attacker]:
    """Return the published attacks, and both attacks on each of the feature sets; none twice."""
    named = [_PUBLISHED[method] for method in methods]
    seen = {(one.is_trained, one.sees) for one in named if not one.is_ensemble}
    others = [
        Attacker(f"{method}, {'+'.join(sees)}", method is Method.APK, sees)
        for sees in feature_sets
        for method in (Method.AZK, Method.APK)
    ]
    return [*named, *(one for one in others if (one.is_trained, one.sees) not in seen)]


@dataclass(frozen=True)
class Split:
    """Places of the providers that an attacker knows, and of those that it is tested on."""

    known: NDArray[np.intp]
    tested: NDArray[np.intp]


@dataclass(frozen=True)
class Attacked:
    """What one attack said with each seed.

    Attributes:
        said: (S, P), 1 where it said "member", 0 where not, NaN where the provider was known to the attacker.
        scores: (P,), how often it said "member" of the times that the provider was tested; for APK, how many of the
            trees did on average.
    """

    attacker: Attacker
    is_member: Bools
    said: Floats
    scores: Floats

    @property
    def accuracies(self) -> list[float]:
        """The share of the tested providers that each seed got right."""
        right = np.where(np.isnan(self.said), np.nan, self.said == self.is_member)
        return [float(np.nanmean(row)) for row in right]

    @property
    def accuracy(self) -> tuple[float, float]:
        """Mean and standard deviation over the seeds, as the paper reports them."""
        return mean(self.accuracies), pstdev(self.accuracies)


def split(is_member: Bools, seed: int, share: float = KNOWN_SHARE) -> Split:
    """Return the known providers, `share` of all with as many members as nonmembers, and the others.

    Of an odd number, there is one nonmember more, as is likelier in the paper's sizes.

    Raises:
        ProblemError: (`E_LEAKAGE_PROVIDERS`) One kind has too few providers to know some and to test some.
    """
    rng = np.random.default_rng(seed)
    count = round(share * len(is_member))
    members, others = np.flatnonzero(is_member), np.flatnonzero(~is_member)
    wanted = (count // 2, count - count // 2)
    if wanted[0] < 1 or wanted[0] > len(members) - 2 or wanted[1] > len(others) - 2:
        raise ProblemError.of(
            ErrorCode.LEAKAGE_PROVIDERS,
            where="the split's providers",
            expected=f"at least {wanted[0] + 2} members and {wanted[1] + 2} nonmembers, and 14 in all",
            found=f"{len(members)} members and {len(others)} nonmembers",
        )
    known = np.concatenate(
        [rng.choice(some, size, replace=False) for some, size in zip((members, others), wanted, strict=True)]
    )
    return Split(np.sort(known), np.setdiff1d(np.arange(len(is_member)), known))


def attack(
    features: ProviderFeatures,
    methods: Sequence[Method] = tuple(Method),
    *,
    feature_sets: Sequence[FeatureSet] = (),
    seeds: Sequence[int] = SEEDS,
    search: bool = False,
) -> list[Attacked]:
    """Return what the attacks say.

    Where the memorization test wasn't made, the attack of an ensemble stands alone, and no other attack sees G4.

    Raises:
        ProblemError: (`E_LEAKAGE_EXTRA`) scikit-learn is missing. (`E_LEAKAGE_PROVIDERS`) There are too few providers.
    """
    check_both_kinds(features.is_member)
    splits = [split(features.is_member, seed) for seed in seeds]
    wanted = attackers(methods, feature_sets)
    if features.g4 is None:
        alone = (one.alone for one in wanted)
        wanted = list(dict.fromkeys(one for one in alone if not one.needs_memorization))
    shape = (len(seeds), len(features.names))
    said = {attacker: np.full(shape, np.nan) for attacker in wanted}
    shares = {attacker: np.full(shape, np.nan) for attacker in wanted}
    for row, (seed, parts) in enumerate(zip(seeds, splits, strict=True)):
        guesses = {one: _guess(features, parts, one, seed, search) for one in {each.alone for each in wanted}}
        for attacker in wanted:
            voted, share = guesses[attacker.alone]
            if attacker.is_ensemble and features.g4 is not None:
                voted = vote(voted, *memorization_votes(features.g4[parts.tested], seed))
                share = voted.astype(float)
            said[attacker][row, parts.tested] = voted
            shares[attacker][row, parts.tested] = share
    return [
        Attacked(attacker, features.is_member, said[attacker], _means(shares[attacker]))
        for attacker in wanted
    ]


def _guess(
    features: ProviderFeatures, parts: Split, attacker: Attacker, seed: int, search: bool
) -> tuple[Bools, Floats]:
    """Return the guesses on the tested providers, and how sure they are."""
    seen = _seen(features, attacker.sees)
    if attacker.is_trained:
        return _says_forest(seen, features.is_member, parts, seed, search)
    voted = says_member_without_knowledge(seen[parts.tested], seed)
    return voted, voted.astype(float)


def _seen(features: ProviderFeatures, sees: FeatureSet) -> Floats:
    """Return the columns (P, n) of a feature set; the first is the accuracy wherever an attack sees it."""
    columns = {
        Features.ACCURACY: features.g1[:, :1],
        Features.G1: features.g1,
        Features.G2: features.g2,
        Features.G3: features.g3,
        Features.G4: features.g4,
    }
    return np.concatenate([found for one in sees if (found := columns[one]) is not None], axis=1)


def says_member_without_knowledge(g1: Floats, seed: int) -> Bools:
    """Return AZK's guesses (n,): of two clusters of accuracy and others (n, k), that of higher accuracy are members.

    Where all providers are alike there is one cluster, and none is called a member.
    """
    cluster = _two_clusters(g1, seed)
    if not cluster.any():
        return cluster
    return cluster if g1[cluster, 0].mean() > g1[~cluster, 0].mean() else ~cluster


def memorization_votes(g4: Floats, seed: int) -> tuple[Bools, Bools]:
    """Return the guesses (n,) of CLS1, NLS above 0, and of CLS2, the cluster whose answers change less."""
    cluster = _two_clusters(g4[:, 1:], seed)
    if cluster.any() and g4[cluster, 1].mean() > g4[~cluster, 1].mean():
        cluster = ~cluster
    return g4[:, 0] > 0, cluster


def vote(*votes: Bools) -> Bools:
    """Return what most of an odd number of guesses (n,) say."""
    return np.asarray(np.sum(votes, axis=0) * 2 > len(votes))


def _two_clusters(points: Floats, seed: int) -> Bools:
    """Return which of the points (n, d) are in the second of two clusters; none where all points are equal."""
    if (points == points[0]).all():
        return np.zeros(len(points), dtype=bool)
    clustering = _scikit("cluster").KMeans(
        n_clusters=2, init="random", n_init=10, max_iter=300, random_state=seed
    )
    return np.asarray(clustering.fit_predict(points) == 1)


def _says_forest(x: Floats, is_member: Bools, parts: Split, seed: int, search: bool) -> tuple[Bools, Floats]:
    """Return APK's guesses on the tested providers, and the share of the trees for "member"."""
    y = is_member[parts.known]
    ensemble = _scikit("ensemble")
    forest = ensemble.RandomForestClassifier(n_estimators=TREES, max_depth=DEPTH, random_state=seed)
    if search:
        ranges = {"n_estimators": range(50, 500), "max_depth": range(1, 20)}
        folds = int(min(5, y.sum(), (~y).sum()))
        forest = _scikit("model_selection").RandomizedSearchCV(
            forest, ranges, n_iter=SEARCHED, cv=max(2, folds), random_state=seed
        )
    forest.fit(x[parts.known], y)
    share: Floats = forest.predict_proba(x[parts.tested])[:, 1]
    return np.asarray(share > 0.5), share


def _means(shares: Floats) -> Floats:
    """Return each column's mean without NaN; one half for a provider that no seed tested."""
    tested = ~np.isnan(shares)
    summed = np.where(tested, shares, 0.0).sum(axis=0)
    return np.asarray(np.where(tested.any(axis=0), summed / np.maximum(tested.sum(axis=0), 1), 0.5))


def _scikit(name: str) -> "ModuleType":
    from importlib import import_module

    try:
        return import_module(f"sklearn.{name}")
    except ImportError as error:
        raise ProblemError.of(ErrorCode.LEAKAGE_EXTRA, found=str(error)) from error
