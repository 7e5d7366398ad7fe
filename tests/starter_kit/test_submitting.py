"""`pfl submit` from run folders to the end of the evaluation, against the real site over HTTP.

The workers' part of an evaluation is played by the messages that they would send.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from subprocess import PIPE
from typing import Any

import pytest

from docvqa_site.celery import app
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.models import Evaluation
from docvqa_site.submissions.models import Artifact, Run, Submission
from docvqa_site.submissions.quota import PRACTICE_SLOTS
from docvqa_site.teams.models import TeamKey
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.api import ChangedText, RunStatus, SubmissionStatus
from evaluator.messages.jobs import (
    PROGRESS_TASK,
    REPORT_TASK,
    ArtifactKind,
    CheckStatus,
    CommunicationResult,
    Outcome,
    Step,
    TrackRules,
)
from evaluator.messages.states import RunState, SubmissionState
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.signing import public_key_of
from starter_kit.runs.answering import read_both, remove_vectors
from starter_kit.runs.folder import OPENED_MESSAGES, RunFolder
from starter_kit.site.client import SiteClient
from starter_kit.submitting import prepare, register_keys, resumable_draft, send, watch
from tests.docvqa_site.evaluation.messages import make_progress, make_report, signed
from tests.docvqa_site.factories import make_submission, make_token
from tests.docvqa_site.submissions.drafts import make_complete_draft
from tests.services.live_site import LiveSite
from tests.starter_kit.commands.pfl import failing, pfl
from tests.starter_kit.training_runs import KEY, accounting, trained

app.loader.import_default_modules()  # registers the tasks that workers call

PFL = [sys.executable, "-c", "from starter_kit.commands.main import main; main()"]
Event = Callable[[], object]
TOKENS: dict[float, str] = {
    0.9: "token-of-the-run-at-0-9",
    1: "token-of-the-run-at-1",
    8: "token-of-the-run-at-8",
}

PROBLEM = Problem.of(ErrorCode.CHECKPOINT_NOT_FINITE)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, base: Path, data: Path) -> dict[float, Path]:
    """Private runs by their target ε: two for the board of 1, one for that of 8."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        epsilon: trained(
            "fl-provider-dp",
            base,
            data,
            folder / f"{epsilon}",
            ["rounds=1", f"target_epsilon={epsilon}"],
            run_token=token,
        ).path
        for epsilon, token in TOKENS.items()
    }


@pytest.fixture
def tokens(team: Any) -> None:
    """The tokens of the runs, issued to the team."""
    for token in TOKENS.values():
        make_token(team, Track.objects.get(slug="track-2"), token=token)


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    path = tmp_path / "proof.md"
    path.write_text("Because the noise is large enough.")
    return path


@pytest.fixture(autouse=True)
def large_parts(site: LiveSite, settings: Any) -> None:
    """Send each file in one part: other tests cut them up."""
    settings.UPLOAD_PART_SIZE_BYTES = 10_000_000


def submitted(
    client: SiteClient, track: str, folders: list[Path], proof: Path | None = None
) -> SubmissionStatus:
    plan = prepare(client, track, folders, proof)
    register_keys(client, plan)
    return send(client, plan, "Mine", "It adds noise.", lambda *_: None)


def rejection(client: SiteClient, track: str, folders: list[Path], proof: Path | None = None) -> ErrorCode:
    with pytest.raises(ProblemError) as caught:
        prepare(client, track, folders, proof)
    return caught.value.problem.code


def files_at_the_site() -> dict[tuple[float | None, str], bytes]:
    """The content of every submitted file, by its run's budget and its kind."""
    return {
        (artifact.run.budget if artifact.run else None, artifact.kind): current_store()
        .open(artifact.upload.store_key)
        .read()
        for artifact in Artifact.objects.all()
    }


def watched(client: SiteClient, submission: SubmissionStatus, *events: Event) -> tuple[list[str], RunStatus]:
    """The lines that `watch` reports while one event happens after the other, and the final status of the run."""
    lines: list[str] = []
    next_event = iter(events)
    final = watch(client, submission.id, lines.append, pause=lambda: next(next_event)())
    assert list(next_event) == []
    (run,) = final.runs
    return lines, run


def progress(**fields: Any) -> Event:
    """A worker reports its progress in the current step."""
    return lambda: app.tasks[PROGRESS_TASK](signed(make_progress(Evaluation.objects.get(), **fields)))


def report(step: Step, outcome: Outcome = Outcome.PASSED, **fields: Any) -> Event:
    """A worker reports the end of a step of the newest attempt."""
    return lambda: app.tasks[REPORT_TASK](
        signed(make_report(Evaluation.objects.latest("attempt"), step, outcome, **fields))
    )


def test_each_run_goes_to_the_board_that_its_record_claims(
    site_client: SiteClient, runs: dict[float, Path], proof: Path, tokens: None
) -> None:
    submission = submitted(site_client, "track-2", [runs[8], runs[1]], proof)
    assert {run.budget for run in submission.runs} == {1.0, 8.0}
    files = files_at_the_site()
    for budget, folder in ((1.0, runs[1]), (8.0, runs[8])):
        for kind, name in (
            (ArtifactKind.CHECKPOINT, "model.safetensors"),
            (ArtifactKind.COMMUNICATION_LOG, "communication_log.csv"),
            (ArtifactKind.TRAINING_RECORD, "training_record.jsonl"),
            (ArtifactKind.TRAINING_ANNEX, "training_annex.jsonl"),
            (ArtifactKind.SETTINGS, "settings.yaml"),
        ):
            assert files[budget, kind] == (folder / name).read_bytes()
    assert files[None, ArtifactKind.PRIVACY_PROOF] == proof.read_bytes()
    assert len(files) == 11


def test_the_annex_answers_the_challenge_that_the_site_drew(
    site_client: SiteClient, runs: dict[float, Path], proof: Path, base: Path, tokens: None
) -> None:
    submitted(site_client, "track-2", [runs[8]], proof)
    challenge = Run.objects.get().challenge
    _, annex = read_both(runs[8])
    assert annex.challenge == challenge != ""
    found = accounting(RunFolder(runs[8]).files(), base, challenge=challenge)
    assert (
        next(check.status for check in found.checks if check.id == "record.challenge") is CheckStatus.PASSED
    )


@pytest.mark.parametrize("failing", ["uploads", "uploads/*/complete", "submissions/*/submit"])
def test_a_private_submission_is_resumed_wherever_it_was_interrupted(
    site: LiveSite, site_client: SiteClient, runs: dict[float, Path], proof: Path, tokens: None, failing: str
) -> None:
    """Before the record, with the record stored and its challenge lost on the way, and after everything."""
    site.break_down(f"POST /api/v1/{failing}")
    with pytest.raises(ProblemError):
        submitted(site_client, "track-2", [runs[8]], proof)
    site.recover()
    uploads = Upload.objects.filter(state="completed").count()
    assert submitted(site_client, "track-2", [runs[8]], proof).state == SubmissionState.SUBMITTED
    assert len(files_at_the_site()) == 6
    if failing == "submissions/*/submit":
        assert Upload.objects.count() == uploads == 6


def test_a_second_record_with_the_same_token_is_rejected_before_anything_else_is_sent(
    site_client: SiteClient,
    runs: dict[float, Path],
    proof: Path,
    base: Path,
    data: Path,
    tmp_path: Path,
    tokens: None,
) -> None:
    submitted(site_client, "track-2", [runs[8]], proof)
    other = trained("fl-provider-dp", base, data, tmp_path / "run", ["rounds=1"], run_token=TOKENS[8])
    plan = prepare(site_client, "track-2", [other.path], proof)
    register_keys(site_client, plan)
    with pytest.raises(ProblemError) as caught:
        send(site_client, plan, "Another", "It adds noise.", lambda *_: None)
    assert caught.value.problem.code is ErrorCode.RECORD_TOKEN
    assert not Artifact.objects.filter(submission__title="Another").exists()


def test_a_run_without_its_vectors_is_rejected_before_anything_is_sent(
    site_client: SiteClient, base: Path, data: Path, proof: Path, tmp_path: Path
) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["rounds=1"])
    assert remove_vectors(run.path) > 0
    assert rejection(site_client, "track-2", [run.path], proof) is ErrorCode.RECORD_CHALLENGE
    assert not Submission.objects.exists()


def test_track_1_takes_what_it_requires_and_no_record(
    site_client: SiteClient, runs: dict[float, Path]
) -> None:
    submission = submitted(site_client, "track-1", [runs[8]])
    assert [run.state for run in submission.runs] == [RunState.QUEUED]
    assert {kind for _, kind in files_at_the_site()} == {
        ArtifactKind.CHECKPOINT,
        ArtifactKind.COMMUNICATION_LOG,
        ArtifactKind.SETTINGS,
    }


def test_a_private_run_for_track_1_is_doubted(site_client: SiteClient, runs: dict[float, Path]) -> None:
    plan = prepare(site_client, "track-1", [runs[8]], None)
    assert [one.code for one in plan.doubts] == [ErrorCode.TRACK_RULES] * 2
    assert "trained with privacy" in plan.doubts[0].message
    assert "counted bytes" in plan.doubts[1].message
    assert "--anyway" in plan.doubts[0].next_step


def test_the_command_asks_for_an_option_before_it_sends_a_doubted_run(
    site: LiveSite, token: str, runs: dict[float, Path]
) -> None:
    command = [
        "submit",
        runs[8],
        "--track",
        "track-1",
        "--title",
        "Mine",
        "--site",
        site.url,
        "--token",
        token,
    ]
    assert "--anyway" in failing(*command)
    assert not Submission.objects.exists()
    practiced = pfl(*command, "--practice")
    assert "trained with privacy" in practiced.stderr
    assert "This run would have no rank in track-1." in practiced.stderr
    assert "become public" not in practiced.stdout


def test_practice_reports_the_run_token_that_it_spends_and_how_to_compete(
    site: LiveSite, token: str, runs: dict[float, Path], tokens: None, proof: Path, tmp_path: Path
) -> None:
    run = copytree(runs[8], tmp_path / "run")
    command = ["submit", run, "--track", "track-2", "--title", "Mine", "--site", site.url, "--token", token]
    note = "its challenge is unresolved until you submit the same training record for a rank"
    before = "Uploading the training record spends its run token. Until you submit the same for a rank, its challenge"
    practiced = pfl(*command, "--practice")
    assert before in practiced.stdout.partition("Submitted: ")[0]
    assert note in practiced.stdout
    assert "run the same command without --practice" in practiced.stdout
    assert note not in pfl(*command, "--proof", proof, "--description", "It adds noise.").stdout


def test_the_command_notes_earlier_private_runs_that_the_record_does_not_state(
    site: LiveSite, token: str, team: Any, runs: dict[float, Path], proof: Path, tmp_path: Path
) -> None:
    run, track = copytree(runs[8], tmp_path / "run"), Track.objects.get(slug="track-2")
    make_token(team, track, record_sha256="5" * 64)
    for one in TOKENS.values():
        make_token(team, track, token=one)
    make_token(team, track, record_sha256="6" * 64)
    command = ["submit", run, "--track", "track-2", "--title", "Mine", "--description", "It adds noise."]
    noted = pfl(*command, "--proof", proof, "--site", site.url, "--token", token).stderr
    assert (
        "The site has 1 earlier training record of your team in track-2, but tuning.private_runs is 0."
        in noted
    )


def test_a_run_without_a_record_is_for_another_track(
    site_client: SiteClient, runs: dict[float, Path], tmp_path: Path
) -> None:
    (tmp_path / "model.safetensors").write_bytes((runs[8] / "model.safetensors").read_bytes())
    with pytest.raises(ProblemError) as caught:
        prepare(site_client, "track-2", [tmp_path], None)
    assert "trained without privacy" in caught.value.problem.message
    assert "track-1" in caught.value.problem.next_step


def test_a_checkpoint_that_was_submitted_before_leaves_no_draft(
    site_client: SiteClient, runs: dict[float, Path]
) -> None:
    submitted(site_client, "track-1", [runs[8]])
    assert rejection(site_client, "track-1", [runs[8]]) is ErrorCode.SUBMISSION_DUPLICATE
    assert Submission.objects.count() == 1
    assert prepare(site_client, "track-1", [runs[8]], None, practice=True).practice


def test_a_quota_that_is_used_up_leaves_no_draft(
    site_client: SiteClient, runs: dict[float, Path], team: Any
) -> None:
    track = Track.objects.get(slug="track-1")
    for _ in range(PRACTICE_SLOTS):
        make_submission(team, track, state="submitted", practice=True, published_at=None)
    assert prepare(site_client, "track-1", [runs[8]], None)
    with pytest.raises(ProblemError) as caught:
        prepare(site_client, "track-1", [runs[8]], None, practice=True)
    assert caught.value.problem.code is ErrorCode.SUBMISSION_QUOTA
    assert f"{PRACTICE_SLOTS} practice submissions" in caught.value.problem.expected
    assert "Nothing was uploaded. The next slot is free on" in caught.value.problem.next_step
    assert not Submission.objects.filter(state=SubmissionState.DRAFT).exists()


def test_a_large_run_sends_its_index_and_then_the_rounds_that_the_site_drew(
    site_client: SiteClient, base: Path, data: Path, tmp_path: Path, settings: Any, few_drawn: None
) -> None:
    settings.WHOLE_MESSAGES_BYTES = 5000
    folder = trained("fedavg", base, data, tmp_path / "run", ["rounds=6"])
    plan = prepare(site_client, "track-1", [folder.path], None)
    # The number counts that the site had when it drew.
    Track.objects.update(drawn_rounds=2)
    send(site_client, plan, "Mine", "It adds noise.", lambda *_: None)
    (run,) = Run.objects.all()
    sent = tmp_path / "sent.bin"
    sent.write_bytes(files_at_the_site()[None, ArtifactKind.MESSAGES])
    assert sent.read_bytes() == (folder.path / OPENED_MESSAGES).read_bytes()
    files = {**folder.files(), ArtifactKind.MESSAGES: sent}
    inputs = StepInputs(files, TrackRules.model_validate(run.rules), base, challenge=run.challenge)
    result = run_step(Step.COMMUNICATION, inputs, lambda *_: None).result
    assert isinstance(result, CommunicationResult)
    assert (result.counting, result.rounds_folded, result.rounds) == ("counted", 3, 6)


def test_settings_and_an_own_methods_file_are_sent_unless_the_team_keeps_its_code(
    site_client: SiteClient, runs: dict[float, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("model.safetensors", "communication_log.csv"):
        (run / name).write_bytes((runs[8] / name).read_bytes())
    (run / "settings.yaml").write_text("method: mine.py")
    (run / "mine.py").write_text("Settings = None")
    assert prepare(site_client, "track-1", [run], None).examined_files == ["mine.py", "settings.yaml"]
    assert prepare(site_client, "track-1", [run], None, with_code=False).examined_files == []
    (run / "settings.yaml").write_text("[")
    assert prepare(site_client, "track-1", [run], None).examined_files == []


def test_the_key_that_signed_is_registered_unless_the_site_knows_it(
    site_client: SiteClient, runs: dict[float, Path], proof: Path
) -> None:
    plan = prepare(site_client, "track-2", [runs[8], runs[1]], proof)
    assert register_keys(site_client, plan) == [public_key_of(KEY)]
    assert register_keys(site_client, plan) == []
    assert [(key.public_key, key.name) for key in TeamKey.objects.all()] == [
        (public_key_of(KEY), platform.node())
    ]


def test_a_run_without_a_record_has_no_key_to_register(
    site_client: SiteClient, runs: dict[float, Path]
) -> None:
    plan = prepare(site_client, "track-1", [runs[8]], None)
    assert register_keys(site_client, plan) == []
    assert not TeamKey.objects.exists()


def test_a_run_without_a_token_is_rejected_before_anything_is_sent(
    site_client: SiteClient, base: Path, data: Path, proof: Path, tmp_path: Path
) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["rounds=1"], run_token=None)
    with pytest.raises(ProblemError) as caught:
        prepare(site_client, "track-2", [run.path], proof)
    assert caught.value.problem.code is ErrorCode.RECORD_TOKEN
    assert caught.value.problem.next_step == "Set PFL_SITE and PFL_TOKEN, and train again."
    assert not Submission.objects.exists()
    assert not TeamKey.objects.exists()


def test_a_run_on_other_data_than_the_tracks_is_rejected_before_its_token_is_spent(
    site_client: SiteClient, runs: dict[float, Path], proof: Path
) -> None:
    Track.objects.filter(slug="track-2").update(data_sha256="5" * 64)
    assert rejection(site_client, "track-2", [runs[8]], proof) is ErrorCode.RECORD_DATA
    assert not Submission.objects.exists()


def test_an_interrupted_submission_is_resumed(
    site: LiveSite, site_client: SiteClient, runs: dict[float, Path]
) -> None:
    site.break_down("POST /api/v1/submissions/*/submit")
    with pytest.raises(ProblemError):
        submitted(site_client, "track-1", [runs[8]])
    site.recover()
    (draft,) = site_client.submissions()
    resumed = submitted(site_client, "track-1", [runs[8]])
    assert (resumed.id, resumed.state) == (draft.id, SubmissionState.SUBMITTED)
    assert len(resumed.runs) == 1


def test_only_a_draft_of_the_same_track_and_title_is_resumed(site_client: SiteClient, team: Any) -> None:
    site_client.create_submission("track-1", "Other")
    site_client.create_submission("track-2", "Mine")
    earlier = make_complete_draft(team, title="Mine")
    site_client.submit(earlier.pk)
    assert resumable_draft(site_client, earlier.track.slug, "Mine") is None
    mine = [site_client.create_submission("track-1", "Mine") for _ in range(2)]
    practice = site_client.create_submission("track-1", "Mine", practice=True)
    assert resumable_draft(site_client, "track-1", "Mine", practice=True).id == practice.id
    found = resumable_draft(site_client, "track-1", "Mine")
    assert found is not None
    assert found.id == mine[-1].id


def test_a_draft_is_private_and_anonymous_where_that_is_asked_for_and_stays_so(
    site_client: SiteClient, runs: dict[float, Path], team: Any
) -> None:
    phases = Track.objects.get(slug="track-1").phases
    phases.update(allows_private=True, anonymity="until_named")
    plan = prepare(site_client, "track-1", [runs[8]], None)
    resumed = site_client.create_submission("track-1", "Mine")
    site_client.change_draft(resumed.id, ChangedText(keep_private=True))
    sent = send(site_client, plan, "Mine", "It adds noise.", lambda *_: None, ChangedText(anonymous=True))
    assert (sent.id, sent.published_at, sent.anonymous) == (resumed.id, None, True)


def test_a_team_agrees_with_its_submission_that_the_proof_is_public(
    site_client: SiteClient, runs: dict[float, Path], proof: Path, tokens: None
) -> None:
    plan = prepare(site_client, "track-2", [runs[8]], proof)
    register_keys(site_client, plan)
    sent = send(
        site_client, plan, "Mine", "It adds noise.", lambda *_: None, ChangedText(publishes_proof=True)
    )
    assert (sent.state, sent.publishes_proof) == (SubmissionState.SUBMITTED, True)


def test_progress_ends_at_all_bytes(
    site_client: SiteClient, runs: dict[float, Path], proof: Path, tokens: None
) -> None:
    plan = prepare(site_client, "track-2", [runs[8]], proof)
    register_keys(site_client, plan)
    reported: list[tuple[float, float]] = []
    send(site_client, plan, "Mine", "It adds noise.", lambda _, *step: reported.append(step))
    assert reported[-1] == (plan.size_bytes, plan.size_bytes)
    assert reported == sorted(reported)


def test_a_track_that_requires_description_and_code_says_so_before_anything_is_sent(
    site: LiveSite, site_client: SiteClient, runs: dict[float, Path], proof: Path, tokens: None
) -> None:
    plan = prepare(site_client, "track-2", [runs[8]], proof)
    with pytest.raises(ProblemError) as caught:
        send(site_client, plan, "Mine", "", lambda *_: None)
    assert (caught.value.problem.code, caught.value.problem.where) == (
        ErrorCode.SUBMISSION_INCOMPLETE,
        "--description",
    )
    bare = prepare(site_client, "track-2", [runs[8]], proof, with_code=False)
    with pytest.raises(ProblemError, match="--code-url"):
        send(site_client, bare, "Other", "It adds noise.", lambda *_: None)
    assert site.calls["POST /api/v1/uploads/check"] == 0
    link = ChangedText(code_url="https://code.example/lab/method/commit/3f2a9c1")
    register_keys(site_client, bare)
    sent = send(site_client, bare, "Other", "It adds noise.", lambda *_: None, link)
    assert sent.state == SubmissionState.SUBMITTED


def test_nothing_is_sent_where_something_is_missing(
    site_client: SiteClient, runs: dict[float, Path], proof: Path, tmp_path: Path
) -> None:
    assert rejection(site_client, "track-2", [tmp_path], proof) is ErrorCode.ARTIFACT_MISSING
    assert rejection(site_client, "track-2", [runs[8]]) is ErrorCode.ARTIFACT_MISSING
    assert rejection(site_client, "track-2", [runs[0.9], runs[1]], proof) is ErrorCode.SUBMISSION_BUDGET
    assert rejection(site_client, "track-1", [runs[1], runs[8]]) is ErrorCode.SUBMISSION_BUDGET
    assert rejection(site_client, "track-9", [runs[8]]) is ErrorCode.CONFIGURATION
    Track.objects.filter(slug="track-2").update(submission_license="CC-BY-4.0")
    assert rejection(site_client, "track-2", [runs[8]], proof) is ErrorCode.SUBMISSION_LICENSE
    assert prepare(site_client, "track-2", [runs[8]], None, practice=True).license == ""
    accepted = prepare(site_client, "track-2", [runs[8]], proof, accepted_license="CC-BY-4.0")
    assert accepted.license == "CC-BY-4.0"
    assert not Submission.objects.exists()


def test_watching_reports_each_change_until_the_run_is_scored(
    site_client: SiteClient, runs: dict[float, Path]
) -> None:
    lines, run = watched(
        site_client,
        submitted(site_client, "track-1", [runs[8]]),
        progress(),
        report(Step.VALIDATE),
        report(Step.COMMUNICATION),
        progress(),
        progress(remaining_s=250.0),
        progress(remaining_s=245.0),
        report(Step.SCORING),
    )
    assert run.state is RunState.SCORED
    assert lines == [
        "run: queued, validate, position 1 in the queue",
        "run: running, validate",
        "run: queued, communication, position 1 in the queue",
        "run: queued, scoring, position 1 in the queue",
        "run: running, scoring",
        "run: running, scoring, about 4 min left",
        "run: scored, ANLS 0.5, 6,000 bytes",
    ]


def test_watching_ends_with_the_problems_of_a_run_that_is_rejected(
    site_client: SiteClient, runs: dict[float, Path]
) -> None:
    submission = submitted(site_client, "track-1", [runs[8]])
    # The log is looked into all the same.
    events = [report(Step.VALIDATE, Outcome.REJECTED, problems=[PROBLEM]), report(Step.COMMUNICATION)]
    lines, run = watched(site_client, submission, *events)
    assert (run.state, run.problems) == (RunState.REJECTED, [PROBLEM])
    assert lines[-1] == "run: rejected"


def test_watching_ends_where_the_platform_fails(
    site_client: SiteClient, runs: dict[float, Path], settings: Any
) -> None:
    submission = submitted(site_client, "track-1", [runs[8]])
    fails = [report(Step.VALIDATE, Outcome.FAILED)] * (len(settings.EVALUATION_BACKOFF_SECONDS) + 1)
    lines, run = watched(site_client, submission, *fails)
    assert (run.state, lines[-1]) == (RunState.FAILED, "run: failed")
    assert [problem.code for problem in run.problems] == [ErrorCode.PLATFORM_FAULT]


def test_the_command_says_what_of_the_proof_reviewers_do_not_see(
    site: LiveSite, token: str, runs: dict[float, Path], proof: Path, tokens: None
) -> None:
    proof.write_text("$$\\begin{tikzcd} a \\end{tikzcd}$$")
    command = ["submit", str(runs[8]), "--track", "track-2", "--title", "Mine", "--proof", str(proof)]
    access = {"PFL_SITE": site.url, "PFL_TOKEN": token, "PFL_KEY": ""}
    ended = subprocess.run(
        [*PFL, *command, "--description", "It adds noise."],
        env={**os.environ, **access},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "1 formula not displayed" in ended.stdout


def test_the_command_waits_and_ends_with_the_problems_of_a_rejected_run(
    site: LiveSite, token: str, runs: dict[float, Path]
) -> None:
    command = ["submit", str(runs[8]), "--track", "track-1", "--title", "Mine", "--wait", "--anyway"]
    access = {"PFL_SITE": site.url, "PFL_TOKEN": token}
    with subprocess.Popen(
        [*PFL, *command], env={**os.environ, **access}, stdout=PIPE, stderr=PIPE, text=True
    ) as pfl:
        assert pfl.stdout is not None
        assert "any training record become public" in pfl.stdout.readline()
        assert pfl.stdout.readline().startswith(f"Submitted: {site.url}/")
        assert pfl.stdout.readline() == "Attached settings.yaml (for verification by the organizers)\n"
        report(Step.VALIDATE, Outcome.REJECTED, problems=[PROBLEM])()
        report(Step.COMMUNICATION)()
        printed, complaints = pfl.communicate(timeout=300)
    assert pfl.returncode == 1
    assert "run: rejected" in printed
    assert str(PROBLEM) in complaints


def test_a_failed_submission_says_that_its_draft_is_kept(
    site: LiveSite, token: str, runs: dict[float, Path], proof: Path, tokens: None
) -> None:
    command = ["submit", runs[8], "--track", "track-2", "--title", "Mine", "--proof", proof]
    printed = failing(*command, "--site", site.url, "--token", token)
    assert "E_SUBMISSION_INCOMPLETE" in printed
    assert f"The draft is kept: {site.url}/submissions/{Submission.objects.get().pk}/" in printed
    assert "Attached" not in printed
