from pathlib import Path

import pytest

from evaluator.docvqa.reference import open_reference
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, ProblemError
from tests.tiny_reference import create_reference, train_tokenizer

TEXTS = [f"invoice {n} total {n * 37}.50 due 10/{n % 12 + 1}/18" for n in range(100)]


def test_a_reference_folder_opens_and_fits_together(tmp_path: Path) -> None:
    create_reference(tmp_path, TEXTS, seed=1, vocab_size=270)
    model, tokenizer = open_reference(tmp_path)
    assert model.config.vocab_size == tokenizer.vocab_size == 270
    assert {path.name for path in tmp_path.iterdir()} == {
        "config.json",
        "visual_config.json",
        "tokenizer.json",
        "model.safetensors",
    }


def test_a_reference_is_the_same_for_the_same_texts_and_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        create_reference(tmp_path / name, TEXTS, seed=seed, vocab_size=300)

    def content(name: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    assert content("a") == content("b")
    assert content("a")["model.safetensors"] != content("c")["model.safetensors"]


def test_a_reference_is_small_and_reads_the_layout(tmp_path: Path) -> None:
    model, _ = create_reference(tmp_path, TEXTS, seed=1)
    assert sum(parameter.numel() for parameter in model.parameters()) < 500_000
    assert model.config.box_scale == 1000


def test_a_tokenizer_with_more_tokens_than_the_model_is_rejected(tmp_path: Path) -> None:
    create_reference(tmp_path, TEXTS, seed=1, vocab_size=280)
    train_tokenizer(TEXTS, 300).save(tmp_path)
    with pytest.raises(ProblemError) as error:
        open_reference(tmp_path)
    assert error.value.problem.code is ErrorCode.REFERENCE_FORMAT


def test_the_workers_open_a_submission_with_the_reference_and_a_checkpoint(tmp_path: Path) -> None:
    create_reference(tmp_path / "reference", TEXTS, seed=1, vocab_size=300)
    submitted, _ = create_reference(tmp_path / "other", TEXTS, seed=2, vocab_size=300)
    opened = VT5.from_checkpoint(tmp_path / "reference", tmp_path / "other" / "model.safetensors")
    expected = submitted.state_dict()
    assert all(tensor.equal(expected[name]) for name, tensor in opened.state_dict().items())
