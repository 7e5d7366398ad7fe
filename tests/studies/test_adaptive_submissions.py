"""What a team gains by adapting to displayed scores: in public only, and with few decimals too."""

import numpy as np
import pytest

from tests.studies.adaptive_submissions import (
    SETTINGS,
    STRATEGIES,
    Adapted,
    Part,
    Setting,
    draw,
    page,
    simulate,
)
from tests.studies.catalog import adaptive

SPLIT = Setting(600, 0.5)


@pytest.fixture(scope="module")
def adapted() -> list[Adapted]:
    return simulate(SPLIT, repetitions=4).adapted


def best(adapted: list[Adapted], decimals: int) -> Adapted:
    same = [one for one in adapted if one.decimals == decimals and one.submissions == 1000]
    return max(same, key=lambda one: one.displayed.mean)


@pytest.mark.parametrize("decimals", [2, 4])
def test_what_is_gained_in_public_is_not_gained_where_no_score_is_shown(
    adapted: list[Adapted], decimals: int
) -> None:
    found = best(adapted, decimals)
    assert found.displayed.mean > 0.1
    assert abs(found.private.mean) < 0.05
    assert abs(found.fresh.mean) < 0.05


def test_the_same_seed_gives_the_same_gains(adapted: list[Adapted]) -> None:
    assert simulate(SPLIT, repetitions=4).adapted == adapted


def test_a_provider_is_in_one_part() -> None:
    task = draw(np.random.default_rng(0), Setting(1800, 0.5))
    assert (task.public.questions, task.private.questions, task.fresh.questions) == (900, 900, 1800)


def test_a_displayed_score_is_truncated() -> None:
    part = Part(np.array([[2.0, 0.0], [2.0, 1.0]]), 3)
    assert part.displayed(part.total, 2) == 0.66
    part.give(1, np.array([1]))
    assert part.displayed(part.total, 2) == 1
    assert part.gain == pytest.approx(1 / 3)


def test_the_published_outcomes_are_of_all_settings_and_strategies() -> None:
    published = adaptive().read()
    assert [found.setting for found in published] == list(SETTINGS)
    for found in published:
        assert {one.strategy for one in found.adapted} == set(STRATEGIES)


def test_the_published_gains_on_hidden_questions_are_chance() -> None:
    for found in adaptive().read():
        # Six standard errors of a mean over 50 repetitions, each a difference of two scores of one set of questions.
        chance = 6 * 0.7 / np.sqrt(found.setting.questions / 2 * found.repetitions)
        for one in found.adapted:
            assert abs(one.private.mean) < chance
            assert abs(one.fresh.mean) < chance


def test_a_test_set_without_a_private_part_has_no_private_gain() -> None:
    text = page([simulate(Setting(120, 0.0), repetitions=1)])
    assert "| 120 | none | 2 | 1,000 |" in text
    assert " | – | " in text
