"""`manage.py examine --level 2` trains rounds of a genuine run again; if they agree, the run has level 2."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command

from docvqa_site.submissions.models import Run, RunState
from evaluator.messages.examinations import ReplayFindings
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from starter_kit.runs.folder import OPENING, SETTINGS, RunFolder
from starter_kit.runs.opened_round import open_rounds
from tests.docvqa_site.factories import make_artifact, make_organizer, make_run, make_submission
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.starter_kit.pocket_data import make_base, make_data
from tests.starter_kit.replay.opened_runs import CHALLENGE, replayable_run

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("kit")]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run of two rounds that were opened, with `data` and `base` beside it."""
    folder = tmp_path_factory.mktemp("replay")
    base, data = make_base(folder / "base"), make_data(folder / "data")
    run = replayable_run(base, data, folder / "run")
    open_rounds(run.path, CHALLENGE)
    return run


@pytest.fixture
def submitted(opened: RunFolder) -> Callable[[int], Run]:
    """Makes the site's run of these files, in a track that draws so many rounds."""
    files = {
        **opened.files(),
        ArtifactKind.SETTINGS: opened.path / SETTINGS,
        ArtifactKind.ROUND_OPENING: opened.path / OPENING,
    }

    def submit(drawn: int) -> Run:
        run = make_run(
            make_submission(track=make_private_track(drawn_rounds=drawn), state="submitted"),
            state=RunState.SCORED,
            budget=8.0,
            challenge=CHALLENGE,
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


@pytest.mark.slow
def test_rounds_that_agree_give_level_2_and_say_how_many_and_by_whom(
    submitted: Callable[[int], Run], opened: RunFolder
) -> None:
    run, organizer = submitted(3), make_organizer()
    replay(run, opened, f"--by={organizer.email}")
    run.refresh_from_db()
    assert (run.results.trust_level, run.results.trust_by) == (TrustLevel.REPLAYED, organizer.name)
    assert run.results.trust_label == "L2, 2 of 2 rounds"
    assert "drawn after the record: 1, 2. All agree, bit for bit." in run.examinations.get().found.in_words


@pytest.mark.slow
def test_rounds_that_were_not_drawn_are_stored_and_give_nothing(
    submitted: Callable[[int], Run], opened: RunFolder
) -> None:
    run = submitted(0)
    with pytest.raises(CommandError, match="did not pass"):
        replay(run, opened)
    run.refresh_from_db()
    examination = run.examinations.get()
    assert (examination.passed, examination.level) == (False, TrustLevel.REPLAYED)
    assert "E_REPLAY_ROUND" in examination.found.in_words
    assert run.results.trust_level in (None, TrustLevel.RECOMPUTED)


def test_a_run_without_an_opening_isnt_examined(submitted: Callable[[int], Run], opened: RunFolder) -> None:
    run = submitted(3)
    run.artifacts.filter(kind=ArtifactKind.ROUND_OPENING).delete()
    with pytest.raises(CommandError, match="round opening"):
        replay(run, opened)
    assert not run.examinations.exists()


def test_the_public_words_of_a_replay_show_no_distance() -> None:
    found = ReplayFindings(challenge=CHALLENGE, rounds=[3, 8, 20, 100], of=100)
    assert found.passed
    assert found.coverage == "4 of 100 rounds"
    assert "within the tolerance for different hardware" in found.in_words
    assert not {"distance", "bound"} & ReplayFindings.model_fields.keys()


def test_a_report_from_before_a_replay_covered_several_rounds_is_still_read() -> None:
    stored = {"kind": "replay", "challenge": CHALLENGE, "round": 3, "exact": True}
    assert ReplayFindings.model_validate(stored).coverage == "1 round"
    assert not ReplayFindings.model_validate(stored | {"round": None}).passed
