"""A track's reference folder: the architecture, the tokenizer and the base weights that everyone starts from.

A reference folder holds `config.json`, `visual_config.json`, `tokenizer.json` and `model.safetensors`. Organizers
publish it; participants train from it; workers take everything of a submitted model but its weights from it.
"""

from pathlib import Path

from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5
from evaluator.errors import ErrorCode, ProblemError


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
