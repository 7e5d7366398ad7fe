"""An audit from scores to a verdict: ties, scores that are no numbers, wrong escrow files, and several teams."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest

from evaluator.auditing.audit import Claim, audit, claim_p_value, provider_scores, refuted
from evaluator.auditing.bounds import gaussian_p_value, p_value
from evaluator.auditing.escrow import Escrow
from evaluator.docvqa.dataset import Dataset, DatasetInfo, write_info, write_split
from evaluator.errors import ErrorCode, ProblemError

CLAIM = Claim(epsilon=1.0, delta=1e-5, mu=0.27)


@pytest.fixture
def escrow() -> Escrow:
    return Escrow(
        data_sha256="0" * 64,
        guesses=80,
        is_released={f"canary-{number:03}": number % 2 == 0 for number in range(400)},
    )


def test_a_model_that_knows_all_canaries_is_refuted(escrow: Escrow) -> None:
    found = audit(escrow, {name: float(coin) for name, coin in escrow.is_released.items()}, CLAIM)
    assert (found.canaries, found.released, found.guesses, found.right) == (400, 200, 80, 80)
    assert found.p_value < 1e-4
    assert found.in_words.startswith("claim refuted")
    assert found.gaussian_epsilon_low > found.epsilon_low > 2


def test_scores_that_are_all_equal_show_nothing(escrow: Escrow) -> None:
    found = audit(escrow, dict.fromkeys(escrow.is_released, 1.0), CLAIM)
    assert found.p_value == 1
    assert found.in_words == "not refuted (p = 1), which verifies nothing"


def test_a_score_that_is_no_number_is_the_lowest(escrow: Escrow) -> None:
    scores = {name: float(coin) for name, coin in escrow.is_released.items()}
    hidden = {name: np.nan if coin else 0.0 for name, coin in escrow.is_released.items()}
    assert audit(escrow, hidden, CLAIM).not_a_number == 200
    assert audit(escrow, hidden, CLAIM).right == 0
    # Of 200 released, 100 are left, more than are guessed.
    some = {name: np.inf if number % 4 == 0 else scores[name] for number, name in enumerate(scores)}
    assert audit(escrow, some, CLAIM).right == 80


def test_scores_of_other_canaries_are_rejected(escrow: Escrow) -> None:
    with pytest.raises(ProblemError) as caught:
        audit(escrow, {"somebody": 1.0}, CLAIM)
    assert caught.value.problem.code == ErrorCode.AUDIT_ESCROW


def test_both_bounds_are_paid_for() -> None:
    both = claim_p_value(400, 80, 70, CLAIM)
    singles = p_value(400, 80, 70, epsilon=1, delta=1e-5), gaussian_p_value(400, 80, 70, mu=0.27)
    assert both == pytest.approx(2 * min(singles))
    assert claim_p_value(400, 80, 70, Claim(1.0, 1e-5)) == singles[0]


def test_several_teams_are_corrected_for() -> None:
    # Of four, the smallest has to be below 0.0025, the next below 0.0033, the third below 0.005.
    assert refuted({"a": 0.002, "b": 0.004, "c": 0.5, "d": 0.003}) == ["a", "d", "b"]
    assert refuted({"a": 0.003, "b": 0.004, "c": 0.5, "d": 0.9}) == []
    assert refuted({}) == []


def test_the_escrow_file_is_its_owners_and_read_back(escrow: Escrow, tmp_path: Path) -> None:
    path = tmp_path / "escrow.json"
    escrow.write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Escrow.read(path) == escrow


@pytest.mark.parametrize(
    "changed",
    [{"format": "other"}, {"guesses": 0}, {"guesses": 401}, {"is_released": {"one": True}}, {"extra": 1}],
)
def test_other_files_are_rejected(escrow: Escrow, tmp_path: Path, changed: dict[str, object]) -> None:
    path = tmp_path / "escrow.json"
    path.write_text(json.dumps({**escrow.model_dump(), **changed}))
    for wrong in (path, tmp_path / "missing.json"):
        with pytest.raises(ProblemError) as caught:
            Escrow.read(wrong)
        assert caught.value.problem.code == ErrorCode.AUDIT_ESCROW


def test_other_canaries_than_the_files_are_rejected(escrow: Escrow, tmp_path: Path) -> None:
    write_info(tmp_path, DatasetInfo(name="other"))
    write_split(tmp_path, "canaries", [], [])
    with pytest.raises(ProblemError) as caught:
        escrow.check_data(Dataset(tmp_path, "canaries"))
    assert caught.value.problem.code == ErrorCode.AUDIT_ESCROW


def test_a_canarys_score_is_what_training_gained_on_average() -> None:
    found = provider_scores(["a", "b", "a"], np.array([2.0, 1.0, 4.0]), np.array([1.0, np.nan, 1.0]))
    assert found["a"] == 2
    assert np.isnan(found["b"])
