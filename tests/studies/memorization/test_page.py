"""The page of made-up outcomes, and one outcome of a real model."""

from pathlib import Path

import numpy as np
import pytest

from starter_kit.data.forms import SkewedSettings
from tests.studies.memorization.experiment import (
    ROWS,
    Attacked,
    Hidden,
    Memorization,
    Outcome,
    Results,
    Scored,
    Trial,
    compared,
)
from tests.studies.memorization.page import page


def outcome(row: str, seed: int, *, gap: float, auc: float, p_value: float) -> Outcome:
    return Outcome(
        row=row,
        seed=seed,
        epsilon=None,
        scored=Scored(seen=0.5 + gap, unseen=0.5, gap=gap, p_value=0.001 if gap > 0.1 else 0.4),
        attack=Attacked(auc=auc, low=auc - 0.1, high=auc + 0.1, p_value=p_value),
        hidden=[
            Hidden(field="provider", kind=kind, documents=20, accuracy=share)
            for kind, share in (("members", 0.25 if p_value < 0.05 else 0.0), ("nonmembers", 0.0))
        ],
        recalled=(3 if p_value < 0.05 else 0, 0),
        recall_p_value=0.1,
        settings_sha256="a" * 64,
        code="b" * 64,
        made_with="kit 0.1.0",
    )


def results(leaky: float) -> Results:
    """Models without privacy whose gap is `leaky`, and private ones without one."""
    outcomes = [outcome("centralized", seed, gap=leaky, auc=0.5 + leaky, p_value=0.001) for seed in (1, 2, 3)]
    outcomes += [outcome("fl-provider-dp-8", seed, gap=0.01, auc=0.52, p_value=0.4) for seed in (1, 2, 3)]
    return Results(task=SkewedSettings(), outcomes=outcomes)


def test_the_page_says_whether_the_model_memorizes_and_privacy_prevents_it() -> None:
    text = page(results(0.3))
    assert "the attack on new forms is significant in 3 of 3 seeds, and the gap in 3 of 3." in text
    assert "The AUC is lower than without privacy in 3 of 3 seeds, and the gap is smaller in 3 of 3." in text
    assert "A hidden constant was named of 9 seen and 0 unseen providers" in text
    assert "+0.300 *; +0.300 *; +0.300 *" in text
    # Three times p = 0.001, by Fisher: the χ² of 6 degrees beyond 41.4.
    assert "p = 2e-07 for the attack and 2.4e-07 for the gap" in text
    # 3.09 deviations at p = 0.001.
    assert "by at most about ± 0.097." in text
    assert "| Base weights | not run |" in text
    assert "25.0%; 0.0%" in text
    # Beside ours, Tables A5, A3 and A4 of the privacy paper.
    assert "| +0.300 | 93.68%; 86.48% |" in text
    assert "| 3.55%; 0.17% | 13.09%; 0% |" in text
    assert "**Tables 1 and A5, seen minus unseen: reproduced.**" in text
    assert "**Tables 2 and A3, hidden provider: reproduced.**" in text
    assert "**Table A4, hidden email: not reproduced.**" in text
    assert "code `bbbbbbbbbbbb`" in text
    assert "Not finished" not in text
    assert "doesn't contradict" not in text
    attacked = outcome("fl-provider-dp-8", 3, gap=0.01, auc=0.6, p_value=0.01)
    found = results(0.3)
    text = page(found.model_copy(update={"outcomes": [*found.outcomes[:-1], attacked]}))
    assert "A significant attack doesn't contradict ε = 8" in text


def test_the_page_says_that_privacy_prevents_nothing_and_that_seeds_are_missing() -> None:
    found = results(0.0)
    text = page(found.model_copy(update={"outcomes": found.outcomes[:-1]}))
    assert "and the gap in 0 of 3." in text
    assert "and the gap is smaller in 0 of 2." in text
    assert "**Tables 1 and A5, seen minus unseen: not reproduced.**" in text
    assert "The gap of a seed is within chance." in text
    assert "**Not finished:** 3 seeds are planned" in text


def test_the_page_says_how_many_providers_an_unclear_gap_needs() -> None:
    # 0.253 deviations at p = 0.4 and 1.645 at 0.05, with 150 providers of each kind in a test of 600 forms.
    text = page(results(0.05))
    assert "± 0.197. With about 6330 providers of each kind instead of 150" in text


def test_the_page_lists_the_trials_that_settings_were_chosen_by() -> None:
    chosen = results(0.3)
    earlier = Trial(task=SkewedSettings(), outcomes=results(0.05).outcomes)
    task = SkewedSettings(forms_held_out=3, logo_share=0.8)
    later = Trial(task=task, outcomes=[outcome("centralized", 11, gap=0.2, auc=0.7, p_value=0.2)])
    text = page(chosen.model_copy(update={"task": task, "trials": [earlier, later]}))
    assert "On 80% of the forms, the name is only in the logo" in text
    assert "100 providers from training and 100 others have 3 forms each." in text
    assert (
        "Seeds 1, 2, 3, the name only in the logo on 40% of the forms, 150 test providers of each kind"
        in text
    )
    assert "Seeds 11, the name only" not in text
    assert "3 forms each: Centralized, not private: gap +0.200 *, AUC 0.700." in text
    assert "the providers have the same constants" in text
    assert "the same constants" not in page(chosen.model_copy(update={"trials": [later]}))


def test_trials_are_kept_when_everything_runs_again(tmp_path: Path) -> None:
    trial = Trial(task=SkewedSettings(), outcomes=results(0.05).outcomes)
    kept = Memorization(tmp_path).forget(results(0.3).model_copy(update={"trials": [trial]}))
    assert kept is not None
    assert (kept.outcomes, kept.trials) == ([], [trial])


def test_a_gap_is_what_training_added_to_the_difference() -> None:
    member = np.arange(40) < 20
    before = np.where(member, 0.5, 0.3)
    # Everyone gains as much: the difference was there before.
    same = compared(before + 0.2, before, member)
    assert (same.seen, same.unseen) == pytest.approx((0.7, 0.5))
    assert (same.gap, same.p_value) == pytest.approx((0, 1))
    more = compared(before + 0.2 * member, before, member)
    assert (more.gap, more.p_value) == pytest.approx((0.2, 1 / 2001))


def test_a_row_is_trained_and_measured_once(tmp_path: Path) -> None:
    task = SkewedSettings(clients=2, providers=8, documents=1, valid_forms=2, test_forms=16)
    said: list[str] = []

    def run(earlier: Results | None) -> Results:
        study = Memorization(tmp_path, rows=ROWS[:2], seeds=(1,), task=task, resamples=100, say=said.append)
        *_, found = study.run(earlier)
        return found

    found = run(None)
    assert [one.row for one in found.outcomes] == ["zero-shot", "centralized"]
    assert found.outcomes[0].attack.auc == 0.5
    assert found.outcomes[1].scored.seen > found.outcomes[0].scored.seen
    assert {one.kind for one in found.outcomes[1].hidden} == {"members", "nonmembers"}
    assert len(said) == 2
    assert run(found) == found
    assert len(said) == 2
