"""Gaps that a draft leaves for its team: what no file of a run says, marked so that it isn't submitted by mistake."""

from collections.abc import Iterator
from pathlib import PurePath

from evaluator.errors import ErrorCode, Problem, shorten
from evaluator.messages.untrusted_text import decode

MARK = "[FILL IN:"
# What has lines to name. A PDF is written from something else.
TEXTS = {".ipynb", ".md"}


def is_text(filename: str) -> bool:
    """Return whether a file of this name is searched for gaps."""
    return PurePath(filename).suffix.lower() in TEXTS


def gaps_in(text: str | bytes, name: str, *, then: str) -> Iterator[Problem]:
    """Yield the gaps that are left in a draft, one problem for each line that has one.

    `name` says in the problems which draft it is, and `then` what to do once the gap is filled.
    """
    for number, line in enumerate(_decoded(text).splitlines(), 1):
        if MARK in line:
            yield Problem.of(
                ErrorCode.SUBMISSION_INCOMPLETE,
                message="The draft still has a gap, which only your team can fill in.",
                where=f"{name}, line {number}",
                expected="your own words",
                found=shorten(line[line.index(MARK) :].rstrip("*")),
                next_step=f"Replace everything from {MARK} to the closing bracket, then {then}.",
            )


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return decode(text)
    except UnicodeDecodeError:
        return text.decode(errors="replace")
