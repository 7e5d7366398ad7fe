"""Exported runs, opened by the libraries that they are for."""

import json
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import yaml
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import VT5
from starter_kit.commands.main import app
from starter_kit.runs.folder import RunFolder
from tests.starter_kit.reporting.runs import private_rounds, private_summary, run_folder
from tests.starter_kit.training_runs import trained

LORA = [
    "rounds=1",
    "clients_per_round=1",
    "local.epochs=1",
    "lora.targets=['language_backbone.encoder.*.q']",
    "trainable=['spatial_embedding.LayerNorm.*']",
]


def export(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["export", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == status, result.output
    return result.output


def front_matter(card: Path) -> dict[str, Any]:
    return yaml.safe_load(card.read_text().split("---\n")[1])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, base: Path, data: Path) -> RunFolder:
    """A run of adapters, with a layer beside them."""
    return trained("lora", base, data, tmp_path_factory.mktemp("export") / "run", LORA)


def test_a_run_s_adapters_load_in_peft_and_give_its_checkpoint(
    run: RunFolder, base: Path, tmp_path: Path
) -> None:
    export("peft", run.path, tmp_path / "out", "--license", "gpl-3.0", "--base-model", "a/base")
    model, _ = open_reference(base)
    merged = peft.PeftModel.from_pretrained(model, str(tmp_path / "out")).merge_and_unload()
    checkpoint = load_file(run.path / "model.safetensors")
    found = dict(merged.named_parameters())
    assert all(torch.allclose(found[name], checkpoint[name], atol=1e-6) for name in checkpoint)
    front = front_matter(tmp_path / "out" / "README.md")
    assert (front["license"], front["base_model"], front["library_name"]) == ("gpl-3.0", "a/base", "peft")


def test_an_exported_model_opens_here_and_its_language_model_in_transformers(
    run: RunFolder, base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert "read it before you publish" in export("hf", run.path, out, "--base", base)
    assert isinstance(open_reference(out)[0], VT5)
    assert PreTrainedTokenizerFast(tokenizer_file=str(out / "tokenizer.json")).vocab_size > 0
    prefix = "language_backbone."
    stored = load_file(out / "model.safetensors")
    backbone = T5ForConditionalGeneration(T5Config.from_pretrained(out))
    mine = {name.removeprefix(prefix): tensor for name, tensor in stored.items() if name.startswith(prefix)}
    missing, unexpected = backbone.load_state_dict(mine, strict=False)
    assert unexpected == []
    assert {name.rpartition(".")[0] for name in missing} <= {
        "encoder.embed_tokens",
        "decoder.embed_tokens",
        "lm_head",
    }
    card = (out / "README.md").read_text()
    assert "may reveal the content of single documents" in card
    assert "model-index" not in front_matter(out / "README.md")


def test_the_card_of_a_private_run_has_epsilon_and_scores_and_the_folder_nothing_secret(
    base: Path, tmp_path: Path
) -> None:
    folder = run_folder(tmp_path / "run", private_rounds(2), private_summary())
    for name in ("training_record.jsonl", "training_annex.jsonl", "round_opening.bin"):
        (folder / name).write_text("x")
    save_file({"weight": torch.zeros(1)}, folder / "model.safetensors")
    (folder / "vectors").mkdir()
    (folder / "vectors" / "1").write_text("x")
    out = tmp_path / "out"
    export("hf", folder, out, "--base", base, "--dataset", "docs/mine")
    card, front = (out / "README.md").read_text(), front_matter(out / "README.md")
    assert "| ε | 2.0000 at δ = 1e-05, for each provider |" in card
    assert "differential-privacy" in front["tags"]
    result = front["model-index"][0]["results"][0]
    assert result["dataset"]["type"] == "docs/mine"
    assert [metric["value"] for metric in result["metrics"]] == [0.7123, 0.6123]
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert {name for name in files if name.startswith("training/")} == {
        "training/metrics.jsonl",
        "training/settings.yaml",
        "training/summary.json",
        "training/training_record.jsonl",
    }


def test_what_cannot_be_exported_is_rejected_and_leaves_nothing(base: Path, tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", private_rounds(1), private_summary())
    assert "E_ARTIFACT_MISSING" in export("hf", folder, tmp_path / "out", "--base", base, status=2)
    assert "without the setting lora" in export("peft", folder, tmp_path / "out", status=2)
    assert not (tmp_path / "out").exists()
    save_file({"weight": torch.zeros(1)}, folder / "model.safetensors")
    metrics = folder / "metrics.jsonl"
    shown = metrics.read_text()
    metrics.write_text(json.dumps(json.loads(shown) | {"epsilon": None, "providers": 3}) + "\n")
    assert "reveal participation" in export("hf", folder, tmp_path / "out", "--base", base, status=2)
    assert not (tmp_path / "out").exists()
    metrics.write_text(shown)
    assert "a new folder" in export("hf", folder, tmp_path, "--base", base, status=2)
