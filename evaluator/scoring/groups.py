"""Scores over groups of questions: how sure a mean is, and what it is made of.

The organizers see them as they are; of the keys everybody sees what the site publishes, which is rounded.

The questions of one provider look alike and are answered alike, so that they are no independent evidence of how good
a model is. The intervals are therefore those of a cluster bootstrap: providers are drawn with replacement, as many as
there are, each with all of its questions in the group (Davison & Hinkley, "Bootstrap Methods and their Application",
1997, section 3.8; Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13, for the percentiles). A
page that names no provider goes with its document. Drawing questions instead would give intervals that are too narrow.

What the interval covers: another draw of providers from wherever the test set's providers came from, the model being
as it is. It says nothing of another training run. Percentiles of few clusters are too narrow; they are taken further
out, as Student's t is from the normal distribution (Hesterberg, "What Teachers Should Know About the Bootstrap", The
American Statistician 69, 2015, the expanded percentile interval). Two things no resampling
can mend. No draw of clusters scores beyond the best and the worst of them, and n clusters lie all on one side of the
truth with a probability of 2^(1-n): where there are fewer than six, that is too often, and the interval is [0, 1]. And
where all clusters score the same, often because they are few, the interval is that one number.

The same predictions give the same intervals: the draws start from a constant, again for each group.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from evaluator.messages.jobs import OTHER_KEY, GroupScore, TestSetPart
from evaluator.scoring.metrics import QuestionScores

if TYPE_CHECKING:
    from evaluator.docvqa.dataset import Dataset

LEVEL = 0.95
RESAMPLES = 2_000
# The smallest n with 2^(1-n) <= 1 - LEVEL.
MIN_CLUSTERS = 6
SEED = 20_240_501
# As many as a processor's cache holds.
DRAWS_AT_ONCE = 1 << 19

MAX_KEYS = 100

Integers = NDArray[np.int64]
# The positions of each group's questions, by its name.
Members = Mapping[str, Sequence[int]]
PARTS: tuple[TestSetPart, ...] = ("public", "private")
Grouping = Literal["all", "part", "key", "provider"]


def group_scores(
    dataset: "Dataset", scores: QuestionScores, private: Sequence[bool] = ()
) -> list[GroupScore]:
    """Return the means over all questions, each part, each key, seen and unseen providers, and these in each part.

    Args:
        dataset: What was asked; `scores` holds its questions in their order.
        private: For each question whether it is in the private part; empty where the test set isn't split.

    Returns:
        All questions first; then, of a split test set, the `public` and the `private` part; then keys, most questions
        first, those that are beyond `MAX_KEYS` or empty as `other`; then `seen` and `unseen`; last, of a split test
        set, the keys of each part's questions alone, and the same of providers. There are no keys where no question
        has one, and no seen and unseen where the data folder names no training providers. Questions whose page names
        no provider are neither seen nor unseen.

    Raises:
        ValueError: There is not one score a question.
    """
    questions = dataset.questions
    if not len(questions) == len(scores.anls) == len(scores.accuracy):
        raise ValueError(f"{len(scores.anls)} scores of {len(questions)} questions")
    pages = [dataset.pages[question.page] for question in questions]
    providers = [page.provider for page in pages]
    clusters = _numbered(
        [("provider", page.provider) if page.provider else ("document", page.document) for page in pages]
    )
    trained = {provider for owned in dataset.info.clients.values() for provider in owned}
    keys, parts = by_key([question.key for question in questions]), by_part(private)
    groupings: dict[Grouping, Members] = {
        "all": {"all": range(len(questions))} if questions else {},
        "part": parts,
        "key": keys,
        "provider": by_training(providers, trained),
    }
    means = _Means(scores, clusters)
    found = [means.over(by, *group) for by, groups in groupings.items() for group in groups.items()]
    return found + [
        means.over(by, *group, part)
        for by in ("key", "provider")
        for part in PARTS
        for group in within(groupings[by], parts.get(part, []))
    ]


def by_part(private: Sequence[bool]) -> Members:
    """Return the questions of the `public` and of the `private` part; nothing where there are no parts."""
    return _grouped(PARTS, ["private" if is_private else "public" for is_private in private])


def within(groups: Members, places: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Yield the groups' questions at these places alone; no group without any."""
    shown = set(places)
    for group, members in groups.items():
        if among := [place for place in members if place in shown]:
            yield group, among


def by_key(keys: Sequence[str]) -> Members:
    """Return the questions of each key, most questions first and then by name, `other` last; {} if no key is known."""
    counted = Counter(key for key in keys if key and key != OTHER_KEY)
    named = sorted(counted, key=lambda key: (-counted[key], key))[:MAX_KEYS]
    shown = set(named)
    return _grouped(
        [*named, OTHER_KEY], [key if key in shown else OTHER_KEY for key in keys] if any(keys) else []
    )


def by_training(providers: Sequence[str], trained: set[str]) -> Members:
    """Return the questions about `seen` and about `unseen` providers; nothing where no training provider is known."""
    of_questions = [name and ("seen" if name in trained else "unseen") for name in providers]
    return _grouped(["seen", "unseen"], of_questions if trained else [])


def _grouped(names: Sequence[str], of_questions: Sequence[str]) -> Members:
    """Return the positions of the questions of each group that has any, in the order of `names`."""
    groups: dict[str, list[int]] = {name: [] for name in names}
    for place, name in enumerate(of_questions):
        if name:
            groups[name].append(place)
    return {name: places for name, places in groups.items() if places}


def interval_of_mean(values: NDArray[np.float64], clusters: Integers) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the mean of `values` in [0, 1], whose clusters are independent.

    It is [0, 1] where there are fewer than `MIN_CLUSTERS`.

    Args:
        values: Shape (questions,), not empty.
        clusters: The number of each value's cluster, shape (questions,).
    """
    _, cluster = np.unique(clusters, return_inverse=True)
    sums = np.bincount(cluster, weights=values).astype(np.float64)
    sizes = np.bincount(cluster).astype(np.int64)
    if len(sums) < MIN_CLUSTERS:
        return 0.0, 1.0
    means = np.concatenate(list(_resampled_means(sums, sizes)))
    outside = _expanded((1 - LEVEL) / 2, len(sums))
    low, high = np.quantile(means, [outside, 1 - outside])
    # Where all clusters score the same, a rounding error must not part the mean from its interval.
    mean = float(values.mean())
    return min(float(low), mean), max(float(high), mean)


def _resampled_means(sums: NDArray[np.float64], sizes: Integers) -> Iterator[NDArray[np.float64]]:
    """Yield the means over `RESAMPLES` draws of clusters, each mean being the drawn clusters' sum over their size."""
    rng = np.random.default_rng(SEED)
    count = len(sums)
    rows = max(1, DRAWS_AT_ONCE // count)
    for start in range(0, RESAMPLES, rows):
        drawn = rng.integers(count, size=(min(rows, RESAMPLES - start), count))
        yield sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)


def _expanded(tail: float, clusters: int) -> float:
    """Return the percentile to read instead of `tail`, by Hesterberg (2015); close to `tail` for many clusters."""
    return float(ndtr(np.sqrt(clusters / (clusters - 1)) * stdtrit(clusters - 1, tail)))


@dataclass(frozen=True)
class _Means:
    """The means over groups of questions: from all questions' scores, and the number of each one's cluster."""

    scores: QuestionScores
    clusters: Integers

    def over(self, by: Grouping, group: str, members: Sequence[int], part: TestSetPart = "") -> GroupScore:
        """Return the mean over a group, which has at least one question."""
        among = np.asarray(members, np.int64)
        anls = self.scores.anls[among]
        low, high = interval_of_mean(anls, self.clusters[among])
        return GroupScore(
            by=by,
            group=group,
            part=part,
            questions=len(among),
            anls=float(anls.mean()),
            anls_low=low,
            anls_high=high,
            accuracy=float(self.scores.accuracy[among].mean()),
        )


def _numbered(names: Sequence[tuple[str, str]]) -> Integers:
    """Return a number for each name, the same for the same name."""
    numbers: dict[tuple[str, str], int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
