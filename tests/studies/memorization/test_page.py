"""The page of made-up outcomes, and one outcome of a real model."""

from pathlib import Path

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
)
from tests.studies.memorization.page import gap_p_value, page


def outcome(row: str, seed: int, *, gap: float, auc: float, p_value: float) -> Outcome:
    return Outcome(
        row=row,
        seed=seed,
        epsilon=None,
        seen=Scored(anls=0.5 + gap, low=0.46 + gap, high=0.54 + gap),
        unseen=Scored(anls=0.5, low=0.46, high=0.54),
        attack=Attacked(auc=auc, low=auc - 0.1, high=auc + 0.1, p_value=p_value),
        hidden=[
            Hidden(field="provider", kind=kind, documents=20, accuracy=share)
            for kind, share in (("members", 0.25), ("nonmembers", 0.0))
        ],
        recalled=(3, 0),
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
    assert "memorizes its providers in every seed" in text
    assert "**Privacy lowers both.**" in text
    assert "+0.300 *; +0.300 *; +0.300 *" in text
    assert "| Base weights | not run |" in text
    assert "25.0%; 0.0%" in text
    assert "code `bbbbbbbbbbbb`" in text
    # Had the private models a larger gap, the page would say so.
    text = page(results(0.0))
    assert "memorizes its providers in some seeds only" in text
    assert "**Privacy does not lower both in every seed.**" in text


def test_a_gap_is_judged_by_the_errors_of_both_means() -> None:
    # Errors of 0.04/1.96 each: 0.0566/√2/0.0204 = 1.96 standard errors.
    assert gap_p_value(outcome("centralized", 1, gap=0.0566, auc=0.6, p_value=0.1)) == pytest.approx(
        0.025, abs=0.0005
    )


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
    assert found.outcomes[1].seen.anls > found.outcomes[0].seen.anls
    assert {one.kind for one in found.outcomes[1].hidden} == {"members", "nonmembers"}
    assert len(said) == 2
    assert run(found) == found
    assert len(said) == 2
