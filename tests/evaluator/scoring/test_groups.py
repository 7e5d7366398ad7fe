"""Groups of questions, and the intervals against what theory and simulation say of them."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluator.docvqa.dataset import Dataset, DatasetInfo, Page, Question, write_info, write_split
from evaluator.messages.jobs import GroupScore
from evaluator.scoring.groups import MAX_KEYS, group_scores, interval_of_mean
from evaluator.scoring.metrics import QuestionScores

Rows = list[tuple[str, str, str, float]]  # page, provider, key and ANLS of each question


def group(folder: Path, rows: Rows, *, trained: list[str] | None = None) -> list[GroupScore]:
    write_info(folder, DatasetInfo(name="x", clients={0: trained} if trained else {}))
    pages = {page: Page(page=page, provider=provider, words=[], boxes=[]) for page, provider, _, _ in rows}
    questions = [
        Question(question_id=str(number), page=page, question="What?", answers=["x"], key=key)
        for number, (page, _, key, _) in enumerate(rows)
    ]
    write_split(folder, "test", pages.values(), questions)
    anls = np.array([row[3] for row in rows])
    return group_scores(Dataset(folder, "test"), QuestionScores(anls, (anls == 1).astype(np.float64)))


def found(groups: list[GroupScore]) -> dict[tuple[str, str], tuple[int, float, float]]:
    return {(row.by, row.group): (row.questions, row.anls, row.accuracy) for row in groups}


def clustered(
    rng: np.random.Generator, clusters: int, size: int, spread: float = 0.3
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Values with mean 0.5 of which those of one cluster are alike."""
    cluster = np.repeat(np.arange(clusters), size)
    centers = 0.5 + spread * rng.uniform(-1, 1, clusters)
    return centers[cluster] + 0.05 * rng.uniform(-1, 1, clusters * size), cluster


def test_groups_are_all_questions_then_keys_then_seen_and_unseen_providers(tmp_path: Path) -> None:
    rows: Rows = [
        ("a_0", "acme", "total", 1.0),
        ("a_0", "acme", "date", 0.5),
        ("b_0", "bond", "total", 0.0),
        ("c_0", "", "", 0.5),
    ]
    assert found(group(tmp_path, rows, trained=["acme", "elsewhere"])) == {
        ("all", "all"): (4, 0.5, 0.25),
        ("key", "total"): (2, 0.5, 0.5),
        ("key", "date"): (1, 0.5, 0.0),
        ("key", "other"): (1, 0.5, 0.0),
        ("provider", "seen"): (2, 0.75, 0.5),
        ("provider", "unseen"): (1, 0.0, 0.0),
    }


def test_without_keys_and_training_providers_all_questions_are_the_only_group(tmp_path: Path) -> None:
    assert list(found(group(tmp_path, [("a_0", "acme", "", 1.0)]))) == [("all", "all")]


def test_pages_without_providers_are_neither_seen_nor_unseen(tmp_path: Path) -> None:
    assert list(found(group(tmp_path, [("a_0", "", "", 1.0)], trained=["acme"]))) == [("all", "all")]


def test_rare_keys_beyond_the_limit_are_one_group(tmp_path: Path) -> None:
    rows: Rows = [("a_0", "", f"key {number:03}", 1.0) for number in range(MAX_KEYS + 20)]
    rows += [("a_0", "", f"key {MAX_KEYS + 10}", 0.0), ("a_0", "", "other", 0.0)]
    groups = [row for row in group(tmp_path, rows) if row.by == "key"]
    assert len(groups) == MAX_KEYS + 1
    assert (groups[0].group, groups[0].questions) == (f"key {MAX_KEYS + 10}", 2)  # most questions first
    assert (groups[-1].group, groups[-1].questions) == ("other", 22 - 1)


def test_one_score_a_question_is_demanded(tmp_path: Path) -> None:
    group(tmp_path, [("a_0", "", "", 1.0)])
    with pytest.raises(ValueError, match="2 scores of 1 questions"):
        group_scores(Dataset(tmp_path, "test"), QuestionScores(np.ones(2), np.ones(2)))


def test_the_same_predictions_give_the_same_intervals(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows: Rows = [(f"d{n}_0", f"p{n % 7}", f"k{n % 3}", float(rng.random())) for n in range(60)]
    first = group(tmp_path / "one", rows, trained=["p1"])
    assert group(tmp_path / "two", rows, trained=["p1"]) == first
    assert all(0 <= row.anls_low < row.anls < row.anls_high <= 1 for row in first if row.group != "seen")


@pytest.mark.parametrize(("providers", "interval"), [(1, (0.0, 1.0)), (5, (0.0, 1.0)), (6, (0.07, 0.43))])
def test_of_a_few_providers_nothing_follows_for_others(
    tmp_path: Path, providers: int, interval: tuple[float, float]
) -> None:
    rows: Rows = [(f"d{n}_0", f"p{n % providers}", "", 0.1 * (n % providers)) for n in range(60)]
    (row,) = group(tmp_path, rows)
    assert (row.anls_low, row.anls_high) == pytest.approx(interval, abs=0.05)


def test_without_providers_the_questions_of_a_document_go_together(tmp_path: Path) -> None:
    rows: Rows = [(f"d{n % 5}_{n}", "", "", 0.5) for n in range(40)]
    (row,) = group(tmp_path, rows)  # five documents of eight pages are too few
    assert (row.anls_low, row.anls_high) == (0.0, 1.0)


def test_where_all_score_the_same_the_interval_is_that_number() -> None:
    assert interval_of_mean(np.full(30, 0.9), np.arange(30)) == pytest.approx((0.9, 0.9))


def test_of_many_clusters_the_interval_is_that_of_the_linearized_variance() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 30, 400)
    cluster = np.repeat(np.arange(400), sizes)
    values = np.clip(rng.random(400)[cluster] + 0.1 * rng.standard_normal(len(cluster)), 0, 1)
    residuals = np.bincount(cluster, weights=values - values.mean())
    error = np.sqrt((residuals**2).sum()) / len(
        values
    )  # of a ratio of cluster totals, Cochran 1977, section 9A
    low, high = interval_of_mean(values, cluster)
    assert (low, high) == pytest.approx(
        (values.mean() - 1.96 * error, values.mean() + 1.96 * error), abs=0.004
    )


def test_questions_of_one_provider_count_for_less_than_as_many_of_different_ones() -> None:
    values, cluster = clustered(np.random.default_rng(3), clusters=40, size=25)
    together, apart = interval_of_mean(values, cluster), interval_of_mean(values, np.arange(len(values)))
    assert together[1] - together[0] > 3 * (apart[1] - apart[0])


@pytest.mark.parametrize("clusters", [6, 10, 40])
def test_nineteen_of_twenty_intervals_hold_the_truth(clusters: int) -> None:
    rng = np.random.default_rng(4)
    intervals = [interval_of_mean(*clustered(rng, clusters, 5)) for _ in range(400)]
    assert 0.9 <= np.mean([low <= 0.5 <= high for low, high in intervals]) <= 0.99
