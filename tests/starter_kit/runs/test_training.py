"""Whole training runs on pocket data: what lies in the run folder is what the evaluator accepts."""

import json
import re
import resource
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import torch

from evaluator.checkpoints.contents import sha256_of
from evaluator.checkpoints.weight_changes import weight_vector_sha256
from evaluator.contracts import AccountingResult, ArtifactKind, CheckStatus, PrivacyRules, Step, TrackRules
from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.scenario import SamplingRule
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.annex import read_annex
from evaluator.records.certificate import BLOCK
from evaluator.records.epsilon import releases
from evaluator.records.lines import GlobalPoisson, ResumeLine, TrainableTensor
from evaluator.records.signing import public_key_of
from starter_kit.evaluating import evaluate
from starter_kit.federation.rounds import Aggregate, Round
from starter_kit.learning.local_training import Learner
from starter_kit.reporting.metrics import METRICS, SUMMARY, read_metrics, read_summary
from starter_kit.runs import recording
from starter_kit.runs.folder import FILES, RunFolder, budget_of
from starter_kit.runs.private_recording import PrivateRecorder
from starter_kit.runs.progress import Watcher
from starter_kit.settings.configuration import config_names, load_settings
from tests.starter_kit.cut_off import CutError, CutOff
from tests.starter_kit.pocket_data import PROVIDERS, make_data
from tests.starter_kit.training_runs import FEW_STEPS, KEY, RUN_TOKEN, trained

RULES = TrackRules(
    reference="local", test_set="local", clients=3, privacy=PrivacyRules(epsilon=8, delta=1e-5)
)
ALL_BUT_SCORING = [Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING]


def accounting(files: Mapping[ArtifactKind, Path], base: Path, rules: TrackRules = RULES) -> AccountingResult:
    result = run_step(
        Step.ACCOUNTING, StepInputs(files, rules, reference=base), lambda done, total: None
    ).result
    assert isinstance(result, AccountingResult)
    return result


@pytest.fixture(scope="module")
def private(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A private run with a budget of 4. Not to be changed."""
    out = tmp_path_factory.mktemp("private") / "run"
    return trained("fl-provider-dp", base, data, out, ["target_epsilon=4", "provider_rate=0.5"])


@pytest.mark.parametrize(
    ("config", "changes", "steps"),
    [
        ("fedavg", [], ALL_BUT_SCORING[:2]),
        ("fl-provider-dp", [], ALL_BUT_SCORING),
        ("fl-provider-dp", ["placement=client_full"], ALL_BUT_SCORING),
        ("fl-provider-dp", ["client_rate=0.5", "provider_rate=0.5"], ALL_BUT_SCORING),
        ("fl-provider-dp", ["client_rate=1.0e-6", "provider_rate=0.5"], ALL_BUT_SCORING),
        (
            "fl-provider-dp",
            ["client_rate=1.0e-6", "provider_rate=0.5", "placement=client_full"],
            ALL_BUT_SCORING,
        ),
        (
            "fl-provider-dp",
            ["provider_rate=null", "clients_per_round=2", "providers_per_client=1"],
            ALL_BUT_SCORING,
        ),
        ("secure-aggregation", ["rounds=3"], ALL_BUT_SCORING),
        (
            "secure-aggregation",
            ["provider_rate=null", "clients_per_round=2", "providers_per_client=1"],
            ALL_BUT_SCORING,
        ),
        ("dp-lora", ["rounds=3"], ALL_BUT_SCORING),
        ("lora", [], ALL_BUT_SCORING[:2]),
        ("lora-nf4", [], ALL_BUT_SCORING[:2]),
        ("centralized", ["rounds=1"], ALL_BUT_SCORING[:2]),
        ("fedshampoo", [], ALL_BUT_SCORING[:2]),
        # Clients keep an optimizer's statistics as well as their secrets of the round.
        ("fedshampoo", ["clients_per_round=3", "secure_aggregation={bound: 1.0}"], ALL_BUT_SCORING[:2]),
        ("dp-clgecl", [], ALL_BUT_SCORING),
        ("dp-clgecl-momentum", [], ALL_BUT_SCORING),
        ("client-dp", ["delta=1.0e-5"], ALL_BUT_SCORING[:2]),
        ("laplace-fedavg", [], ALL_BUT_SCORING[:2]),
        ("laplace-iadmm", [], ALL_BUT_SCORING[:2]),
        ("fl-provider-dp", ["client_rate=0.5", "placement=client_full", "rounds=4"], ALL_BUT_SCORING),
    ],
)
def test_the_evaluator_accepts_what_a_baseline_leaves(
    config: str, changes: list[str], steps: list[Step], base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained(config, base, data, tmp_path / "run", changes)
    inputs = StepInputs(run.files(), RULES, reference=base)
    for step in steps:
        result = run_step(step, inputs, lambda done, total: None).result
        if isinstance(result, AccountingResult):
            wrong = {check.id: check for check in result.checks if check.status is not CheckStatus.PASSED}
            assert all(check.status is CheckStatus.NOT_APPLICABLE for check in wrong.values()), wrong
            assert result.within_budget
            assert result.epsilon == pytest.approx(result.epsilon_claimed, rel=1e-3)


def test_the_record_tells_what_was_done(private: RunFolder) -> None:
    record = private.record(max_rounds=10)
    assert len(record.rounds) == record.end.rounds == 2
    assert 3.9 < record.run.claimed_epsilon <= 4
    assert record.run.sampling == GlobalPoisson(provider_rate=0.5)
    assert record.run.normalizer == 7 * 0.5  # the six providers and Ghost
    assert record.run.run_token == RUN_TOKEN
    assert record.end.public_key == public_key_of(KEY)
    assert record.end.checkpoint_sha256 == sha256_of(private.file(ArtifactKind.CHECKPOINT))
    assert record.end.annex_sha256 == sha256_of(private.file(ArtifactKind.TRAINING_ANNEX))
    assert {line.bytes_down for line in record.rounds} == {3 * 4 * record.run.numel}
    assert budget_of(record, [1, 4, 8]) == 4


def test_the_rounds_lead_from_the_base_weights_to_the_checkpoint(private: RunFolder, base: Path) -> None:
    record = private.record(max_rounds=10)
    first, second = record.rounds
    checkpoint = private.file(ArtifactKind.CHECKPOINT)
    assert first.model_in_sha256 == weight_vector_sha256(base / "model.safetensors", record.run.shapes)
    assert first.model_out_sha256 == second.model_in_sha256
    assert second.model_out_sha256 == weight_vector_sha256(checkpoint, record.run.shapes)


def test_the_recorded_step_leads_from_one_model_to_the_next(base: Path, data: Path, tmp_path: Path) -> None:
    changes = ["rounds=1", "max_weight_noise=0.01", "server_learning_rate=6"]
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes)
    line = run.record(max_rounds=1).run
    assert line.server.learning_rate < 6
    annex = read_annex(run.file(ArtifactKind.TRAINING_ANNEX), max_rounds=1, clients=3)
    assert len(annex.openings) > 1
    (tensor,) = line.trainable
    before = read_safetensors(base / "model.safetensors")[tensor.name].flatten()
    after = read_safetensors(run.file(ArtifactKind.CHECKPOINT))[tensor.name].flatten()
    for (_, block), opening in annex.openings.items():
        where = slice(block * BLOCK, (block + 1) * BLOCK)
        step = torch.from_numpy(opening.values) * (line.server.learning_rate / line.normalizer)
        assert torch.allclose(after[where], before[where] + step, atol=1e-6)


def test_the_annex_tells_the_organizers_how_many_took_part(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["client_rate=0.5", "rounds=8"])
    record = run.record(max_rounds=8)
    annex = read_annex(run.file(ArtifactKind.TRAINING_ANNEX), max_rounds=8, clients=3)
    assert annex.run_token == record.run.run_token
    assert annex.providers_per_client == {0: 2, 1: 2, 2: 3}
    assert [len(sampled) for sampled in annex.sampled] == [line.clients for line in record.rounds]
    for sampled in annex.sampled:  # at a provider rate of 1, all of a client's providers
        assert sampled == {client: annex.providers_per_client[client] for client in sampled}


def test_two_stages_cost_more_noise_unless_the_product_is_asked_for(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["client_rate=0.5", "provider_rate=0.5", "target_epsilon=1"]
    both = {
        rule: trained("fl-provider-dp", base, data, tmp_path / rule, [*changes, f"sampling_rule={rule}"])
        for rule in SamplingRule
    }
    sigma = {rule: run.record(max_rounds=2).run.noise.multiplier for rule, run in both.items()}
    assert sigma[SamplingRule.TWO_STAGE] > 1.2 * sigma[SamplingRule.PRODUCT]
    by_product = TrackRules(
        **{
            **RULES.model_dump(),
            "privacy": PrivacyRules(epsilon=8, delta=1e-5, sampling_rule=SamplingRule.PRODUCT),
        }
    )
    assert accounting(both[SamplingRule.PRODUCT].files(), base, by_product).within_budget
    with pytest.raises(ProblemError) as caught:
        accounting(both[SamplingRule.PRODUCT].files(), base)
    assert caught.value.problem.code is ErrorCode.RECORD_CLAIM


@pytest.mark.parametrize("settings", [["noise_multiplier=0.01"], ["noise_multiplier=1", "delta=1.0e-30"]])
def test_noise_that_bounds_nothing_is_rejected_before_training(
    base: Path, data: Path, tmp_path: Path, settings: list[str]
) -> None:
    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, tmp_path / "run", ["target_epsilon=null", *settings])
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "change"),
    [
        ("fl-provider-dp", "provider_rate=1.0e-13"),
        ("fl-provider-dp", "noise_multiplier=1.0e+13"),
        ("fl-provider-dp", "server_learning_rate=1.0e-13"),
        ("fl-provider-dp", "max_weight_noise=1.0e-20"),
        ("fl-provider-dp", "clip_norm=1.0e-13"),
        ("fl-provider-dp", "target_epsilon=1.0e-6"),
        ("fl-provider-dp", "delta=1.0e-300"),
        ("laplace-fedavg", "epsilon_per_round=1.0e+300"),
        ("fedavg", "secure_aggregation={bound: 1.0e-40}"),
        ("fedavg", "secure_aggregation={bound: 1.0e+39}"),
    ],
)
def test_numbers_that_nothing_can_be_computed_or_recorded_with_are_rejected(
    base: Path, data: Path, tmp_path: Path, config: str, change: str
) -> None:
    with pytest.raises(ProblemError) as caught:
        trained(config, base, data, tmp_path / "run", [change])
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert "http" not in caught.value.problem.found


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ArtifactKind.CHECKPOINT, ErrorCode.RECORD_CHECKPOINT),
        (ArtifactKind.TRAINING_RECORD, ErrorCode.RECORD_CHAIN),
        (ArtifactKind.TRAINING_ANNEX, ErrorCode.RECORD_ANNEX),
        (ArtifactKind.COMMUNICATION_LOG, ErrorCode.RECORD_BYTES),
    ],
)
def test_what_was_changed_after_training_is_rejected(
    private: RunFolder, base: Path, tmp_path: Path, kind: ArtifactKind, code: ErrorCode
) -> None:
    original = private.file(kind).read_bytes()
    changed = tmp_path / private.file(kind).name
    if kind is ArtifactKind.TRAINING_RECORD:
        changed.write_bytes(original.replace(b'"clip_norm":1', b'"clip_norm":2', 1))
    elif kind is ArtifactKind.COMMUNICATION_LOG:
        changed.write_bytes(original.rstrip()[:-1] + b"\n")  # the last message lost a digit
    else:
        changed.write_bytes(original[:-20] + bytes([original[-20] ^ 1]) + original[-19:])
    with pytest.raises(ProblemError) as caught:
        accounting({**private.files(), kind: changed}, base)
    assert code in {problem.code for problem in caught.value.problems}


def test_files_of_two_runs_do_not_go_together(
    private: RunFolder, base: Path, data: Path, tmp_path: Path
) -> None:
    other = trained("fl-provider-dp", base, data, tmp_path / "run", ["target_epsilon=4", "provider_rate=0.5"])
    for kind in (ArtifactKind.CHECKPOINT, ArtifactKind.TRAINING_RECORD, ArtifactKind.TRAINING_ANNEX):
        with pytest.raises(ProblemError):
            accounting({**private.files(), kind: other.file(kind)}, base)


def test_a_run_without_a_token_is_accounted_all_the_same(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", run_token=None)
    assert accounting(run.files(), base).run_token is None


def test_only_the_chosen_tensors_change(base: Path, data: Path, tmp_path: Path) -> None:
    pattern = "language_backbone.decoder.*.wo.weight"
    run = trained("fl-provider-dp", base, data, tmp_path / "run", [f"trainable=['{pattern}']"])
    before = read_safetensors(base / "model.safetensors")
    after = read_safetensors(run.file(ArtifactKind.CHECKPOINT))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {
        f"language_backbone.decoder.block.{n}.layer.2.DenseReluDense.wo.weight" for n in (0, 1)
    }


def test_no_rounds_give_the_base_weights_and_an_empty_log(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=0"])
    before = read_safetensors(base / "model.safetensors")
    after = read_safetensors(run.file(ArtifactKind.CHECKPOINT))
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert len(run.file(ArtifactKind.COMMUNICATION_LOG).read_text().splitlines()) == 1
    assert ArtifactKind.TRAINING_RECORD not in run.files()


def test_settings_are_kept_so_that_the_run_can_be_repeated(base: Path, data: Path, tmp_path: Path) -> None:
    trained("fl-provider-dp", base, data, tmp_path / "run", ["target_epsilon=4"])
    again = load_settings(str(tmp_path / "run" / "settings.yaml"))
    assert again == load_settings("fl-provider-dp", [*FEW_STEPS, "target_epsilon=4"])


def test_nothing_public_tells_about_single_providers(
    base: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["provider_rate=0.5", "rounds=6"])
    metrics = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [set(line) for line in metrics] == [{"round", "clients", "bytes_down", "bytes_up", "epsilon"}] * 6
    assert len({(line["clients"], line["bytes_down"], line["bytes_up"]) for line in metrics}) == 1
    assert [line["epsilon"] for line in metrics] == sorted({line["epsilon"] for line in metrics})
    rounds = [line.model_dump() for line in run.record(max_rounds=10).rounds]
    follows_from_noise = {"round", "model_in_sha256", "model_out_sha256", "update_root"}
    for field in rounds[0].keys() - follows_from_noise:
        assert len({line[field] for line in rounds}) == 1, f"{field} differs between rounds"
    told = capfd.readouterr()
    private = {
        FILES[ArtifactKind.TRAINING_ANNEX],
        FILES[ArtifactKind.CHECKPOINT],
    }  # the checkpoint is no text
    files = [path for path in run.path.iterdir() if path.is_file() and path.name not in private]
    public = [re.sub('base64,[^"]*', "", path.read_text()) for path in files]  # pictures are no words
    for secret in [*PROVIDERS, "Ghost", "sampled"]:
        said = re.compile(rf"\b{secret}\b")
        assert not any(said.search(text) for text in (told.out, told.err, *public)), secret


def test_the_annex_is_for_its_owner_and_nothing_else_is_left_of_what_it_was_made_from(
    private: RunFolder,
) -> None:
    annex = private.file(ArtifactKind.TRAINING_ANNEX)
    assert stat.S_IMODE(annex.stat().st_mode) == 0o600
    assert {path.name for path in private.path.iterdir()} == {
        *FILES.values(), "settings.yaml", "metrics.jsonl", "summary.json", "report.html", "plots", "config.json",
        "visual_config.json",
    }  # fmt: skip


def test_a_run_that_diverges_ends_with_the_round_where_it_did(base: Path, data: Path, tmp_path: Path) -> None:
    wild = ["local.learning_rate=1.0e+30", "local.batch_size=1", "local.max_steps=3"]
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run", wild)
    assert caught.value.problem.code is ErrorCode.CHECKPOINT_NOT_FINITE
    assert "round 1" in caught.value.problem.where
    assert not (tmp_path / "run").exists()


def test_a_folder_that_exists_is_never_written_to(base: Path, data: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run")
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    assert list((tmp_path / "run").iterdir()) == []


def test_a_run_that_breaks_off_leaves_no_folder_by_the_proper_name(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object) -> None:
        raise RuntimeError("the power went")

    with monkeypatch.context() as patched:
        patched.setattr(Learner, "train", break_off)
        with pytest.raises(RuntimeError, match="power"):
            trained("fedavg", base, data, tmp_path / "run")
    assert [path.name for path in tmp_path.iterdir()] == ["run.unfinished"]
    assert trained("fedavg", base, data, tmp_path / "run").files()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_checkpoint_is_scored_by_the_evaluator(base: Path, data: Path) -> None:
    told: list[tuple[int, int]] = []
    checkpoint = base / "model.safetensors"
    result = evaluate(
        checkpoint, base=base, data=data, split="valid", on_progress=lambda *step: told.append(step)
    ).result
    assert result.questions == 12
    assert result.checkpoint_sha256 == sha256_of(checkpoint)
    assert told[-1] == (12, 12)


def test_a_run_over_every_budget_has_none(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["target_epsilon=20"])
    with pytest.raises(ProblemError) as caught:
        budget_of(run.record(max_rounds=10), [1, 4, 8])
    assert caught.value.problem.code is ErrorCode.RECORD_RULES


SEVERAL = ["rounds=5", "clients_per_round=2"]


def test_a_run_that_was_broken_off_and_resumed_ends_as_if_it_had_not_been(
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


@pytest.mark.parametrize("placement", ["server", "client_full", "client_share"])
def test_the_record_of_a_resumed_run_tells_the_break_and_accounts_for_what_was_seen(
    base: Path, data: Path, tmp_path: Path, placement: str
) -> None:
    changes = [f"placement={placement}", "rounds=3", "target_epsilon=null", "noise_multiplier=6"]
    if placement == "client_share":
        changes.append("secure_aggregation={}")
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=CutOff(5))
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes, resume=True)
    record = run.record(max_rounds=3)
    spent = read_summary(run.path / SUMMARY).epsilon
    assert record.resumes == [ResumeLine(round=2, begun=True, claimed_epsilon=spent)]
    assert len(record.rounds) == 3
    whole = trained("fl-provider-dp", base, data, tmp_path / "whole", changes).record(max_rounds=3)
    seen = 3 if placement == "server" else 4
    (event,) = releases(record, SamplingRule.TWO_STAGE)
    assert event.rounds == seen
    assert releases(whole, SamplingRule.TWO_STAGE)[0].rounds == 3
    result = accounting(run.files(), base)
    (rounds,) = (check for check in result.checks if check.id == "C2")
    assert rounds.status is CheckStatus.FLAGGED
    assert rounds.where == "resumed at round 2"
    assert result.epsilon == pytest.approx(spent, rel=1e-3)
    assert (spent > record.run.claimed_epsilon) == (placement != "server")


def test_a_broken_round_that_was_seen_leaves_no_budget_for_all_that_were_planned(
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


def test_adapters_are_trained_and_sent_alone_and_merged_in_the_end(
    base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained(
        "fedavg", base, data, tmp_path / "run", ["trainable=null", "lora={rank: 2}", "dropout=true"]
    )
    before = read_safetensors(base / "model.safetensors")
    after = read_safetensors(run.file(ArtifactKind.CHECKPOINT))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.endswith((".q.weight", ".v.weight")) for name in changed)
    summary = read_summary(run.path / SUMMARY)
    assert summary.parameters_sent == sum(2 * sum(before[name].shape) for name in changed)
    assert summary.bytes_total == 4 * summary.parameters_sent * 2 * 2 * summary.rounds


def test_a_run_is_scored_on_the_validation_split_as_it_goes(base: Path, data: Path, tmp_path: Path) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=3", "evaluate_every=2", "dropout=true"])
    metrics = read_metrics(run.path / METRICS)
    assert [line.anls is not None for line in metrics] == [False, True, True]
    found = evaluate(
        run.file(ArtifactKind.CHECKPOINT), base=base, data=data, split="valid", on_progress=lambda *_: None
    ).result
    assert metrics[-1].anls == pytest.approx(found.anls)
    assert read_summary(run.path / SUMMARY).anls == metrics[-1].anls


@pytest.mark.parametrize("missing", [False, True])
def test_a_run_that_has_nothing_to_validate_on_is_rejected_before_it_trains(
    base: Path, tmp_path: Path, missing: bool
) -> None:
    data = make_data(tmp_path / "data")
    (data / "valid" / "questions.jsonl").write_text("")
    if missing:
        shutil.rmtree(data / "valid")
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run", ["evaluate_every=2"], watcher=CutOff(1))
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert not (tmp_path / UNFINISHED).exists()


def test_a_run_without_questions_to_train_on_is_rejected(base: Path, tmp_path: Path) -> None:
    data = make_data(tmp_path / "data")
    (data / "train" / "questions.jsonl").write_text("")
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run")
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert caught.value.problem.where.endswith("train")


def test_every_shipped_config_is_among_those_that_were_tried() -> None:
    tried = {mark.args[1][n][0] for mark in test_the_evaluator_accepts_what_a_baseline_leaves.pytestmark
             for n in range(len(mark.args[1]))}  # fmt: skip
    assert tried | {"centralized-dp"} == set(config_names())  # which has one client: see its own tests


@pytest.mark.parametrize("placement", ["server", "client_full"])
def test_attempts_to_resume_that_begin_no_round_cost_nothing(
    base: Path, data: Path, tmp_path: Path, placement: str
) -> None:
    changes = [f"placement={placement}", "rounds=3", "target_epsilon=null", "noise_multiplier=6"]
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=CutOff(5))

    class Failing(Watcher):
        def begins(self, first: int, rounds: int, sent_bytes: int = 0) -> None:
            raise CutError

    for _ in range(3):
        with pytest.raises(CutError):
            trained("fl-provider-dp", base, data, tmp_path / "run", changes, watcher=Failing(), resume=True)
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes, resume=True)
    record = run.record(max_rounds=3)
    assert sum(line.begun for line in record.resumes) == 1
    assert accounting(run.files(), base).epsilon == pytest.approx(
        read_summary(run.path / SUMMARY).epsilon, rel=1e-3
    )


def test_a_private_run_that_breaks_off_while_its_report_is_written_can_be_resumed(
    base: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object) -> None:
        raise CutError

    with monkeypatch.context() as patched:
        patched.setattr(recording, "write_report", break_off)
        with pytest.raises(CutError):
            trained("fl-provider-dp", base, data, tmp_path / "run")
    run = trained("fl-provider-dp", base, data, tmp_path / "run", resume=True)
    assert accounting(run.files(), base).within_budget
    assert [line.begun for line in run.record(max_rounds=3).resumes] == [False]


THREE = ["rounds=3"]
UNFINISHED = "run.unfinished"


@pytest.mark.parametrize("leftovers", [False, True])
def test_a_complete_run_that_could_not_be_given_its_name_is_not_trained_again(
    base: Path, data: Path, tmp_path: Path, leftovers: bool
) -> None:
    out, unfinished = tmp_path / "run", tmp_path / UNFINISHED

    class InTheWay(Watcher):
        def round_done(self, metrics: object) -> None:
            (out / "notes").mkdir(parents=True, exist_ok=True)

    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, out, watcher=InTheWay())
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER
    record = (unfinished / FILES[ArtifactKind.TRAINING_RECORD]).read_bytes()
    if leftovers:  # a kill while what only an unfinished run has was being deleted
        for name in ("noised_sums", "resumed"):
            (unfinished / name).mkdir()
            (unfinished / name / "file").touch()
    shutil.rmtree(out)
    run = trained("fl-provider-dp", base, data, out, resume=True)
    assert run.file(ArtifactKind.TRAINING_RECORD).read_bytes() == record
    assert accounting(run.files(), base).within_budget
    assert not {"lock", "noised_sums", "resumed"} & {path.name for path in out.iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("resume/state.safetensors", b""),
        ("resume/state.safetensors", b"\x02\0\0\0\0\0\0\0{}"),
        ("resume/begun", b""),
        ("resume/inputs", None),
        ("noised_sums/sampled.jsonl", None),
        ("noised_sums/sampled.jsonl", b""),
        ("noised_sums/1.f32", None),
        ("noised_sums/1.f32", b"1234"),
        ("training_record.jsonl", b""),
        ("training_record.jsonl", None),
        ("communication_log.csv", b""),
        ("metrics.jsonl", b""),
        ("settings.yaml", b"\xff"),
    ],
)
def test_a_run_that_lost_a_file_is_not_resumed(
    base: Path, data: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", THREE, watcher=CutOff(5))
    (tmp_path / UNFINISHED / name).unlink()
    if content is not None:
        (tmp_path / UNFINISHED / name).write_bytes(content)
    with pytest.raises(ProblemError) as caught:
        trained("fl-provider-dp", base, data, tmp_path / "run", THREE, resume=True)
    assert caught.value.problem.code is ErrorCode.RUN_FOLDER


def test_a_folder_is_written_by_one_process_at_a_time(base: Path, data: Path, tmp_path: Path) -> None:
    rejected = []

    class Another(Watcher):
        def update_came(self, round_number: int, come: int, chosen: int) -> None:
            for resume in (False, True):
                with pytest.raises(ProblemError) as caught:
                    trained("fedavg", base, data, tmp_path / "run", resume=resume)
                rejected.append(caught.value.problem)

    assert trained("fedavg", base, data, tmp_path / "run", watcher=Another()).files()
    assert len(rejected) == 2 * 2 * 2
    assert {(problem.code, problem.found) for problem in rejected} == {
        (ErrorCode.RUN_FOLDER, "a run that is going on")
    }


def test_a_run_is_resumed_with_the_data_and_base_weights_that_it_began_with(
    base: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(CutError):
        trained("fl-provider-dp", base, data, tmp_path / "run", THREE, watcher=CutOff(5))
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


def test_a_private_run_that_no_round_of_had_begun_is_begun_for_its_token_and_not_resumed(
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


@pytest.mark.parametrize("size_bytes", [64, 2000, 40_000])
@pytest.mark.parametrize("at", [1, 2])
def test_a_full_disk_ends_a_run_that_goes_on_when_there_is_room(
    base: Path, data: Path, tmp_path: Path, size_bytes: int, at: int
) -> None:
    with ExitStack() as stack:

        class Filling(Watcher):
            left = 3 * at

            def update_came(self, round_number: int, come: int, chosen: int) -> None:
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
    recorder = PrivateRecorder(tmp_path, few, KEY, {0: 1})
    size_bytes = (tmp_path / FILES[ArtifactKind.TRAINING_RECORD]).stat().st_size
    finished = Round(1, [0], [], torch.zeros(8), Aggregate(torch.ones(8), torch.ones(8)), {0: 1})
    with files_up_to(size_bytes + 50), pytest.raises(OSError, match="too large"):
        recorder.round(finished)
