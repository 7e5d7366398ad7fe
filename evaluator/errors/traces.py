"""Where and how an error arose, for the operators: nothing that could quote a test set or open an artifact."""

import re
import traceback

from evaluator.errors import ProblemError

MAX_TRACE_CHARACTERS = 20_000
# Errors whose messages name files, devices and places in files, but never quote a test set's questions or answers.
SAFE_TO_QUOTE = (OSError, RuntimeError, ImportError, MemoryError, ProblemError)


def trace_of(error: BaseException, *, quoted: bool) -> str:
    """Return the places that `error` passed, its causes first.

    Args:
        quoted: Whether all messages may be quoted; else only those of `SAFE_TO_QUOTE`.
    """
    parts = []
    current: BaseException | None = error
    while current is not None:
        quotable = quoted or isinstance(current, SAFE_TO_QUOTE)
        message = str(current) if quotable else "(not quoted: it may speak of the test set)"
        parts.append(
            "".join(traceback.format_tb(current.__traceback__)) + f"{type(current).__qualname__}: {message}"
        )
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    text = re.sub(r"[a-z][a-z0-9+.-]*://\S+", "<url>", "\n\n".join(reversed(parts)))
    return text[-MAX_TRACE_CHARACTERS:]
