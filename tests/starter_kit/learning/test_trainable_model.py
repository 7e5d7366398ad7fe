from pathlib import Path

import pytest
import torch

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.compression.lora import LoRA
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream

STREAM = Stream(7)


@pytest.mark.parametrize("dropout", [False, True])
def test_predicting_and_saving_leave_the_modes_of_training(
    base: Path, data: Path, tmp_path: Path, dropout: bool
) -> None:
    vt5, tokenizer = open_reference(base)
    model = TrainableModel(vt5, lora=LoRA(), stream=STREAM, dropout=dropout)
    for use in (
        lambda: model.predict(model.start, tokenizer, Dataset(data, "valid")),
        lambda: model.save(model.start, tmp_path),
    ):
        use()
        assert vt5.language_backbone.training is dropout
        assert not vt5.visual_embedding.image_model.training


def test_a_saved_model_has_the_adapters_products_and_the_one_in_training_has_not(
    base: Path, tmp_path: Path
) -> None:
    vt5, _ = open_reference(base)
    model = TrainableModel(vt5, lora=LoRA(rank=2), stream=STREAM)
    noise = torch.randn(model.tensors.size, generator=torch.Generator().manual_seed(3))
    model.save(model.start + 0.1 * noise, tmp_path)
    before, after = (
        read_safetensors(base / "model.safetensors"),
        read_safetensors(tmp_path / "model.safetensors"),
    )
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert len(changed) == len(model.tensors.parameters) / 2
    assert all(
        torch.equal(before[name], weight) for name, weight in vt5.state_dict().items() if name in before
    )


def test_adapters_of_a_larger_rank_than_a_layer_are_rejected(base: Path) -> None:
    layer = open_reference(base)[0].language_backbone.encoder.block[0].layer[0].SelfAttention.q
    side = min(layer.weight.shape)
    TrainableModel(open_reference(base)[0], lora=LoRA(rank=side), stream=STREAM)
    with pytest.raises(ProblemError) as caught:
        TrainableModel(open_reference(base)[0], lora=LoRA(rank=side + 1), stream=STREAM)
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert caught.value.problem.where == "lora.rank"
    assert f"at most {side}" in caught.value.problem.expected
