"""Whole training runs on pocket data: the evaluator accepts what they leave in the run folder."""

import json
import re
import shutil
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluator.checkpoints.weight_vector import weight_vector
from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.manifest import manifest_sha256
from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.sampling import Poisson
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import (
    STEP_ARTIFACTS,
    AccountingResult,
    ArtifactKind,
    CheckStatus,
    PrivacyRules,
    Step,
    TrackRules,
)
from evaluator.pipeline import StepInputs, run_step
from evaluator.records.annex import MAX_BYTES, read_annex
from evaluator.records.certificate import BLOCK, root_of_pieces
from evaluator.records.signing import public_key_of
from starter_kit.compression.peft_files import is_adapter
from starter_kit.evaluation.scores import score_checkpoint
from starter_kit.federation.rounds import Client
from starter_kit.methods import fedavg
from starter_kit.reporting.metrics import SUMMARY, read_summary
from starter_kit.reporting.report import write_report
from starter_kit.runs.answering import answer_challenge, read_both
from starter_kit.runs.folder import ADAPTER, FILES, RunFolder, budget_of
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.config_files import config_names
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.plan import Plan
from tests.starter_kit.pocket_data import PROVIDERS, make_data
from tests.starter_kit.runs.conftest import CHANGES
from tests.starter_kit.training_runs import FEW_STEPS, KEY, RULES, RUN_TOKEN, accounting, trained

UNFINISHED = "run.unfinished"


OF_A_PRIVATE_RUN = set(STEP_ARTIFACTS[Step.ACCOUNTING])
ALL_BUT_SCORING = [Step.VALIDATE, Step.COMMUNICATION, Step.ACCOUNTING]
# That the models change as is declared, and that each follows from the one before.
LINKS = {"record.models", "record.linkage"}


@pytest.fixture(scope="module")
def without_token(base: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A private run that can't be submitted. Not to be changed."""
    out = tmp_path_factory.mktemp("without_token") / "run"
    return trained("fl-provider-dp", base, data, out, ["rounds=1"], run_token=None)


@pytest.mark.parametrize(
    ("config", "changes", "steps"),
    [
        ("fedavg", [], ALL_BUT_SCORING[:2]),
        ("fl-provider-dp", [], ALL_BUT_SCORING),
        ("fl-provider-dp", ["placement=client_full"], ALL_BUT_SCORING),
        ("fl-provider-dp", ["placement=client_full", "codec=nf4"], ALL_BUT_SCORING),
        ("fl-provider-dp", ["sampling.client_rate=0.5", "sampling.provider_rate=0.5"], ALL_BUT_SCORING),
        ("fl-provider-dp", ["sampling.client_rate=1.0e-6", "sampling.provider_rate=0.5"], ALL_BUT_SCORING),
        (
            "fl-provider-dp",
            ["sampling.client_rate=1.0e-6", "sampling.provider_rate=0.5", "placement=client_full"],
            ALL_BUT_SCORING,
        ),
        (
            "fl-provider-dp",
            ["sampling={type: fixed_size, clients_per_round: 2, providers_per_client: 1}"],
            ALL_BUT_SCORING,
        ),
        ("random-allocation", ["rounds=5"], ALL_BUT_SCORING),
        ("secure-aggregation", ["rounds=3"], ALL_BUT_SCORING),
        (
            "secure-aggregation",
            ["sampling={type: fixed_size, clients_per_round: 2, providers_per_client: 1}"],
            ALL_BUT_SCORING,
        ),
        ("centralized-dp", [], ALL_BUT_SCORING),
        ("dp-lora", ["trainable=['*.decoder.final_layer_norm.weight']"], ALL_BUT_SCORING),
        ("lora", [], ALL_BUT_SCORING[:2]),
        ("lora-nf4", [], ALL_BUT_SCORING[:2]),
        ("centralized", ["rounds=1"], ALL_BUT_SCORING[:2]),
        ("fedkseed", ["codec.seeds=16", "rounds=1", "local.max_steps=2"], ALL_BUT_SCORING[:1]),
        ("fedshampoo", [], ALL_BUT_SCORING[:2]),
        # Clients keep an optimizer's statistics as well as their secrets of the round.
        ("fedshampoo", ["clients_per_round=3", "secure_aggregation={bound: 1.0}"], ALL_BUT_SCORING[:2]),
        ("dp-clgecl", [], ALL_BUT_SCORING),
        ("dp-clgecl", ["codec=nf4"], ALL_BUT_SCORING),
        ("dp-clgecl-momentum", [], ALL_BUT_SCORING),
        ("client-dp", ["delta=1.0e-5"], ALL_BUT_SCORING[:2]),
        ("laplace-fedavg", [], ALL_BUT_SCORING[:2]),
        ("laplace-iadmm", [], ALL_BUT_SCORING[:2]),
        (
            "fl-provider-dp",
            ["sampling.client_rate=0.5", "placement=client_full", "rounds=4"],
            ALL_BUT_SCORING,
        ),
    ],
)
def test_the_evaluator_accepts_what_a_baseline_leaves(
    config: str, changes: list[str], steps: list[Step], base: Path, data: Path, tmp_path: Path
) -> None:
    run = trained(config, base, data, tmp_path / "run", changes)
    rules = RULES.model_copy(update={"clients": 1}) if config == "centralized-dp" else RULES
    inputs = StepInputs(run.files(), rules, reference=base)
    for step in steps:
        result = run_step(step, inputs, lambda done, total: None).result
        if isinstance(result, AccountingResult):
            wrong = {check.id: check for check in result.checks if check.status is not CheckStatus.PASSED}
            good = (CheckStatus.NO_POWER, CheckStatus.NOT_APPLICABLE)
            assert all(check.status in good for check in wrong.values()), wrong
            if "sampling.client_rate=1.0e-6" not in changes:  # where a client took part, that is
                assert wrong.keys() & LINKS == ({"record.models"} if config == "dp-lora" else set()), wrong
            assert result.within_budget
            assert result.epsilon == pytest.approx(result.epsilon_claimed, rel=1e-3)
            assert run.file(ArtifactKind.TRAINING_ANNEX).stat().st_size < MAX_BYTES


def test_the_record_states_what_was_done(private: RunFolder) -> None:
    record = private.record(max_rounds=10)
    assert len(record.rounds) == record.end.rounds == 2
    assert 3.9 < record.run.claimed_epsilon <= 4
    assert record.run.sampling == Poisson(provider_rate=0.5)
    assert record.run.normalizer == 7 * 0.5  # the six providers and Ghost
    assert record.run.run_token == RUN_TOKEN
    assert record.end.public_key == public_key_of(KEY)
    assert record.end.checkpoint_sha256 == sha256_of(private.file(ArtifactKind.CHECKPOINT))
    assert record.end.annex_body_sha256 == read_both(private.path)[1].body_sha256
    assert {line.bytes_down for line in record.rounds} == {3 * 4 * record.run.numel}
    assert budget_of(record, [1, 4, 8]) == 4


def test_the_rounds_lead_from_the_base_weights_to_the_checkpoint(private: RunFolder, base: Path) -> None:
    record = private.record(max_rounds=10)
    for file, root in (
        (base / "model.safetensors", record.run.weights_root),
        (private.file(ArtifactKind.CHECKPOINT), record.rounds[-1].weights_root),
    ):
        vector = weight_vector(file, record.run.shapes)
        assert vector is not None
        assert root_of_pieces(vector.pieces()) == root


def test_the_recorded_step_leads_from_one_model_to_the_next(base: Path, data: Path, tmp_path: Path) -> None:
    changes = ["rounds=1", "max_weight_noise=0.01", "server_learning_rate=6"]
    changes += ["trainable=['language_backbone.shared.weight']", "sampling.provider_rate=1"]
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


def test_the_annex_informs_the_organizers_how_many_took_part(base: Path, data: Path, tmp_path: Path) -> None:
    changes = ["sampling.client_rate=0.5", "sampling.provider_rate=1", "rounds=4"]
    run = trained("fl-provider-dp", base, data, tmp_path / "run", changes)
    record = run.record(max_rounds=4)
    annex = read_annex(run.file(ArtifactKind.TRAINING_ANNEX), max_rounds=4, clients=3)
    assert annex.run_token == record.run.run_token
    assert annex.providers_per_client == {0: 2, 1: 2, 2: 3}
    assert [len(sampled) for sampled in annex.sampled] == [line.clients for line in record.rounds]
    for sampled in annex.sampled:  # at a provider rate of 1, all of a client's providers
        assert sampled == {client: annex.providers_per_client[client] for client in sampled}


def test_two_stages_cost_more_noise_unless_the_product_is_asked_for(
    base: Path, data: Path, tmp_path: Path
) -> None:
    changes = ["sampling.client_rate=0.5", "sampling.provider_rate=0.5", "target_epsilon=1"]
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


@pytest.mark.parametrize("settings", [["noise_multiplier=0.01"], ["noise_multiplier=0.02", "delta=1.0e-30"]])
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
        ("fl-provider-dp", "sampling.provider_rate=1.0e-13"),
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
    other = trained("fl-provider-dp", base, data, tmp_path / "run", CHANGES)
    for kind, code in (
        (ArtifactKind.CHECKPOINT, ErrorCode.RECORD_MODELS),
        (ArtifactKind.TRAINING_RECORD, None),
        (ArtifactKind.TRAINING_ANNEX, None),
    ):
        with pytest.raises(ProblemError) as caught:
            accounting({**private.files(), kind: other.file(kind)}, base)
        assert code is None or code in {problem.code for problem in caught.value.problems}


def test_a_run_without_a_token_is_accounted_all_the_same(without_token: RunFolder, base: Path) -> None:
    assert accounting(without_token.files(), base).run_token is None


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


def test_settings_are_kept_so_that_the_run_can_be_repeated(private: RunFolder) -> None:
    again = load_settings(str(private.path / "settings.yaml"))
    assert again == load_settings("fl-provider-dp", [*FEW_STEPS, *CHANGES])


def test_nothing_public_reveals_single_providers(
    base: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = trained("fl-provider-dp", base, data, tmp_path / "run", ["sampling.provider_rate=0.5", "rounds=6"])
    metrics = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [set(line) for line in metrics] == [{"round", "clients", "bytes_down", "bytes_up", "epsilon"}] * 6
    assert len({(line["clients"], line["bytes_down"], line["bytes_up"]) for line in metrics}) == 1
    assert [line["epsilon"] for line in metrics] == sorted({line["epsilon"] for line in metrics})
    rounds = [line.model_dump() for line in run.record(max_rounds=10).rounds]
    follows_from_noise = {"round", "update_root", "weights_root"}
    for field in rounds[0].keys() - follows_from_noise:
        assert len({str(line[field]) for line in rounds}) == 1, f"{field} differs between rounds"
    write_report(run.path)
    captured = capfd.readouterr()
    private = {
        FILES[ArtifactKind.TRAINING_ANNEX],
        FILES[ArtifactKind.CHECKPOINT],
    }  # the checkpoint is no text
    files = [path for path in run.path.iterdir() if path.is_file() and path.name not in private]
    public = [re.sub('base64,[^"]*', "", path.read_text()) for path in files]  # pictures are no words
    for secret in [*PROVIDERS, "Ghost", "sampled"]:
        said = re.compile(rf"\b{secret}\b")
        assert not any(said.search(text) for text in (captured.out, captured.err, *public)), secret


def test_the_annex_is_for_its_owner_and_of_what_it_was_made_from_only_released_vectors_are_left(
    private: RunFolder,
) -> None:
    annex = private.file(ArtifactKind.TRAINING_ANNEX)
    assert stat.S_IMODE(annex.stat().st_mode) == 0o600
    assert {path.name for path in private.path.iterdir()} == {
        *(FILES[kind] for kind in OF_A_PRIVATE_RUN), "settings.yaml", "metrics.jsonl", "summary.json", "config.json",
        "visual_config.json", "vectors",
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


def test_a_checkpoint_is_scored_by_the_evaluator(base: Path, data: Path) -> None:
    steps: list[tuple[int, int]] = []
    checkpoint = base / "model.safetensors"
    result = score_checkpoint(
        checkpoint, base=base, data=data, split="valid", on_progress=lambda *step: steps.append(step)
    ).result
    assert result.questions == 12
    assert result.checkpoint_sha256 == sha256_of(checkpoint)
    assert steps[-1] == (12, 12)


def test_a_run_over_every_budget_has_none(private: RunFolder) -> None:
    with pytest.raises(ProblemError) as caught:
        budget_of(private.record(max_rounds=10), [1, 2, 3])
    assert caught.value.problem.code is ErrorCode.RECORD_RULES


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
    assert is_adapter(run.path / ADAPTER)


def test_a_summary_names_what_a_run_was_computed_with_and_a_private_one_not_its_data(
    base: Path, data: Path, tmp_path: Path, private: RunFolder
) -> None:
    run = trained("fedavg", base, data, tmp_path / "run", ["rounds=0"])
    summary, secretive = (read_summary(folder.path / SUMMARY) for folder in (run, private))
    assert summary.data_sha256 == manifest_sha256(Dataset(data, "train"))
    assert secretive.data_sha256 is None
    for found in (summary, secretive):
        assert found.clients == 3
        assert found.versions["torch"] == torch.__version__
        assert found.device is not None
        assert found.finished is not None


def test_a_guarantee_needs_settings_that_say_so(base: Path, data: Path) -> None:
    class Unmarked(fedavg.Settings):
        def plan(self, clients: Sequence[Client]) -> Plan:
            private = load_settings("fl-provider-dp").plan(clients)
            return replace(super().plan(clients), guarantee=private.guarantee)

    with pytest.raises(ProblemError) as caught:
        RunSetup(Unmarked(**load_settings("fedavg").model_dump()), data=data, base=base)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert caught.value.problem.found == "Settings derived from starter_kit.methods.fedavg.Settings"


def test_a_run_without_questions_to_train_on_is_rejected(base: Path, tmp_path: Path) -> None:
    data = make_data(tmp_path / "data")
    (data / "train" / "questions.jsonl").write_text("")
    with pytest.raises(ProblemError) as caught:
        trained("fedavg", base, data, tmp_path / "run")
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT
    assert caught.value.problem.where.endswith("train")


def test_every_shipped_config_is_among_those_that_were_tried() -> None:
    tried = {mark.args[1][n][0] for mark in vars(test_the_evaluator_accepts_what_a_baseline_leaves)["pytestmark"]
             for n in range(len(mark.args[1]))}  # fmt: skip
    for_the_tiny_model = {name for name in config_names() if "/" not in name}
    assert tried == for_the_tiny_model


def test_a_run_to_be_submitted_keeps_the_vectors_of_all_rounds_for_the_sites_challenge(
    private: RunFolder, tmp_path: Path
) -> None:
    numel = private.record(max_rounds=10).run.numel
    kept = {path.name: path.stat().st_size for path in (private.path / "vectors").iterdir()}
    assert kept == {f"{kind}-{number}.f32": 4 * numel for kind in ("update", "weights") for number in (1, 2)}
    assert stat.S_IMODE((private.path / "vectors").stat().st_mode) == 0o700


def test_a_run_without_a_token_keeps_none(without_token: RunFolder) -> None:
    assert not (without_token.path / "vectors").exists()


def test_the_annex_answers_another_challenge_with_the_same_body(
    private: RunFolder, base: Path, tmp_path: Path
) -> None:
    run = RunFolder(shutil.copytree(private.path, tmp_path / "run"))
    record, before = read_both(run.path)
    assert before.challenge == record.own_challenge
    assert answer_challenge(run.path, "5" * 64)
    assert not answer_challenge(run.path, "5" * 64)
    _, after = read_both(run.path)
    assert (after.challenge, after.body_sha256) == ("5" * 64, before.body_sha256)
    assert stat.S_IMODE(run.file(ArtifactKind.TRAINING_ANNEX).stat().st_mode) == 0o600
    found = {check.id: check.status for check in accounting(run.files(), base, challenge="5" * 64).checks}
    assert (found["record.challenge"], found["record.annex"], found["record.linkage"]) == (
        CheckStatus.PASSED,
    ) * 3
    with pytest.raises(ProblemError) as caught:
        accounting(run.files(), base, challenge="6" * 64)
    assert [problem.code for problem in caught.value.problems] == [ErrorCode.RECORD_CHALLENGE]


def test_the_annex_states_the_data_and_the_record_does_not(private: RunFolder, data: Path) -> None:
    record, annex = read_both(private.path)
    assert annex.data_sha256 == manifest_sha256(Dataset(data, "train"))
    assert annex.data_sha256 not in private.file(ArtifactKind.TRAINING_RECORD).read_text()
    assert not hasattr(record.run, "data_sha256")


def test_a_run_that_reads_less_than_will_be_judged_says_what_that_cuts(
    base: Path, data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    trained("fedavg", base, data, tmp_path / "whole", ["max_input_tokens=512"])
    assert "tokens" not in capfd.readouterr().err
    trained("fedavg", base, data, tmp_path / "cut", ["max_input_tokens=16"])
    printed = capfd.readouterr().err
    assert re.search(r"[1-9]\d* of \d+ questions with their pages are longer than the 16 tokens", printed)
    assert "max_input_tokens is 16, and the checkpoint will be judged with" in printed
