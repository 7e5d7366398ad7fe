"""Gaps that a draft leaves for its team: what no file of a run says, marked so that it isn't submitted by mistake."""

from pathlib import Path

from evaluator.errors import ErrorCode, Problem, ProblemError, shorten

MARK = "[FILL IN:"
# What has lines to name. A PDF is written from something else.
TEXTS = {".ipynb", ".md"}


def gap(what: str) -> str:
    """Return the mark, in Markdown, of what the team has to write in its place."""
    return f"**{MARK} {what}]**"


def gap_problems(file: Path) -> list[Problem]:
    """Return the gaps that are left in a draft, one problem for each line that has one; none for a PDF.

    Raises:
        OSError: There is no such file.
    """
    file.stat()
    if file.suffix.lower() not in TEXTS:
        return []
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return [
        Problem.of(
            ErrorCode.SUBMISSION_INCOMPLETE,
            message="The draft still has a gap, which only your team can fill in.",
            where=f"{file}, line {number}",
            expected="your own words",
            found=shorten(line[line.index(MARK) :].rstrip("]*")),
            next_step=f"Replace everything from {MARK} to the closing bracket, then run the same command again.",
        )
        for number, line in enumerate(lines, 1)
        if MARK in line
    ]


def require_filled(*files: Path) -> None:
    """Raise `ProblemError` (`E_SUBMISSION_INCOMPLETE`) with every gap that is left in these files."""
    if problems := [problem for file in files for problem in gap_problems(file)]:
        raise ProblemError(*problems)
