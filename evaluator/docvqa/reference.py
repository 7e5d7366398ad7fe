"""A track's reference folder: the architecture, the tokenizer and the base weights that everyone starts from.

A reference folder holds `config.json`, `visual_config.json`, `tokenizer.json` and `model.safetensors`. Organizers
publish it; participants train from it; workers take everything of a submitted model but its weights from it.
"""

from collections.abc import Iterable
from pathlib import Path

from evaluator.docvqa.architecture import tiny_config
from evaluator.docvqa.tokenization import Tokenizer, train_tokenizer
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, ProblemError


def create_reference(
    folder: Path, texts: Iterable[str], *, seed: int, vocab_size: int = 2048
) -> tuple[VT5, Tokenizer]:
    """Write a tiny model with random weights, and a tokenizer learned from `texts`; the same for the same input.

    `texts` should be public: their frequent words can be read from the tokenizer.
    """
    tokenizer = train_tokenizer(texts, vocab_size)
    model = VT5.from_config(tiny_config(tokenizer.vocab_size), seed=seed)
    model.save(folder)
    tokenizer.save(folder)
    return model, tokenizer


def open_reference(folder: Path) -> tuple[VT5, Tokenizer]:
    """Return the model and tokenizer of a reference folder, in the published layout or in that of this benchmark.

    Raises `ProblemError` where a file is missing, broken or doesn't fit the others.
    """
    model, tokenizer = VT5.from_folder(folder), Tokenizer.from_folder(folder)
    if tokenizer.vocab_size > model.config.vocab_size:
        raise ProblemError.of(
            ErrorCode.REFERENCE_FORMAT,
            where=str(folder),
            expected=f"a tokenizer of at most {model.config.vocab_size} tokens, as many as the model has",
            found=tokenizer.vocab_size,
        )
    return model, tokenizer
