"""The transcript that a training writes: with it, the evaluator counts the run's bytes."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.jobs import ArtifactKind, CommunicationResult, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step, with_decoded
from evaluator.records.server_steps import SumStep
from starter_kit.methods import fedavg
from starter_kit.runs import opened_messages, transcript
from starter_kit.runs.folder import OPENED_MESSAGES, RunFolder
from starter_kit.runs.kept_models import CHECKPOINTS
from starter_kit.runs.opened_messages import open_messages
from starter_kit.runs.opened_round import rounds_in_words
from starter_kit.runs.transcript import INDEX, MESSAGES
from tests.services.kept_sandbox import SANDBOX
from tests.starter_kit.commands.pfl import passing
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.training_runs import trained

RULES = TrackRules(reference="local", test_set="local", clients=3, max_rounds=10)
ADAM = "server_optimizer={type: fedadam, learning_rate: 0.001}"


def counted(run: RunFolder, base: Path) -> CommunicationResult:
    """Return what a worker finds, which runs no codec of others unconfined."""
    inputs = StepInputs(run.files(), RULES, reference=base)
    with TemporaryDirectory() as decoded:
        inputs = with_decoded(inputs, SANDBOX, Path(decoded))
        result = run_step(Step.COMMUNICATION, inputs, lambda _done, _total: None).result
    assert isinstance(result, CommunicationResult)
    return result


def rejection(run: RunFolder, base: Path) -> Problem:
    with pytest.raises(ProblemError) as caught:
        counted(run, base)
    return caught.value.problem


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ("fedavg", []),
        ("fedavg", ["server_optimizer=fedavgm", "clients_per_round=3"]),
        ("fedavg", [ADAM, "codec=nf4"]),
        ("lora-nf4", ["clients_per_round=2"]),
        ("lora", ["lora.targets=['language_backbone.*.q']"]),
        ("fedshampoo", []),
        ("fedavg", ["codec=coded-nf4", "local.max_steps=1"]),
        ("fedkseed", ["codec.seeds=16", "local.max_steps=2"]),
        ("fedavg", ["codec={type: topk, fraction: 0.05}", "clients_per_round=2"]),
    ],
)
def test_the_bytes_of_a_run_without_further_settings_are_counted(
    base: Path, data: Path, tmp_path: Path, config: str, changes: list[str]
) -> None:
    result = counted(trained(config, base, data, tmp_path / "run", changes), base)
    assert (result.counting, result.rounds_folded) == ("counted", 2)


def test_a_model_that_goes_to_several_clients_is_stored_once(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["clients_per_round=3"])
    result = counted(run, base)
    assert result.bytes_sent is not None
    message = result.bytes_sent // 12
    assert (run.path / MESSAGES).stat().st_size == 8 * message


def test_a_resumed_run_has_the_transcript_of_one_that_was_not_interrupted(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["rounds=4", "clients_per_round=2", "server_optimizer=fedavgm", "checkpoints.every=2"]
    whole = trained("fedavg", base, data, tmp_path / "whole", changes)
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", changes, watcher=CutOff(6))
    run = trained("fedavg", base, data, tmp_path / "run", changes, resume=True)
    for name in (INDEX, MESSAGES):
        assert (run.path / name).read_bytes() == (whole.path / name).read_bytes()
    for name, rounds in (("round-2", 2), ("round-4", 4)):
        kept = counted(RunFolder(run.path / CHECKPOINTS / name), base)
        assert (kept.counting, kept.rounds_folded) == ("counted", rounds)


def test_a_run_that_has_lost_its_transcript_goes_on_and_says_that_its_bytes_are_declared(
    base: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", ["clients_per_round=2"], watcher=CutOff(3))
    (tmp_path / "run.unfinished" / MESSAGES).write_bytes(b"")
    run = trained("fedavg", base, data, tmp_path / "run", ["clients_per_round=2"], resume=True)
    assert "will be declared, not counted: the transcript of its first rounds" in capfd.readouterr().err
    assert counted(run, base).counting == "declared"


SECURE = ["secure_aggregation.tolerated_losses=0", "secure_aggregation.bound=1.0", "clients_per_round=3"]


@pytest.mark.parametrize(
    ("config", "changes", "reason"),
    [("fl-provider-dp", [], ""), ("fedavg", SECURE, "secure aggregation hides single updates")],
    ids=["private", "secure aggregation"],
)
def test_updates_that_nobody_may_see_are_in_no_transcript(
    base: Path,
    data: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    config: str,
    changes: list[str],
    reason: str,
) -> None:
    run = trained(config, base, data, tmp_path / "run", changes)
    assert not {ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES} & run.files().keys()
    assert counted(run, base).counting == "declared"
    said = capfd.readouterr().err
    assert reason in said
    assert ("declared" in said) == bool(reason)


def test_a_server_that_does_not_do_what_its_plan_says_writes_no_transcript(
    base: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Otherwise the evaluator would reject the run."""
    plan = fedavg.Settings.plan
    monkeypatch.setattr(
        fedavg.Settings,
        "plan",
        lambda self, clients: replace(plan(self, clients), step_of_mean=SumStep(learning_rate=0.5)),
    )
    run = trained("fedavg", base, data, tmp_path / "run")
    assert ArtifactKind.TRANSCRIPT not in run.files()
    assert "isn't the server's step" in capfd.readouterr().err


def test_a_run_whose_index_nobody_could_read_stops_writing_and_goes_on(
    base: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(transcript, "MAX_BYTES", 5000)
    run = trained("fedavg", base, data, tmp_path / "run")
    assert ArtifactKind.TRANSCRIPT not in run.files()
    assert capfd.readouterr().err.count("more than 5,000 bytes") == 1


def test_a_large_run_says_what_its_messages_will_take_and_keeps_none_of_earlier_models(
    base: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(transcript, "MAX_WHOLE_BYTES", 5000)
    run = trained("fedavg", base, data, tmp_path / "run", ["checkpoints.every=1"])
    said = f"about {(run.path / MESSAGES).stat().st_size / 1e9:,.1f} GB after 2 rounds"
    assert capfd.readouterr().err.count(said) == 1
    assert ArtifactKind.MESSAGES not in RunFolder(run.path / CHECKPOINTS / "round-1").files()
    assert counted(run, base).counting == "counted"


def test_a_run_whose_messages_would_fill_the_disk_stops_writing_and_goes_on(
    base: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(transcript, "MAX_WHOLE_BYTES", 5000)
    monkeypatch.setattr(transcript, "RESERVED_VECTORS", 2**60)
    run = trained("fedavg", base, data, tmp_path / "run")
    assert not {ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES} & run.files().keys()
    assert capfd.readouterr().err.count("the disk has room for") == 1


def drawn(run: RunFolder, base: Path, challenge: str) -> CommunicationResult:
    """Return what a worker finds of the opened rounds alone."""
    files = {**run.files(), ArtifactKind.MESSAGES: run.path / OPENED_MESSAGES}
    inputs = StepInputs(files, RULES, reference=base, challenge=challenge)
    with TemporaryDirectory() as decoded:
        result = run_step(
            Step.COMMUNICATION, with_decoded(inputs, SANDBOX, Path(decoded)), lambda _done, _total: None
        ).result
    assert isinstance(result, CommunicationResult)
    return result


@pytest.mark.parametrize(
    "changes",
    [["server_optimizer=fedavgm", "codec=nf4"], ["codec={type: topk, fraction: 0.05}"]],
    ids=["momentum", "a codec plug-in"],
)
def test_the_drawn_rounds_of_a_run_are_opened_from_its_messages_and_its_start(
    base: Path, data: Path, tmp_path: Path, changes: list[str]
) -> None:
    changes = ["rounds=6", "clients_per_round=2", *changes]
    with pytest.raises(CutError):
        trained("fedavg", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    run = trained("fedavg", base, data, tmp_path / "run", changes, resume=True)
    # There is room for all of them.
    numbers, challenge = [1, 2, 3, 4, 5, 6], "00" * 32
    assert rounds_in_words(numbers) in passing("replay", "open", run.path, "--challenge", challenge)
    result = drawn(run, base, challenge)
    assert (result.counting, result.rounds_folded, result.rounds) == ("counted", 6, 6)
    # What was opened answers the challenge, also when the run has no messages any more.
    (run.path / MESSAGES).unlink()
    assert open_messages(run.path, challenge) == numbers
    (run.path / OPENED_MESSAGES).unlink()
    with pytest.raises(ProblemError) as caught:
        open_messages(run.path, challenge)
    assert caught.value.problem.code is ErrorCode.ARTIFACT_MISSING


def test_a_large_run_of_one_round_opens_it(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=1"])
    assert open_messages(run.path, "00" * 32) == [1]
    result = drawn(run, base, "00" * 32)
    assert (result.counting, result.rounds_folded, result.rounds) == ("counted", 1, 1)


def test_messages_that_are_not_those_of_the_index_are_not_opened(
    base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=6"])
    content = (run.path / MESSAGES).read_bytes()
    (run.path / MESSAGES).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(ProblemError) as caught:
        open_messages(run.path, "00" * 32)
    assert caught.value.problem.code is ErrorCode.TRANSCRIPT_MESSAGE
    assert not (run.path / OPENED_MESSAGES).exists()


def test_an_opening_that_is_too_large_to_attach_is_not_written(
    base: Path,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=6"])
    monkeypatch.setattr(opened_messages, "MAX_MESSAGES_BYTES", 5000)
    assert open_messages(run.path, "00" * 32) == []
    assert "will be declared, not counted: the messages of rounds" in capfd.readouterr().err
    assert not (run.path / OPENED_MESSAGES).exists()


def test_adapters_start_from_the_seed_alone(base: Path, data: Path, tmp_path: Path) -> None:
    """Whoever knows the index computes their first values, with any version of torch."""
    runs = [
        trained("lora-nf4", base, data, tmp_path / f"run{seed}", [f"seed={seed}", "rounds=1"])
        for seed in (1, 2)
    ]
    for run, seed in zip(runs, (1, 2), strict=True):
        assert f'"start":"seed {seed}"' in (run.path / INDEX).read_text()
        assert counted(run, base).counting == "counted"
