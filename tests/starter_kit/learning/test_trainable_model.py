from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._python_dispatch

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import IGNORED
from evaluator.docvqa.weights import read_safetensors
from evaluator.errors import ErrorCode, ProblemError
from starter_kit.compression.lora import LoRA
from starter_kit.learning.compute import Compute
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream
from tests.starter_kit.learning.middle import middle_batch, middle_model

STREAM = Stream(7)


@pytest.mark.parametrize("dropout", [False, True])
def test_predicting_and_saving_leave_the_modes_of_training(
    base: Path, data: Path, tmp_path: Path, dropout: bool
) -> None:
    vt5, tokenizer = open_reference(base)
    model = TrainableModel(vt5, lora=LoRA(), dropout=dropout)
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
    model = TrainableModel(vt5, lora=LoRA(rank=2))
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


def test_tensorfloat_32_is_for_steps_alone(base: Path, tmp_path: Path) -> None:
    """A merged weight is computed again by the evaluator, and features are stored for other runs."""

    def allowed() -> tuple[bool, bool]:
        return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32

    vt5, _ = open_reference(base)
    model, seen = TrainableModel(vt5, lora=LoRA()), list[tuple[bool, bool]]()
    before, products = allowed(), []
    try:
        Compute(tf32=True).set_up_process()
        assert allowed() == (True, True)
        vt5.visual_embedding.image_model.register_forward_hook(lambda *_: seen.append(allowed()))
        model.page_features(torch.zeros(1, 3, 32, 32))

        class Noted(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                if func.overloadpacket is torch.ops.aten.mm:
                    products.append(func)
                return func(*args, **(kwargs or {}))

        with Noted():
            model.save(model.start, tmp_path)
        # Merging multiplies in float64, without torch.
        assert not products
        assert seen == [(False, False)]
        assert allowed() == (True, True)
        Compute().set_up_process()
        assert allowed() == (False, False)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


@pytest.mark.parametrize("is_padded", [True, False])
def test_the_loss_and_its_gradient_are_t5_s_own_to_the_bit(is_padded: bool) -> None:
    """T5 makes its masks itself, and chooses the answers' tokens by a mask, for which a GPU would have to be waited."""
    model = TrainableModel(middle_model())
    vt5, batch = model._model, middle_batch(model._model)
    if not is_padded:
        batch = replace(batch, attention_mask=torch.ones_like(batch.attention_mask), is_padded=False)
    model.backward(model.losses(batch, [1, 1]).sum())
    found = model.tensors.take_gradient()

    labels, t5 = batch.labels, vt5.language_backbone
    assert labels is not None
    is_token = labels != IGNORED
    embeddings, mask = vt5.encoder_input(replace(batch, is_padded=True))
    with t5.lm_head.register_forward_pre_hook(lambda _, hidden: hidden[0][is_token]):
        scores = t5(
            inputs_embeds=embeddings,
            attention_mask=mask,
            decoder_input_ids=t5.prepare_decoder_input_ids_from_labels(labels),
            use_cache=False,
        ).logits
    of_tokens = torch.nn.functional.cross_entropy(scores, labels[is_token], reduction="none")
    rows = torch.arange(2).repeat_interleave(is_token.sum(1))
    model.backward((torch.zeros(2).index_add(0, rows, of_tokens) / rows.bincount()).sum())
    assert torch.equal(model.tensors.take_gradient(), found)


def test_adapters_of_a_larger_rank_than_a_layer_are_rejected(base: Path) -> None:
    layer = open_reference(base)[0].language_backbone.encoder.block[0].layer[0].SelfAttention.q
    side = min(layer.weight.shape)
    TrainableModel(open_reference(base)[0], lora=LoRA(rank=side))
    with pytest.raises(ProblemError) as caught:
        TrainableModel(open_reference(base)[0], lora=LoRA(rank=side + 1))
    assert caught.value.problem.code is ErrorCode.CONFIGURATION
    assert caught.value.problem.where == "lora.rank"
    assert f"at most {side}" in caught.value.problem.expected
