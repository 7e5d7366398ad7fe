"""Training runs that are interrupted, at any moment and by anything, and resumed."""

import json
import resource
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.jobs import ArtifactKind, CheckStatus
from evaluator.records.epsilon import releases
from evaluator.records.lines import ResumeLine, TrainableTensor
from starter_kit.federation.rounds import Aggregate, Round
from starter_kit.learning.local_training import Learner
from starter_kit.reporting.metrics import METRICS, SUMMARY, read_metrics, read_summary
from starter_kit.runs import writing
from starter_kit.runs.folder import FILES, RunFolder
from starter_kit.runs.opening import RunPaths, Unfinished, recover
from starter_kit.runs.private_record import PrivateRecordWriter, RecordedRounds, TrainingData, recover_record
from starter_kit.runs.progress import Watcher
from starter_kit.runs.resuming import ResumeFolder
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.pocket_data import make_data
from tests.starter_kit.training_runs import KEY, accounting, trained

SEVERAL = ["rounds=5", "clients_per_round=2"]
THREE = ["rounds=3"]
UNFINISHED = "run.unfinished"


@pytest.fixture(scope="module")
def cut_off(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an unfinished private run that broke off in round 2 of 3. Not to be changed."""
    folder = tmp_path_factory.mktemp("cut_off")
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, folder / "run", THREE, watcher=CutOff(5))
    return folder / UNFINISHED


@pytest.fixture
def unfinished(cut_off: Path, tmp_path: Path) -> Path:
    """A copy of that folder, to be resumed as `run`."""
    return shutil.copytree(cut_off, tmp_path / UNFINISHED)


def test_a_run_that_is_interrupted_leaves_no_folder_by_the_proper_name(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise RuntimeError("the power went")

    with monkeypatch.context() as patched:
        patched.setattr(Learner, "train", interrupt)
        with pytest.raises(RuntimeError, match="power"):
            trained("fedavg", base, data, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run.unfinished"]
    assert trained("fedavg", base, data, tmp_path / "run").files()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_that_was_interrupted_and_resumed_ends_as_if_it_had_not_been(
    base: Path, data: Path, tmp_path: Path
) -> None:
    whole = trained("fedavg", base, data, tmp_path / "whole", SEVERAL)
    for replies in (5, 2):  # in the middle of round 3, then after round 3's last reply
        with pytest.raises(CutError):
            trained(
                "fedavg", base, data, tmp_path / "run", SEVERAL, watcher=CutOff(replies), resume=replies == 2
            )
    resumed = trained("fedavg", base, data, tmp_path / "run", SEVERAL, resume=True)
    for kind in (ArtifactKind.CHECKPOINT, ArtifactKind.COMMUNICATION_LOG):
        assert resumed.file(kind).read_bytes() == whole.file(kind).read_bytes()
    assert read_summary(resumed.path / SUMMARY).resumed == 2
    assert len(read_metrics(resumed.path / METRICS)) == 5


class Failing(Watcher):
    def begins(self, first: int, rounds: int, sent_bytes: int = 0) -> None:
        raise CutError


@pytest.mark.parametrize(
    ("placement", "attempts_without_a_round"), [("server", 2), ("client_full", 2), ("client_share", 0)]
)
def test_the_record_of_a_resumed_run_shows_the_interruption_and_accounts_for_what_was_seen(
    base: Path, data: Path, tmp_path: Path, placement: str, attempts_without_a_round: int
) -> None:
    changes = [f"placement={placement}", "rounds=3", "target_epsilon=null", "noise_multiplier=6"]
    if placement == "client_share":
        changes.append("secure_aggregation={}")
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    for _ in range(attempts_without_a_round):
        with pytest.raises(CutError):
            trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=Failing(), resume=True)
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes, resume=True)
    record = run.record(max_rounds=3)
    spent = read_summary(run.path / SUMMARY).epsilon
    assert spent is not None
    assert record.resumes == [
        ResumeLine(round=2, begun=begun, claimed_epsilon=spent)
        for begun in (True, *[False] * attempts_without_a_round)
    ]
    assert len(record.rounds) == 3
    whole = replace(record, resumes=[])
    seen = 3 if placement == "server" else 4
    (event,) = releases(record, SamplingRule.TWO_STAGE)
    assert event.rounds == seen
    assert releases(whole, SamplingRule.TWO_STAGE)[0].rounds == 3
    result = accounting(run.files(), base)
    (rounds,) = (check for check in result.checks if check.id == "record.rounds")
    assert rounds.status is CheckStatus.FLAGGED
    assert rounds.where == "resumed at round 2"
    assert result.epsilon == pytest.approx(spent, rel=1e-3)
    assert (spent > record.run.claimed_epsilon) == (placement != "server")


def test_every_provider_takes_part_once_in_a_cycle_that_was_interrupted(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=4"]
    with pytest.raises(CutError):
        trained("random-allocation", base, data, tmp_path / "run", changes, watcher=CutOff(8))
    run = trained("random-allocation", base, data, tmp_path / "run", changes, resume=True)
    assert [line.round for line in run.record(max_rounds=4).resumes] == [3]
    status = {check.id: check.status for check in accounting(run.files(), base).checks}
    assert status["record.providers"] is CheckStatus.PASSED


def test_an_interrupted_round_that_was_seen_leaves_no_budget_for_all_that_were_planned(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["placement=client_full", "rounds=3"]
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, tmp_path / "run", changes, resume=True)
    assert caught.value.problem.code is ErrorCode.PRIVACY_BUDGET


def test_a_run_is_resumed_with_the_settings_that_it_began_with(
    base: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(ProblemError) as nothing:
        trained("fedavg", base, data, tmp_path / "run", SEVERAL, resume=True)
    assert "unfinished run" in nothing.value.problem.expected
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", SEVERAL, watcher=CutOff(3))
    with pytest.raises(ProblemError) as others:
        trained("fedavg", base, data, tmp_path / "run", [*SEVERAL, "seed=1"], resume=True)
    assert "settings.yaml" in others.value.problem.where
    assert trained("fedavg", base, data, tmp_path / "run", SEVERAL, resume=True).files()


def test_a_private_run_that_is_interrupted_while_its_summary_is_written_can_be_resumed(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise CutError

    with monkeypatch.context() as patched:
        patched.setattr(writing, "write_summary", interrupt)
        with pytest.raises(CutError):
            trained("fl-provider-dp", base, data, tmp_path / "run")
    run = trained("fl-provider-dp", base, data, tmp_path / "run", resume=True)
    assert accounting(run.files(), base).within_budget
    assert [line.begun for line in run.record(max_rounds=3).resumes] == [False]


def test_a_complete_run_that_could_not_be_given_its_name_is_not_trained_again(
    base: Path, data: Path, tmp_path: Path
) -> None:
    out, unfinished = tmp_path / "run", tmp_path / UNFINISHED

    class InTheWay(Watcher):
        def round_done(self, metrics: object) -> None:
            (out / "notes").mkdir(parents=True, exist_ok=True)

    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, out, watcher=InTheWay())
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    record = (unfinished / FILES[ArtifactKind.TRAINING_RECORD]).read_bytes()
    # A kill while what only an unfinished run has was being deleted.
    for name in ("vectors", "resumed"):
        (unfinished / name).mkdir(exist_ok=True)
        (unfinished / name / "file").touch()
    shutil.rmtree(out)
    run = trained("fl-provider-dp", base, data, out, resume=True)
    assert run.file(ArtifactKind.TRAINING_RECORD).read_bytes() == record
    assert accounting(run.files(), base).within_budget
    assert not {"lock", "resumed"} & {path.name for path in out.iterdir()}
    assert not (out / "vectors" / "sampled.jsonl").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("resume/state.safetensors", b""),
        ("resume/state.safetensors", b"\x02\0\0\0\0\0\0\0{}"),
        ("resume/begun", b""),
        ("resume/inputs", None),
        ("vectors/sampled.jsonl", None),
        ("vectors/sampled.jsonl", b""),
        ("vectors/update-1.f32", None),
        ("vectors/update-1.f32", b"1234"),
        ("vectors/weights-1.f32", None),
        ("training_record.jsonl", b""),
        ("training_record.jsonl", None),
        ("communication_log.csv", b""),
        ("metrics.jsonl", b""),
        ("settings.yaml", b"\xff"),
    ],
)
def test_a_run_that_lost_a_file_is_not_resumed(
    base: Path, data: Path, tmp_path: Path, unfinished: Path, name: str, content: bytes | None
) -> None:
    (unfinished / name).unlink()
    if content is not None:
        (unfinished / name).write_bytes(content)
    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, tmp_path / "run", THREE, resume=True)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER


def test_a_folder_is_written_by_one_process_at_a_time(base: Path, data: Path, tmp_path: Path) -> None:
    rejected: list[Problem] = []

    class Another(Watcher):
        def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
            if rejected:
                return
            for resume in (False, True):
                with pytest.raises(ProblemError) as caught:
                    trained("fedavg", base, data, tmp_path / "run", resume=resume)
                rejected.append(caught.value.problem)

    assert trained("fedavg", base, data, tmp_path / "run", watcher=Another()).files()
    assert len(rejected) == 2
    assert {(problem.code, problem.found) for problem in rejected} == {
        (ErrorCode.RUN_FOLDER, "a run that another process is training")
    }


def test_a_run_is_resumed_with_the_data_and_base_weights_that_it_began_with(
    base: Path, data: Path, tmp_path: Path, unfinished: Path
) -> None:
    fewer = make_data(tmp_path / "fewer")
    info = json.loads((fewer / "dataset.json").read_text())
    info["clients"]["2"].remove("Ghost")
    (fewer / "dataset.json").write_text(json.dumps(info))
    other_base = shutil.copytree(base, tmp_path / "other")
    weights = bytearray((other_base / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other_base / "model.safetensors").write_bytes(weights)
    for its_base, its_data in ((base, fewer), (other_base, data)):
        with pytest.raises(ProblemError) as others:
            trained("fl-provider-dp", its_base, its_data, tmp_path / "run", THREE, resume=True)
        assert others.value.problem.expected == "the data and base weights of the unfinished run"
    assert trained("fl-provider-dp", base, data, tmp_path / "run", THREE, resume=True).files()


def test_a_private_run_of_which_no_round_had_begun_is_started_again_for_its_token_and_not_resumed(
    base: Path, data: Path, tmp_path: Path
) -> None:
    class AtThePages(Watcher):
        def pages(self, done: int, total: int) -> None:
            raise CutError

    for config in ("fedavg", "fl-provider-dp"):
        with pytest.raises(CutError):
            trained(config, base, data, tmp_path / config, watcher=AtThePages())
    assert trained("fedavg", base, data, tmp_path / "fedavg", resume=True).files()
    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, tmp_path / "fl-provider-dp", resume=True)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert "run token" in caught.value.problem.found
    assert trained("fl-provider-dp", base, data, tmp_path / "fl-provider-dp").files()


@contextmanager
def files_up_to(size_bytes: int) -> Iterator[None]:
    """Files can't grow beyond that, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("at", "size_bytes"), [(1, 64), (1, 2000), (2, 64), (2, 40_000)])
def test_a_full_disk_ends_a_run_that_resumes_when_there_is_room(
    base: Path, data: Path, tmp_path: Path, at: int, size_bytes: int
) -> None:
    with ExitStack() as stack:

        class Filling(Watcher):
            left = 3 * at

            def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
                self.left -= 1
                if self.left == 0:
                    stack.enter_context(files_up_to(size_bytes))

        with pytest.raises(ProblemError) as caught:
            trained("fl-provider-dp", base, data, tmp_path / "run", watcher=Filling())
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    run = trained("fl-provider-dp", base, data, tmp_path / "run", resume=True)
    assert accounting(run.files(), base).within_budget
    assert len(read_metrics(run.path / METRICS)) == 2


def test_a_round_that_the_record_has_no_room_for_is_not_recorded_in_part(
    private: RunFolder, tmp_path: Path
) -> None:
    line = private.record(max_rounds=10).run
    few = line.model_copy(update={"trainable": [TrainableTensor(name="few", shape=[8])]})
    writer = PrivateRecordWriter(
        tmp_path, RecordedRounds(few), KEY, TrainingData({0: 1}, "d" * 64), torch.zeros(8)
    )
    size_bytes = (tmp_path / FILES[ArtifactKind.TRAINING_RECORD]).stat().st_size
    finished = Round(1, [0], [], torch.zeros(8), Aggregate(torch.ones(8), torch.ones(8)), {0: 1})
    with files_up_to(size_bytes + 50), pytest.raises(OSError, match="too large"):
        writer.round(finished)


def test_recovering_a_run_changes_nothing_in_its_folder(unfinished: Path, tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "run")
    # What a kill in the middle of a line leaves.
    with paths.log.open("a") as log:
        log.write("2,0")
    before = {path: path.read_bytes() for path in paths.unfinished.rglob("*") if path.is_file()}
    settings, inputs = paths.settings.read_text(), ResumeFolder(paths.unfinished).inputs
    found = [recover(paths, settings, inputs) for _ in range(2)]
    record = recover_record(paths.unfinished, 1)
    assert {path: path.read_bytes() for path in paths.unfinished.rglob("*") if path.is_file()} == before
    for run in found:
        assert isinstance(run, Unfinished)
        assert run.state is not None
        assert (run.state.round, run.state.breaks, run.state.interrupted_rounds) == (1, 1, 1)
        assert [line.round for line in run.metrics] == [1]
        assert run.log.endswith("\n")
        assert {line.split(",")[0] for line in run.log.splitlines()[1:]} == {"1"}
    assert ([line.round for line in record.lines], len(record.sampled)) == ([1], 1)


def test_a_run_can_be_resumed_with_more_rounds_and_ends_as_if_it_had_had_them_before(
    base: Path, data: Path, tmp_path: Path
) -> None:
    whole = trained("fedavg", base, data, tmp_path / "whole", THREE)
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", ["rounds=2"], watcher=CutOff(3))
    resumed = trained("fedavg", base, data, tmp_path / "run", THREE, resume=True)
    checkpoint = ArtifactKind.CHECKPOINT
    assert resumed.files()[checkpoint].read_bytes() == whole.files()[checkpoint].read_bytes()
    settings = [(tmp_path / run / "settings.yaml").read_text() for run in ("run", "whole")]
    assert settings[0] == settings[1]


def test_a_run_is_not_resumed_with_fewer_rounds_than_are_finished(
    base: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", THREE, watcher=CutOff(5))
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run", ["rounds=1"], resume=True)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert (caught.value.problem.expected, caught.value.problem.found) == (
        "at least 2, which are finished",
        "1",
    )
    resumed = trained("fedavg", base, data, tmp_path / "run", ["rounds=2"], resume=True)
    assert len(read_metrics(resumed.path / METRICS)) == 2


def test_a_private_run_keeps_its_rounds_and_what_differs_is_named(
    base: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", ["rounds=2"], watcher=CutOff(4))
    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, tmp_path / "run", THREE, resume=True)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert "in rounds" in str(caught.value.problem.expected)
