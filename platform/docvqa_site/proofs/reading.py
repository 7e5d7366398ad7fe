"""A proof's bytes as they are in the store, verified before anything is made of them."""

import hashlib
from pathlib import PurePath

from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.untrusted_text import decode

MAX_PROOF_BYTES = 10 * 1024 * 1024


def is_pdf(upload: Upload) -> bool:
    """Return whether the proof is a PDF file, by its name."""
    return PurePath(upload.filename).suffix.lower() == ".pdf"


def read_proof(upload: Upload) -> bytes:
    """Return the proof's bytes, one more than allowed at most.

    Raises:
        FileNotFoundError: The store doesn't have it.
        ProblemError: `E_ARTIFACT_HASH` unless they are the announced ones.
    """
    with current_store().open(upload.store_key) as file:
        content = file.read(MAX_PROOF_BYTES + 1)
    found = hashlib.sha256(content).hexdigest()
    # A larger one is rejected for its size, and never hashed to its end.
    if found != upload.sha256 and len(content) <= MAX_PROOF_BYTES:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_HASH, where=upload.filename, expected=upload.sha256, found=found
        )
    return content


def decoded(content: bytes, filename: str) -> str:
    """Return the text of a Markdown file or a notebook. Raises `ProblemError`: `E_PROOF_FORMAT`."""
    try:
        return decode(content)
    except UnicodeDecodeError as error:
        raise ProblemError.of(
            ErrorCode.PROOF_FORMAT, where=f"{filename}, byte {error.start}", expected="UTF-8 text"
        ) from error
