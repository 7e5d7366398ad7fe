"""Recomputing what a site publishes, at the real site, with a run that the kit trained."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from docvqa_site.teams.models import Team
from evaluator.communication.first_downloads import FirstDownloads
from evaluator.communication.log import read_log
from evaluator.errors import ErrorCode
from evaluator.messages.jobs import ArtifactKind, FirstDownload
from starter_kit.commands.main import app
from starter_kit.runs.folder import RunFolder
from starter_kit.verifying import PublicSite, rank_differences
from tests.docvqa_site.factories import change_results, make_artifact, make_run, make_submission
from tests.services.live_site import LiveSite
from tests.starter_kit.training_runs import accounting, trained

PUBLIC = (ArtifactKind.TRAINING_RECORD, ArtifactKind.COMMUNICATION_LOG)
Spoil = Callable[[Run], None]


@pytest.fixture(scope="module")
def folder(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return trained("fl-provider-dp", base, data, tmp_path_factory.mktemp("run") / "run")


@pytest.fixture
def run(team: Team, folder: RunFolder, base: Path) -> Run:
    """The run on the board of ε = 8 of the shipped track."""
    track, files = Track.objects.get(slug="track-2"), folder.files()
    track.clients = 3
    track.save()
    submission = make_submission(team, track, state=SubmissionState.SUBMITTED)
    downloads = FirstDownloads()
    log = files[ArtifactKind.COMMUNICATION_LOG]
    totals = read_log(log, clients=3, max_rounds=9, on_exchange=downloads.add)
    run = make_run(
        submission,
        state=RunState.SCORED,
        budget=8,
        epsilon=accounting(files, base).epsilon,
        accountant="pld",
        bytes_total=downloads.ranked_bytes(totals, FirstDownload.FREE),
    )
    for kind in PUBLIC:
        make_artifact(run, kind, files[kind].read_bytes(), files[kind].name)
    return run


def verify(site: LiveSite, *options: str) -> Result:
    return CliRunner().invoke(app, ["verify", site.url, *options], env={"COLUMNS": "300"})


def test_every_figure_of_an_honest_board_follows_from_the_public_files(site: LiveSite, run: Run) -> None:
    result = verify(site)
    assert result.exit_code == 0, result.output
    assert "Recomputed from the public files: 1 ε, 1 byte count, 1 rank of 1 row; all match." in result.output


def another_epsilon(run: Run) -> None:
    assert run.results.epsilon is not None
    change_results(run, epsilon=run.results.epsilon - 0.01)


def another_count(run: Run) -> None:
    assert run.results.bytes_total is not None
    change_results(run, bytes_total=run.results.bytes_total - 1)


def replace_file(run: Run, kind: ArtifactKind, change: Callable[[bytes], bytes]) -> None:
    from docvqa_site.uploads.stores import current_store

    found = run.artifacts.get(kind=kind)
    content = current_store().open(found.upload.store_key).read()
    found.delete()
    make_artifact(run, kind, change(content), found.upload.filename)


def changed_record(run: Run) -> None:
    replace_file(run, ArtifactKind.TRAINING_RECORD, lambda content: content.replace(b"0.1.0", b"0.1.1"))


def another_log(run: Run) -> None:
    replace_file(run, ArtifactKind.COMMUNICATION_LOG, lambda content: b"".join(content.splitlines(True)[:-1]))


def test_a_rank_that_is_withheld_without_a_reason_is_a_difference(site: LiveSite, run: Run) -> None:
    (row,) = PublicSite(site.url).boards("track-2")[8]
    track = next(one for one in PublicSite(site.url).tracks() if one.slug == "track-2")
    assert list(rank_differences(track, 8, [row], "board")) == []
    (found,) = rank_differences(track, 8, [row | {"rank": None}], "board")
    assert (found.expected, found.found) == ("a rank", "none")
    for withheld in ("is_disqualified", "is_withheld"):
        assert list(rank_differences(track, 8, [row | {"rank": None, withheld: True}], "board")) == []


@pytest.mark.parametrize(
    ("spoil", "where"),
    [
        (another_epsilon, ", ε: expected"),
        (another_count, ", bytes: expected"),
        (changed_record, "E_RECORD_CHAIN"),
        (another_log, ", bytes: expected"),
    ],
)
def test_the_first_difference_is_named_and_ends_the_command_with_a_failure(
    site: LiveSite, run: Run, spoil: Spoil, where: str
) -> None:
    spoil(run)
    result = verify(site)
    assert result.exit_code == 1
    assert where in result.output
    assert f"track-2, ε = 8, {run.submission.title}" in result.output


@pytest.fixture
def counted_run(team: Team, base: Path, data: Path, tmp_path: Path) -> Run:
    """A run on the board of the shipped track of bytes, with the index of its messages."""
    track, files = Track.objects.get(slug="track-1"), trained("fedavg", base, data, tmp_path / "run").files()
    track.clients = 3
    track.save()
    downloads = FirstDownloads()
    log = files[ArtifactKind.COMMUNICATION_LOG]
    totals = read_log(log, clients=3, max_rounds=9, on_exchange=downloads.add)
    run = make_run(
        make_submission(team, track, state=SubmissionState.SUBMITTED),
        state=RunState.SCORED,
        anls=0.9,
        bytes_total=downloads.ranked_bytes(totals, track.rules(None).first_download),
        bytes_sent=totals.bytes_total,
        counting="counted",
        rounds_folded=totals.rounds,
    )
    for kind in (ArtifactKind.COMMUNICATION_LOG, ArtifactKind.TRANSCRIPT):
        make_artifact(run, kind, files[kind].read_bytes(), files[kind].name)
    return run


def test_counted_bytes_follow_from_the_index_of_the_messages(site: LiveSite, counted_run: Run) -> None:
    result = verify(site, "--track", "track-1")
    assert result.exit_code == 0, result.output
    assert "Recomputed from the public files: 1 byte count, 1 rank of 1 row; all match." in result.output
    said = " ".join(result.output.split())
    assert "Bytes are those in the logs. Counting them again needs the messages, which aren't public" in said
    change_results(counted_run, decoder_bytes=10)
    assert ", bytes: expected" in verify(site, "--track", "track-1").output


def test_an_index_of_other_messages_is_a_difference(site: LiveSite, counted_run: Run) -> None:
    replace_file(
        counted_run,
        ArtifactKind.TRANSCRIPT,
        lambda content: content.replace(b'"receiver":-1,"sender":0', b'"receiver":-1,"sender":1', 1),
    )
    result = verify(site, "--track", "track-1")
    assert result.exit_code == 1
    assert "E_TRANSCRIPT_" in result.output


def test_runs_without_public_files_are_listed_as_such(site: LiveSite, run: Run) -> None:
    type(run.submission).objects.filter(pk=run.submission_id).update(anonymous=True, alias="Owl")
    result = verify(site, "--track", "track-2")
    assert result.exit_code == 0
    assert f"{run.submission.title}: no public files" in result.output
    assert "Recomputed from the public files: 1 rank of 1 row; all match." in result.output
    assert "Bytes" not in result.output


def test_a_track_that_is_not_there_and_a_site_that_is_none_are_rejected(site: LiveSite, run: Run) -> None:
    assert ErrorCode.CONFIGURATION in verify(site, "--track", "track-9").output
    nowhere = CliRunner().invoke(app, ["verify", "http://127.0.0.1:9"], env={"COLUMNS": "300"})
    assert nowhere.exit_code != 0
    assert ErrorCode.SITE_UNREACHABLE in nowhere.output
