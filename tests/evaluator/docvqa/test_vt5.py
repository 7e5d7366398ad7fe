import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.models.t5.modeling_t5 import T5ForConditionalGeneration

from evaluator.checkpoints.inspection import inspect_checkpoint
from evaluator.docvqa.architecture import ALIASES, SHARED_EMBEDDING, VT5Config, read_config, write_config
from evaluator.docvqa.tokenization import EncodedText
from evaluator.docvqa.vt5 import VT5, WEIGHTS, Batch, _t5_config
from evaluator.errors import ErrorCode, ProblemError
from tests.evaluator.docvqa.factories import make_model
from tests.tiny_reference import mean_loss, random_vt5, tiny_config

LM_HEAD = "language_backbone.lm_head.weight"
PUBLISHED_NAMES = Path(__file__).parents[1] / "data" / "vt5-reference" / "model.safetensors"


def make_batch(model: VT5, lengths: tuple[int, ...] = (4, 30, 11), *, labels: bool = True) -> Batch:
    generator = torch.Generator().manual_seed(1)
    texts = [
        EncodedText(
            torch.randint(3, model.config.vocab_size, (length,), generator=generator).tolist(),
            [tuple(box) for box in torch.rand(length, 4, generator=generator).tolist()],
        )
        for length in lengths
    ]
    size = model.config.visual.image_size
    features = model.page_features(torch.randn(len(lengths), 3, size, size, generator=generator))
    answers = [[9, 8, 7, 1], [5, 1], [4, 4, 1]][: len(lengths)]
    return Batch.pad(texts, features, answers if labels else None)


def rows(batch: Batch, row: int) -> Batch:
    length = int(batch.attention_mask[row].sum())
    one = slice(row, row + 1)
    return Batch(
        batch.input_ids[one, :length],
        batch.boxes[one, :length],
        batch.attention_mask[one, :length],
        batch.features[one],
    )


def weights(model: VT5) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def codes(error: pytest.ExceptionInfo[ProblemError]) -> list[ErrorCode]:
    return [problem.code for problem in error.value.problems]


def test_the_full_size_model_has_the_published_number_of_parameters() -> None:
    with torch.device("meta"):
        model = VT5(VT5Config())
    assert sum(parameter.numel() for parameter in model.parameters()) == 311_467_008
    assert sum(parameter.numel() for parameter in model.trainable_parameters().values()) == 225_659_136


def test_parameters_carry_the_names_of_published_checkpoints() -> None:
    assert make_model().state_dict().keys() - set(ALIASES) == load_file(PUBLISHED_NAMES).keys()


def test_the_shared_embedding_is_one_trainable_parameter() -> None:
    trainable = make_model().trainable_parameters()
    assert SHARED_EMBEDDING in trainable
    assert not trainable.keys() & set(ALIASES)


def test_the_image_tower_is_trained_only_where_the_config_asks_for_it() -> None:
    pixels = torch.randn(1, 3, 32, 32)
    frozen, trained = make_model(), make_model(train_visual_tower=True)
    assert not any("image_model" in name for name in frozen.trainable_parameters())
    assert not frozen.page_features(pixels).requires_grad
    assert any("image_model" in name for name in trained.trainable_parameters())
    assert trained.page_features(pixels).requires_grad


def test_page_features_are_the_same_in_training() -> None:
    model, pixels = make_model(), torch.randn(2, 3, 32, 32)
    before = model.page_features(pixels)
    assert torch.equal(model.train().page_features(pixels), before)


def test_attention_is_fused_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = Mock(wraps=torch.nn.functional.scaled_dot_product_attention)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", fused)
    model = make_model()
    model.logits(make_batch(model))
    assert fused.call_count == 2 + 2 * 2  # encoder, and in the decoder self- and cross-attention


def test_random_weights_follow_the_seed_alone() -> None:
    config = tiny_config(300)
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first = weights(random_vt5(config, seed=1))
    assert torch.equal(torch.random.get_rng_state(), state)
    again, other = weights(random_vt5(config, seed=1)), weights(random_vt5(config, seed=2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first[SHARED_EMBEDDING], other[SHARED_EMBEDDING])
    assert all(tensor.isfinite().all() for tensor in first.values())


def test_training_brings_the_loss_down_and_leaves_the_image_tower_alone() -> None:
    model = make_model().train()
    batch = make_batch(model)
    tower = {name: tensor.clone() for name, tensor in weights(model).items() if "image_model" in name}
    optimizer = torch.optim.AdamW(model.trainable_parameters().values(), lr=1e-2)
    first = mean_loss(model, batch).item()
    for _ in range(10):
        optimizer.zero_grad()
        torch.autograd.backward(mean_loss(model, batch))
        optimizer.step()
    assert mean_loss(model, batch).item() < first / 2
    assert all(torch.equal(tensor, weights(model)[name]) for name, tensor in tower.items())


def test_a_row_means_the_same_in_every_batch() -> None:
    model = make_model()
    batch = make_batch(model)
    together, mask = model.encode(batch)
    ids, confidences = model.generate(batch)
    for row in range(3):
        alone, _ = model.encode(rows(batch, row))
        torch.testing.assert_close(together[row][mask[row]], alone[0], atol=1e-5, rtol=0)
        ids_alone, confidence_alone = model.generate(rows(batch, row))
        assert ids[row, : ids_alone.shape[1]].tolist() == ids_alone[0].tolist()
        assert not ids[row, ids_alone.shape[1] :].any()
        assert confidences[row].item() == pytest.approx(confidence_alone.item(), rel=1e-4)


@pytest.mark.parametrize("decoder_layers", [1, 3])
def test_generation_is_what_scoring_its_own_answer_finds_most_likely(decoder_layers: int) -> None:
    model = make_model(num_decoder_layers=decoder_layers)
    batch = make_batch(model, (12,), labels=False)
    ids, confidence = model.generate(batch)
    probabilities = model.logits(Batch(**{**vars(batch), "labels": ids})).softmax(-1)[0]
    assert ids.shape[1] <= 19
    assert probabilities.argmax(-1).tolist() == ids[0].tolist()
    assert confidence.item() == pytest.approx(probabilities.amax(-1)[:-1].prod().item(), rel=1e-4)


def test_the_layout_counts_under_scale_1000() -> None:
    model = make_model()
    batch = make_batch(model)
    moved = batch.boxes.roll(1, dims=1)
    before = model.embed(batch.input_ids, batch.boxes, batch.features)
    assert not torch.allclose(before, model.embed(batch.input_ids, moved, batch.features))


@pytest.mark.parametrize("value", [-3.0, 7.0, float("nan"), float("inf")])
def test_boxes_off_the_page_are_brought_back_to_its_edge(value: float) -> None:
    model = make_model()
    batch = make_batch(model)
    boxes = torch.full_like(batch.boxes, value)
    assert model.embed(batch.input_ids, boxes, batch.features).isfinite().all()


def test_a_model_survives_saving_and_opening(tmp_path: Path) -> None:
    model = make_model()
    model.save(tmp_path)
    opened = VT5.from_folder(tmp_path)
    assert opened.config == model.config
    assert not opened.training
    assert opened.trainable_parameters().keys() == model.trainable_parameters().keys()
    assert all(torch.equal(tensor, weights(opened)[name]) for name, tensor in weights(model).items())
    batch = make_batch(model)
    assert torch.equal(opened.logits(batch), model.logits(batch))


def test_saved_weights_have_the_tied_embedding_once_in_float32(tmp_path: Path) -> None:
    make_model().to(torch.bfloat16).save(tmp_path)
    saved = load_file(tmp_path / "model.safetensors")
    assert not saved.keys() & set(ALIASES)
    assert {tensor.dtype for tensor in saved.values()} == {torch.float32}


def test_an_opened_model_keeps_its_weights_when_its_file_is_overwritten(tmp_path: Path) -> None:
    make_model().save(tmp_path)
    opened = VT5.from_folder(tmp_path)
    before = weights(opened)[SHARED_EMBEDDING].clone()
    path = tmp_path / "model.safetensors"
    with path.open("r+b") as file:
        file.write(b"\0" * path.stat().st_size)
    assert torch.equal(weights(opened)[SHARED_EMBEDDING], before)


def test_a_pickled_original_with_aliases_opens(tmp_path: Path) -> None:
    model = make_model()
    write_config(model.config, tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    opened = VT5.from_folder(tmp_path)
    assert opened.language_backbone.lm_head.weight is opened.language_backbone.shared.weight
    assert torch.equal(weights(opened)[SHARED_EMBEDDING], weights(model)[SHARED_EMBEDDING])


def test_a_pickle_that_runs_code_is_rejected(tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return eval, ("open('ran', 'w')",)

    write_config(make_model().config, tmp_path)
    torch.save({"weight": Payload()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ProblemError) as error:
        VT5.from_folder(tmp_path)
    assert codes(error) == [ErrorCode.CHECKPOINT_PICKLE]
    assert not Path("ran").exists()


def test_every_tensor_that_does_not_fit_is_named(tmp_path: Path) -> None:
    model = make_model()
    model.save(tmp_path)
    tensors = weights(model)
    bias = "spatial_embedding.LayerNorm.bias"
    shape = "visual_embedding.visual_emb_matcher.layers.0.weight"
    dtype = "visual_embedding.image_model.encoder.layer.1.lambda_2"
    save_file(
        {
            **{name: tensor for name, tensor in tensors.items() if name != bias},
            shape: tensors[shape][:3].clone(),
            dtype: tensors[dtype].long(),
            "lora_A.weight": torch.zeros(2),
            LM_HEAD: tensors[SHARED_EMBEDDING] + 1,
        },
        tmp_path / "checkpoint.safetensors",
    )
    with pytest.raises(ProblemError) as error:
        VT5.from_checkpoint(tmp_path, tmp_path / "checkpoint.safetensors")
    assert {(problem.code, problem.where.split("tensor ")[1]) for problem in error.value.problems} == {
        (ErrorCode.CHECKPOINT_MISSING_TENSOR, bias),
        (ErrorCode.CHECKPOINT_SHAPE, shape),
        (ErrorCode.CHECKPOINT_DTYPE, dtype),
        (ErrorCode.CHECKPOINT_EXTRA_TENSOR, "lora_A.weight"),
        (ErrorCode.CHECKPOINT_EXTRA_TENSOR, LM_HEAD),
    }


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, ErrorCode.ARTIFACT_MISSING),
        (b"", ErrorCode.CHECKPOINT_FORMAT),
        (b"PK\3\4" * 9, ErrorCode.CHECKPOINT_FORMAT),
    ],
)
def test_a_checkpoint_that_is_no_safetensors_file_is_rejected(
    tmp_path: Path, content: bytes | None, code: ErrorCode
) -> None:
    write_config(make_model().config, tmp_path)
    checkpoint = tmp_path / "checkpoint.safetensors"
    if content is not None:
        checkpoint.write_bytes(content)
    with pytest.raises(ProblemError) as error:
        VT5.from_checkpoint(tmp_path, checkpoint)
    assert codes(error) == [code]


WRONG = ('"d_model": "wide"', '"d_model": -1', '"feed_forward_proj": "gated-silu"')


@pytest.mark.parametrize(
    "content",
    [None, "", "[]", *(f'{{"model_type": "t5", {wrong}}}' for wrong in WRONG)],
)
def test_a_broken_configuration_is_rejected(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ProblemError) as error:
        read_config(tmp_path)
    assert codes(error) == [ErrorCode.REFERENCE_FORMAT]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"model_type": "qwen3_vl", "architectures": ["Qwen3VLForConditionalGeneration"]}, "qwen3_vl"),
        ({"architectures": ["T5ForConditionalGeneration"]}, "T5ForConditionalGeneration"),
        ({"model_type": None}, "None"),
        ({"is_gated_act": True}, "True"),
        ({"feed_forward_proj": "gated-gelu", "dense_act_fn": "silu"}, "silu"),
    ],
    ids=["another model", "T5 alone", "no kind", "gates", "another activation"],
)
def test_a_configuration_of_another_architecture_is_rejected_as_such(
    tmp_path: Path, change: dict[str, object], found: str
) -> None:
    write_config(VT5Config(), tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change), encoding="utf-8-sig")
    with pytest.raises(ProblemError) as error:
        read_config(tmp_path)
    assert codes(error) == [ErrorCode.REFERENCE_ARCHITECTURE]
    assert error.value.problem.found == found


def test_a_configuration_that_names_no_architecture_is_not_taken_for_a_vt5(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ProblemError) as error:
        read_config(tmp_path)
    assert codes(error) == [ErrorCode.REFERENCE_ARCHITECTURE]


def test_an_image_tower_with_another_activation_is_rejected(tmp_path: Path) -> None:
    write_config(VT5Config(), tmp_path)
    path = tmp_path / "visual_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"hidden_act": "relu"}))
    with pytest.raises(ProblemError, match="hidden_act"):
        read_config(tmp_path)


def test_t5_1_1_and_flan_t5_can_be_the_language_model_of_base_weights(tmp_path: Path) -> None:
    """Their feed-forward layers have gates, and they score answers with a table of its own."""
    config = tiny_config(300).model_copy(
        update={"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    )
    theirs = T5ForConditionalGeneration(_t5_config(config)).eval()
    theirs.lm_head = torch.nn.Linear(config.d_model, config.vocab_size, bias=False)
    made = random_vt5(config, seed=1)
    made.language_backbone.load_state_dict(theirs.state_dict())
    made.save(tmp_path)
    assert read_config(tmp_path) == config
    assert "answer_head.weight" in load_file(tmp_path / WEIGHTS)
    model, batch = VT5.from_folder(tmp_path), make_batch(made)
    assert batch.labels is not None
    embeddings, mask = model.encoder_input(batch)
    expected = theirs(
        inputs_embeds=embeddings,
        attention_mask=mask,
        decoder_input_ids=theirs.prepare_decoder_input_ids_from_labels(batch.labels),
    ).logits
    assert torch.equal(model.logits(batch), expected)
    inspect_checkpoint(tmp_path / WEIGHTS, tmp_path / WEIGHTS)


def test_without_a_visual_configuration_the_tower_is_dit_base(tmp_path: Path) -> None:
    write_config(VT5Config(), tmp_path)
    (tmp_path / "visual_config.json").unlink()
    assert read_config(tmp_path) == VT5Config()


def test_opening_a_model_needs_no_network_and_prints_nothing(tmp_path: Path) -> None:
    make_model().save(tmp_path)
    script = f"""
import socket
def reject(*args, **kwargs):
    raise AssertionError("the network was used")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = reject
from pathlib import Path
from evaluator.docvqa.reference import open_reference
from tests.tiny_reference import create_reference
from evaluator.docvqa.tokenization import Tokenizer
create_reference(Path({str(tmp_path)!r}) / "made", ["total 12.50"], seed=1)
open_reference(Path({str(tmp_path)!r}) / "made")
Tokenizer.from_folder(Path({str(PUBLISHED_NAMES.parent)!r}))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
