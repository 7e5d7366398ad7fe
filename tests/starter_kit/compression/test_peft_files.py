"""Adapters as PEFT stores them, against PEFT itself: what it writes is read, and what is written it reads."""

import json
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from torch import nn

from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.commands.main import app
from starter_kit.compression.lora import LoRA
from starter_kit.compression.peft_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_adapter, write_adapter
from starter_kit.learning.trainable_model import TrainableModel

BOX = "spatial_embedding.x_position_embeddings"
TARGETS = r"language_backbone\.encoder.*\.(q|v)"


def convert(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["convert", *map(str, arguments)], env={"COLUMNS": "200"})
    assert result.exit_code == status, result.output
    return result.output


def tensors_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach() for name, tensor in model.named_parameters()}


def random_adapter(model: VT5, **settings: Any) -> peft.PeftModel:
    """Adapters of PEFT in the model, of which none is zero, and a layer in full."""
    torch.manual_seed(5)

    config = peft.LoraConfig(target_modules=TARGETS, modules_to_save=[BOX], **settings)
    wrapped = peft.get_peft_model(model, config)
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            nn.init.normal_(parameter)
    return wrapped


@pytest.mark.parametrize(
    "settings",
    [
        {"r": 2, "lora_alpha": 6},
        {"r": 4, "use_rslora": True, "alpha_pattern": {r"block\.0\..*\.q": 3}, "rank_pattern": {r".*\.v": 3}},
    ],
    ids=["plain", "own scales and ranks"],
)
def test_what_peft_saves_is_merged_as_peft_merges_it(
    base: Path, tmp_path: Path, settings: dict[str, object]
) -> None:
    model, _ = open_reference(base)
    wrapped = random_adapter(model, **settings)
    wrapped.save_pretrained(str(tmp_path / "adapter"))
    printed = convert(tmp_path / "adapter", tmp_path / "out", "--base", base)
    assert "adapters in 4 layers and 1 tensors in full" in printed
    expected = tensors_of(wrapped.merge_and_unload())
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert found.keys() == load_file(base / "model.safetensors").keys()
    assert all(torch.allclose(found[name], expected[name], atol=1e-5) for name in found)
    assert not torch.equal(found[f"{BOX}.weight"], load_file(base / "model.safetensors")[f"{BOX}.weight"])


def test_what_a_run_writes_peft_loads_and_merges_into_the_same_checkpoint(base: Path, tmp_path: Path) -> None:
    model, _ = open_reference(base)
    trained = TrainableModel(
        model,
        trainable=["spatial_embedding.*"],
        lora=LoRA(rank=2, alpha=6, targets=["language_backbone.encoder.*.[qv]"]),
    )
    weights = trained.start + torch.randn(trained.tensors.size, generator=torch.Generator().manual_seed(2))
    trained.save(weights, tmp_path / "run")
    trained.save_adapters(weights, tmp_path / "adapter", base="these")

    plain, _ = open_reference(base)

    loaded = peft.PeftModel.from_pretrained(plain, str(tmp_path / "adapter"))
    merged = tensors_of(loaded.merge_and_unload())
    checkpoint = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.allclose(merged[name], checkpoint[name], atol=1e-5) for name in checkpoint)

    convert(tmp_path / "adapter", tmp_path / "again.safetensors", "--base", base)
    again = load_file(tmp_path / "again.safetensors")
    assert all(torch.equal(again[name], checkpoint[name]) for name in checkpoint)


def test_an_adapter_of_the_language_model_alone_finds_its_layers(base: Path, tmp_path: Path) -> None:
    layer = "encoder.block.0.layer.0.SelfAttention.q"
    known = load_file(base / "model.safetensors")
    rows, columns = known[f"language_backbone.{layer}.weight"].shape
    pair = {f"{layer}.lora_A.weight": torch.ones(1, columns), f"{layer}.lora_B.weight": torch.ones(rows, 1)}
    write_adapter(tmp_path / "a", LoRA(rank=1, alpha=2), pair, base="")
    convert(tmp_path / "a", tmp_path / "out", "--base", base)
    found = load_file(tmp_path / "out" / "model.safetensors")[f"language_backbone.{layer}.weight"]
    assert torch.allclose(found, known[f"language_backbone.{layer}.weight"] + 2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("init_lora_weights", "pissa"),
        ("init_lora_weights", "olora"),
        ("alora_invocation_tokens", [5, 6]),
        ("use_dora", True),
        ("use_qalora", True),
        ("loftq_config", {"loftq_bits": 4}),
        ("trainable_token_indices", [3]),
        ("bias", "lora_only"),
        ("peft_type", "LOHA"),
        ("use_next_year_lora", True),
        ("alpha_pattern", {"(": 3}),
        ("rank_pattern", {"(": 3}),
    ],
)
def test_a_setting_that_makes_an_adapter_no_sum_with_the_base_weights_is_named(
    base: Path, tmp_path: Path, key: str, value: object
) -> None:
    layer = "encoder.block.0.layer.0.SelfAttention.q"
    rows, columns = load_file(base / "model.safetensors")[f"language_backbone.{layer}.weight"].shape
    pair = {f"{layer}.lora_A.weight": torch.ones(1, columns), f"{layer}.lora_B.weight": torch.ones(rows, 1)}
    write_adapter(tmp_path / "a", LoRA(rank=1, alpha=2), pair, base="")
    path = tmp_path / "a" / ADAPTER_CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    output = convert(tmp_path / "a", tmp_path / "out", "--base", base, status=2)
    assert "E_CHECKPOINT_FORMAT" in output
    assert f"{ADAPTER_CONFIG}, {key}" in output.replace("\n", "")
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_settings_with_a_byte_order_mark_are_read_and_numbers_that_are_not_finite_rejected(
    base: Path, tmp_path: Path
) -> None:
    layer = "encoder.block.0.layer.0.SelfAttention.q"
    rows, columns = load_file(base / "model.safetensors")[f"language_backbone.{layer}.weight"].shape
    pair = {
        f"{layer}.lora_A.weight": torch.full((1, columns), torch.nan),
        f"{layer}.lora_B.weight": torch.ones(rows, 1),
    }
    write_adapter(tmp_path / "a", LoRA(rank=1, alpha=2), pair, base="")
    settings = tmp_path / "a" / ADAPTER_CONFIG
    settings.write_text(settings.read_text(), encoding="utf-8-sig")
    output = convert(tmp_path / "a", tmp_path / "out", "--base", base, status=2)
    assert "E_CHECKPOINT_NOT_FINITE" in output
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_a_tied_tensor_beside_adapters_is_not_stored_for_peft(base: Path, tmp_path: Path) -> None:
    model, _ = open_reference(base)
    trained = TrainableModel(model, trainable=["language_backbone.shared.weight"], lora=LoRA())
    trained.save_adapters(trained.start, tmp_path / "adapter", base="")
    assert not (tmp_path / "adapter").exists()


@pytest.mark.parametrize(
    ("config", "tensors", "code"),
    [
        ({"use_dora": True}, {}, ErrorCode.CHECKPOINT_FORMAT),
        ({"peft_type": "IA3"}, {}, ErrorCode.CHECKPOINT_FORMAT),
        ({"bias": "all"}, {}, ErrorCode.CHECKPOINT_FORMAT),
        ({}, {"x.lora_A.weight": torch.ones(2, 3)}, ErrorCode.CHECKPOINT_FORMAT),
        ({}, {"x.lora_embedding_A": torch.ones(2, 3)}, ErrorCode.CHECKPOINT_FORMAT),
        (
            {},
            {"x.lora_A.weight": torch.ones(2, 3), "x.lora_B.weight": torch.ones(3, 1)},
            ErrorCode.CHECKPOINT_FORMAT,
        ),
    ],
    ids=["DoRA", "another kind", "biases", "one of a pair", "an embedding", "ranks that differ"],
)
def test_what_is_no_sum_of_products_is_rejected(
    tmp_path: Path, config: dict[str, object], tensors: dict[str, torch.Tensor], code: ErrorCode
) -> None:
    values = {"peft_type": "LORA", "r": 2, "lora_alpha": 4} | config
    (tmp_path / ADAPTER_CONFIG).write_text(json.dumps(values))
    save_file(tensors, tmp_path / ADAPTER_WEIGHTS)
    with pytest.raises(ProblemError) as error:
        read_adapter(tmp_path)
    assert error.value.problem.code is code


def test_an_adapter_of_other_weights_or_without_any_is_rejected(base: Path, tmp_path: Path) -> None:
    layer = "language_backbone.encoder.block.0.layer.0.SelfAttention.q"
    for name, target in (("a", "elsewhere"), ("b", layer)):
        pair = {f"{target}.lora_A.weight": torch.ones(1, 3), f"{target}.lora_B.weight": torch.ones(3, 1)}
        write_adapter(tmp_path / name, LoRA(rank=1), pair, base="")
    assert "E_CHECKPOINT_EXTRA_TENSOR" in convert(tmp_path / "a", tmp_path / "out", "--base", base, status=2)
    assert "E_CHECKPOINT_SHAPE" in convert(tmp_path / "b", tmp_path / "out", "--base", base, status=2)
    assert "Add --base FOLDER" in convert(tmp_path / "b", tmp_path / "out", status=2)
    assert not (tmp_path / "out" / "model.safetensors").exists()
