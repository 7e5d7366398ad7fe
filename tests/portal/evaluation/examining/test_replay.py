"""`manage.py examine --level 2` trains the drawn round of a genuine run again; if it agrees, the run has level 2."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command

from evaluator.messages.examinations import ReplayFindings
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from portal.submissions.models import Run, RunState
from starter_kit.runs.folder import OPENING, SETTINGS, RunFolder
from starter_kit.runs.opened_round import open_round
from tests.portal.factories import make_artifact, make_organizer, make_run, make_submission
from tests.portal.submissions.drafts import make_private_track
from tests.starter_kit.pocket_data import make_base, make_data
from tests.starter_kit.replay.opened_runs import CHALLENGE, DRAWS_FIRST, replayable_run

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("kit")]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of two rounds, of which the second was opened, with `data` and `base` beside it."""
    folder = tmp_path_factory.mktemp("replay")
    base, data = make_base(folder / "base"), make_data(folder / "data")
    run = replayable_run(base, data, folder / "run")
    open_round(run.path, CHALLENGE)
    return run


@pytest.fixture
def submitted(opened: RunFolder) -> Callable[[str], Run]:
    """Makes the site's run of these files, with the challenge that is given."""
    files = {
        **opened.files(),
        ArtifactKind.SETTINGS: opened.path / SETTINGS,
        ArtifactKind.ROUND_OPENING: opened.path / OPENING,
    }

    def submit(challenge: str) -> Run:
        run = make_run(
            make_submission(track=make_private_track(), state="submitted"),
            state=RunState.SCORED,
            budget=8.0,
            challenge=challenge,
            epsilon=3.0,
            scored_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        )
        for kind, path in files.items():
            make_artifact(run, kind, path.read_bytes(), path.name)
        return run

    return submit


def replay(run: Run, opened: RunFolder, *options: str) -> None:
    beside = opened.path.parent
    call_command(
        "examine",
        str(run.pk),
        "--level=2",
        f"--data={beside / 'data'}",
        f"--base={beside / 'base'}",
        *options,
    )


def test_a_round_that_agrees_gives_level_2_and_says_by_whom(
    submitted: Callable[[str], Run], opened: RunFolder
) -> None:
    run, organizer = submitted(CHALLENGE), make_organizer()
    replay(run, opened, f"--by={organizer.email}")
    run.refresh_from_db()
    assert (run.results.trust_level, run.results.trust_by) == (TrustLevel.REPLAYED, organizer.name)
    assert "Round 2, drawn after the record, was trained again and agrees, bit for bit." in (
        run.examinations.get().found.in_words
    )


def test_a_round_that_was_not_drawn_is_stored_and_gives_nothing(
    submitted: Callable[[str], Run], opened: RunFolder
) -> None:
    run = submitted(DRAWS_FIRST)
    with pytest.raises(CommandError, match="did not pass"):
        replay(run, opened)
    run.refresh_from_db()
    examination = run.examinations.get()
    assert (examination.passed, examination.level) == (False, TrustLevel.REPLAYED)
    assert "E_REPLAY_ROUND" in examination.found.in_words
    assert run.results.trust_level in (None, TrustLevel.RECOMPUTED)


def test_a_run_without_an_opening_isnt_examined(submitted: Callable[[str], Run], opened: RunFolder) -> None:
    run = submitted(CHALLENGE)
    run.artifacts.filter(kind=ArtifactKind.ROUND_OPENING).delete()
    with pytest.raises(CommandError, match="round opening"):
        replay(run, opened)
    assert not run.examinations.exists()


def test_the_public_words_of_a_replay_show_no_distance() -> None:
    found = ReplayFindings(challenge=CHALLENGE, round=3)
    assert found.passed
    assert "within the tolerance for different hardware" in found.in_words
    assert not {"distance", "bound"} & ReplayFindings.model_fields.keys()
