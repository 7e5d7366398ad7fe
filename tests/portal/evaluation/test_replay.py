"""`manage.py replay` sets level 2 for a round that agrees, and stores an examination that wasn't passed."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluator.contracts import ArtifactKind, TrustLevel
from evaluator.errors import ErrorCode, Problem
from evaluator.examinations import CodeIdentity, ReplayReport
from portal.evaluation import replay
from portal.submissions.models import Run, RunState
from tests.portal.factories import make_artifact, make_organizer, make_run, make_submission
from tests.portal.submissions.drafts import make_private_track

pytestmark = pytest.mark.django_db

CHALLENGE = "a" * 64
IDENTITY = CodeIdentity(kit_version="1.2", code_sha256="c" * 64, settings_sha256="5" * 64)
AGREES = {"round": 17, "exact": True, "seconds": 2.5, "problems": []}
PROBLEM = Problem.of(ErrorCode.REPLAY_CLIP, where="round 17", found="3 times the clipped updates")
DIFFERS = {"round": None, "exact": False, "seconds": 2.5, "problems": [PROBLEM.model_dump(mode="json")]}


@pytest.fixture
def run() -> Run:
    return make_run(
        make_submission(track=make_private_track(), state="submitted"),
        state=RunState.SCORED,
        budget=4.0,
        challenge=CHALLENGE,
        epsilon=3.0,
        scored_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> dict[str, Any]:
    """Stands in for the kit: holds what it is asked, and writes the `result` that a test puts here."""
    asked: dict[str, Any] = {"result": AGREES}

    class Kit:
        def __enter__(self) -> "Kit":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def identify(self, _files: object) -> CodeIdentity:
            return IDENTITY

        def judge(self, module: str, inputs: dict[str, Any], *, timeout_s: float) -> bytes:
            asked.update(module=module, **inputs, timeout_s=timeout_s)
            return json.dumps(asked["result"]).encode()

    monkeypatch.setattr(replay, "KitSandbox", Kit)
    for kind in set(ArtifactKind) - {ArtifactKind.PRIVACY_PROOF}:
        make_artifact(run, kind)
    return asked


def command(run: Run, **options: Any) -> None:
    call_command("replay", str(run.pk), data=Path("data"), base=Path("base"), **options)


def test_a_round_that_agrees_gives_level_2_and_says_by_whom(run: Run, asked: dict[str, Any]) -> None:
    organizer = make_organizer()
    command(run, by=organizer.email)
    run.refresh_from_db()
    assert (run.results.trust_level, run.results.trust_by) == (TrustLevel.REPLAYED, organizer.name)
    assert "Round 17, drawn after the record, was trained again and agrees, bit for bit." in (
        run.examinations.get().read_report().in_words
    )
    assert asked["inputs"]["challenge"] == CHALLENGE
    assert Path(asked["inputs"]["data"]).is_absolute()


def test_a_round_that_differs_is_stored_and_gives_nothing(run: Run, asked: dict[str, Any]) -> None:
    asked["result"] = DIFFERS
    with pytest.raises(CommandError, match="not been passed"):
        command(run)
    run.refresh_from_db()
    examination = run.examinations.get()
    assert (examination.passed, examination.level) == (False, TrustLevel.REPLAYED)
    assert "E_REPLAY_CLIP" in examination.read_report().in_words
    assert run.results.trust_level in (None, TrustLevel.RECOMPUTED)


def test_a_run_without_an_opening_isnt_examined(run: Run, asked: dict[str, Any]) -> None:
    run.artifacts.filter(kind=ArtifactKind.ROUND_OPENING).delete()
    with pytest.raises(CommandError, match="round opening"):
        command(run)
    assert not run.examinations.exists()


def test_the_public_words_of_a_replay_show_no_distance() -> None:
    report = ReplayReport(challenge=CHALLENGE, seconds=1.0, round=3)
    assert report.passed
    assert "within the bound for other hardware" in report.in_words
    assert not {"distance", "bound"} & ReplayReport.model_fields.keys()
