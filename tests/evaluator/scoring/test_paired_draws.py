"""Intervals of the difference of two runs, against a bootstrap of the questions and against simulation."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.messages.jobs import DRAWS, DrawnMeans
from evaluator.scoring.groups import interval_of_mean
from evaluator.scoring.metrics import QuestionScores
from evaluator.scoring.paired_draws import SEED, Cluster, drawn_means, means_over_draws, paired_interval

# Of a mean that is stored in 16 bits.
ROUNDING = 1 / 65_535


def clusters_of(sizes: list[int]) -> list[Cluster]:
    return [("provider", f"{number:03}") for number, size in enumerate(sizes) for _ in range(size)]


def two_runs(
    rng: np.random.Generator, clusters: int, size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of two runs that find the same providers hard; the first is better by 0.05."""
    shared = np.repeat(rng.uniform(-0.3, 0.3, clusters), size)
    first, second = (
        0.5
        + shared
        + np.repeat(rng.uniform(-0.04, 0.04, clusters), size)
        + rng.uniform(-0.05, 0.05, clusters * size)
        for _ in range(2)
    )
    return first + 0.05, second


def interval(clusters: list[Cluster], first: NDArray[np.float64], second: NDArray[np.float64]):
    one, other = means_over_draws(clusters, first), means_over_draws(clusters, second)
    assert one is not None
    assert other is not None
    return paired_interval(one, other)


def test_the_differences_are_those_of_a_bootstrap_of_the_questions() -> None:
    rng = np.random.default_rng(1)
    sizes = [1, 9, 4, 30, 2, 5, 12, 3]
    clusters = clusters_of(sizes)
    first, second = rng.random(sum(sizes)), rng.random(sum(sizes))
    differences = first - second
    of_cluster = np.split(differences, np.cumsum(sizes)[:-1])
    draws = np.random.default_rng(SEED).integers(len(sizes), size=(DRAWS, len(sizes)))
    direct = [np.concatenate([of_cluster[number] for number in drawn]).mean() for drawn in draws]
    one, other = means_over_draws(clusters, first), means_over_draws(clusters, second)
    assert one is not None
    assert other is not None
    units = [np.frombuffer(drawn.means, "<u2").astype(float) for drawn in (one, other)]
    assert (units[0] - units[1]) / 65_535 == pytest.approx(np.array(direct), abs=1.01 * ROUNDING)
    assert len(one.means) == 2 * DRAWS
    found = paired_interval(one, other)
    assert found is not None
    # Other draws of the same clusters, as many again.
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    low, high = interval_of_mean((differences + 1) / 2, numbers)
    assert found == pytest.approx((2 * low - 1, 2 * high - 1), abs=0.03)
    swapped = paired_interval(other, one)
    assert swapped == pytest.approx((-found[1], -found[0]))


@pytest.mark.parametrize("clusters", [6, 10, 40])
def test_nineteen_of_twenty_paired_intervals_hold_the_true_difference_and_are_narrower(clusters: int) -> None:
    rng = np.random.default_rng(2)
    names, numbers = clusters_of([5] * clusters), np.repeat(np.arange(clusters), 5)
    held, narrower = [], []
    for _ in range(300):
        first, second = two_runs(rng, clusters, 5)
        low, high = interval(names, first, second)
        held.append(low <= 0.05 <= high)
        ends = [interval_of_mean(values, numbers) for values in (first, second)]
        narrower.append((high - low) / sum(end[1] - end[0] for end in ends))
    assert 0.9 <= np.mean(held) <= 0.99
    assert np.median(narrower) < 0.25


def test_draws_follow_from_the_names_whatever_the_order_of_questions() -> None:
    rng = np.random.default_rng(3)
    clusters, anls = clusters_of([3, 1, 4, 1, 5, 9]), rng.random(23)
    shuffled = rng.permutation(23)
    once = means_over_draws(clusters, anls)
    again = means_over_draws([clusters[place] for place in shuffled], anls[shuffled])
    assert once == again
    assert once is not None
    names_changed = means_over_draws([(kind, f"{name}x") for kind, name in clusters], anls)
    sizes_changed = means_over_draws(clusters_of([1, 3, 4, 1, 5, 9]), anls)
    for other in (names_changed, sizes_changed):
        assert other is not None
        assert paired_interval(once, other) is None


def test_of_a_few_providers_and_of_equal_runs_nothing_differs() -> None:
    assert means_over_draws(clusters_of([4] * 5), np.ones(20)) is None
    anls = np.random.default_rng(4).random(24)
    assert interval(clusters_of([4] * 6), anls, anls) == (0, 0)
    # Sums of 0.1 aren't exact.
    means = means_over_draws(clusters_of([7] * 6), np.full(42, 1.0))
    assert means is not None
    assert set(np.frombuffer(means.means, "<u2")) == {65_535}


def test_each_part_is_drawn_from_by_itself_and_a_page_without_provider_goes_with_its_document(
    tmp_path: Path,
) -> None:
    names = [f"p{number}" for number in range(14)]
    pages = [
        *(Page(page=f"{name}_0", provider=name, words=[], boxes=[]) for name in names),
        *(Page(page=f"none_{number}", provider="", words=[], boxes=[]) for number in range(3)),
    ]
    questions = [
        Question(question_id=str(number), page=page.page, question="What?", answers=["x"])
        for number, page in enumerate(pages)
    ]
    write_info(tmp_path, DatasetInfo(name="x"))
    write_split(tmp_path, "test", pages, questions)
    anls = np.linspace(0, 1, len(pages))
    dataset, scores = Dataset(tmp_path, "test"), QuestionScores(anls, anls)
    (whole,) = drawn_means(dataset, scores)
    assert (whole.part, whole.clusters) == ("", 15)
    private = [number < 7 for number in range(len(pages))]
    parts = drawn_means(dataset, scores, private)
    assert [(part.part, part.clusters) for part in parts] == [("public", 8), ("private", 7)]
    alone = means_over_draws([("provider", name) for name in names[:7]], anls[:7], "private")
    assert parts[1] == alone
    few = drawn_means(dataset, scores, [number < 2 for number in range(len(pages))])
    assert [part.part for part in few] == ["public"]


def test_a_message_has_as_many_means_as_there_are_draws_and_each_is_a_score() -> None:
    means = means_over_draws(clusters_of([1] * 6), np.array([0, 0.1, 0.2, 0.3, 0.4, 1.0]))
    assert means is not None
    text = means.model_dump_json()
    assert DrawnMeans.model_validate_json(text) == means
    assert len(text) < 3_000
    document = means.model_dump(mode="json")
    for changes in (
        {"means": document["means"][:-4]},
        {"means": "AAAA" + document["means"]},
        {"means": "no base64"},
        {"means": [0.5] * DRAWS},
        {"clusters": 1},
        {"clusters": float("nan")},
        {"draws_sha256": "0"},
        {"part": "all"},
    ):
        with pytest.raises(ValidationError):
            DrawnMeans.model_validate({**document, **changes})
