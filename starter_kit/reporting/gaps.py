"""Gaps in the drafts on this machine; what a gap is says `evaluator.messages.gaps`, for the sites as well."""

from pathlib import Path

from evaluator.errors import Problem, ProblemError
from evaluator.messages.gaps import MARK, gaps_in, is_text


def gap(what: str) -> str:
    """Return the mark, in Markdown, of what the team has to write in its place."""
    return f"{MARK} {what}]"


def gap_problems(file: Path) -> list[Problem]:
    """Return the gaps that are left in a draft, one problem for each line that has one; none for a PDF.

    Raises:
        OSError: There is no such file.
    """
    file.stat()
    if not is_text(file.name):
        return []
    return list(gaps_in(file.read_bytes(), str(file), then="run the same command again"))


def require_filled(*files: Path) -> None:
    """Raise `ProblemError` (`E_SUBMISSION_INCOMPLETE`) with every gap that is left in these files."""
    if problems := [problem for file in files for problem in gap_problems(file)]:
        raise ProblemError(*problems)
