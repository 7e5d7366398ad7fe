"""How sure the difference of two runs' scores is: their means over the same draws of providers.

All runs of a test set answer the same questions, so that their scores rise and fall together from one draw of
providers to the next. The interval of each score doesn't show that, and the scores of single questions never leave the
workers. So every evaluation draws the same providers, and its means over these draws are all that the site gets.
Subtracted draw by draw they are the cluster bootstrap of the difference; see `evaluator.scoring.groups` for the
clusters, for what the interval covers, and why its percentiles are expanded where there are few clusters.

What the draws depend on: the names of the clusters of the part, sorted, and nothing else; not on the order of
questions, and not on the predictions. Each draw is of whole clusters, so the means say nothing of the questions of one
cluster apart. There are as many as `DRAWS`, rounded: whoever has them all and knows the draws can estimate the scores
of single providers. So they are kept by the site and never published.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evaluator.messages.jobs import DRAWS, FULL_MEAN, DrawnMeans, TestSetPart
from evaluator.scoring.groups import DRAWS_AT_ONCE, LEVEL, MIN_CLUSTERS, Integers, _expanded, by_part
from evaluator.scoring.metrics import QuestionScores

if TYPE_CHECKING:
    from evaluator.docvqa.dataset import Dataset

SCHEMA = "pfl-docvqa-paired-draws/1"
SEED = 20_261_130
# The kind and the name of a cluster: a provider, or the document of a page that names none.
Cluster = tuple[str, str]


def drawn_means(dataset: "Dataset", scores: QuestionScores, private: Sequence[bool] = ()) -> list[DrawnMeans]:
    """Return the mean ANLS over the draws from both parts of a test set, or from all of one that isn't split.

    Args:
        dataset: What was asked; `scores` holds its questions in their order.
        private: For each question whether it is in the private part; empty where the test set isn't split.

    Returns:
        None of a part with fewer than `MIN_CLUSTERS` clusters, of which no interval follows.
    """
    pages = [dataset.pages[question.page] for question in dataset.questions]
    clusters = [
        ("provider", page.provider) if page.provider else ("document", page.document) for page in pages
    ]
    parts = by_part(private) or {"": range(len(clusters))}
    found = (
        means_over_draws([clusters[place] for place in places], scores.anls[np.asarray(places)], part)
        for part in ("", "public", "private")
        if (places := parts.get(part))
    )
    return [means for means in found if means is not None]


def means_over_draws(
    clusters: Sequence[Cluster], anls: NDArray[np.float64], part: TestSetPart = ""
) -> DrawnMeans | None:
    """Return the means over the draws; None where there are fewer than `MIN_CLUSTERS`.

    Args:
        clusters: That of each question.
        anls: Each question's score in [0, 1], shape (questions,).
    """
    names = sorted(set(clusters))
    if len(names) < MIN_CLUSTERS:
        return None
    numbers = {name: number for number, name in enumerate(names)}
    cluster = np.array([numbers[name] for name in clusters], np.int64)
    sums, sizes = np.bincount(cluster, weights=anls), np.bincount(cluster)
    # What was drawn is part of it: another version of the generator may draw something else.
    identity = hashlib.sha256(json.dumps([SCHEMA, names, sizes.tolist()]).encode())
    means = []
    for drawn in _draws(len(names)):
        identity.update(drawn.astype("<i8").tobytes())
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    # A sum of floats may be beyond their number by a rounding error.
    units = np.rint(FULL_MEAN * np.clip(np.concatenate(means), 0, 1))
    return DrawnMeans.model_construct(
        part=part,
        clusters=len(names),
        draws_sha256=identity.hexdigest(),
        means=units.astype("<u2").tobytes(),
    )


def paired_interval(first: DrawnMeans, second: DrawnMeans) -> tuple[float, float] | None:
    """Return the 95% interval of how much higher the first run's mean is; None where the draws aren't the same."""
    if (first.draws_sha256, first.clusters) != (second.draws_sha256, second.clusters):
        return None
    one, other = (np.frombuffer(drawn.means, "<u2").astype(np.int64) for drawn in (first, second))
    outside = _expanded((1 - LEVEL) / 2, first.clusters)
    low, high = np.quantile((one - other) / FULL_MEAN, [outside, 1 - outside])
    return float(low), float(high)


def _draws(count: int) -> Iterator[Integers]:
    """Yield the numbers of the clusters that are drawn of so many, in rows of as many."""
    rng = np.random.default_rng(SEED)
    rows = max(1, DRAWS_AT_ONCE // count)
    for start in range(0, DRAWS, rows):
        yield rng.integers(count, size=(min(rows, DRAWS - start), count))
