"""Tiny models with random weights and tokenizers learned from a few texts: reference folders for the tests."""

from collections.abc import Iterable
from pathlib import Path

import tokenizers
import torch
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
from torch import Tensor, nn

from evaluator.docvqa.architecture import VisualConfig, VT5Config
from evaluator.docvqa.tokenization import END, PAD, UNKNOWN, Tokenizer
from evaluator.docvqa.vt5 import IGNORED, VT5, Batch


def random_vt5(config: VT5Config, *, seed: int) -> VT5:
    """Return a model with random weights, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return VT5(config)


def mean_loss(model: VT5, batch: Batch) -> Tensor:
    """Return the mean cross-entropy (), a scalar, over the tokens of all answers of the batch."""
    assert batch.labels is not None
    logits = model.logits(batch).flatten(0, 1)
    return nn.functional.cross_entropy(logits, batch.labels.flatten(), ignore_index=IGNORED)


def create_reference(
    folder: Path, texts: Iterable[str], *, seed: int, vocab_size: int = 2048
) -> tuple[VT5, Tokenizer]:
    """Write a tiny model with random weights, and a tokenizer learned from `texts`; the same for the same input.

    `texts` should be public: their frequent words can be read from the tokenizer.
    """
    tokenizer = train_tokenizer(texts, vocab_size)
    model = random_vt5(tiny_config(tokenizer.vocab_size), seed=seed)
    model.save(folder)
    tokenizer.save(folder)
    return model, tokenizer


def tiny_config(vocab_size: int) -> VT5Config:
    """Return a model of the same make with under half a million weights, for demonstrations and tests.

    It reads the question and the first words of a page only, which keeps it quick.
    """
    return VT5Config(
        vocab_size=vocab_size,
        max_input_tokens=64,
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_decoder_layers=2,
        num_heads=4,
        box_scale=1000,
        visual=VisualConfig(
            hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=32
        ),
    )


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Return a byte-pair tokenizer learned from `texts`, the same for the same texts in the same order.

    Digits and punctuation are single tokens, so that amounts, dates and email addresses are spelled out the same way
    wherever they appear; any text can be written, since single bytes are tokens too. `vocab_size` is an upper
    bound, and at least 259: the bytes and the special tokens.
    """
    backend = tokenizers.Tokenizer(models.BPE(unk_token=UNKNOWN))
    backend.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
            normalizers.Prepend(" "),
        ]
    )
    return trained_tokenizer(backend, texts, vocab_size, digits=1)


def trained_tokenizer(
    backend: tokenizers.Tokenizer, texts: Iterable[str], vocab_size: int, *, digits: int
) -> Tokenizer:
    """Learn byte pairs from `texts`, in words and numbers, of which up to so many digits are read at a time."""
    number = r"\d" if digits == 1 else rf"\d{{1,{digits}}}"
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(rf" ?{number}| ?\p{{L}}+| ?[^\s\d\p{{L}}]"), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[PAD, END, UNKNOWN],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend)
