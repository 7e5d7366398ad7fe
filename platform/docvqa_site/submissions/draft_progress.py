"""The three steps of a draft, as the progress line of its page shows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.template.defaultfilters import pluralize

from docvqa_site.submissions.code import missing_code, missing_description, needs_code
from docvqa_site.submissions.draft_files import DraftFile, RunFiles
from docvqa_site.submissions.draft_problems import ToDo, description_gaps
from docvqa_site.submissions.models import Submission


@dataclass(frozen=True)
class DraftStep:
    """One step: the place on the page where it is taken, and in words what is left of it."""

    name: str
    anchor: str
    state: str
    is_done: bool
    is_next: bool = False


def draft_steps(
    submission: Submission,
    boards: Sequence[RunFiles],
    proofs: Sequence[DraftFile],
    to_dos: Sequence[ToDo],
) -> list[DraftStep]:
    """Return the steps of a draft; the first one that isn't done is the next.

    What the draft has isn't done while it has gaps, or can't be read.
    """
    places = {one.place for one in to_dos}
    files = [file for board in boards for file in board.files] + list(proofs)
    needed = [file for file in files if file.is_needed]
    ready_files = sum(file.is_ready and file.place not in places for file in needed)
    has_runs = any(board.run for board in boards)
    # How many files a draft needs depends on its runs.
    files_state = f"{ready_files} of {len(needed)} files" if has_runs else "no run yet"
    ready = "would have no rank" if any(board.lacks_rank for board in boards) else "ready to submit"
    gaps = len(description_gaps(submission))
    lacks_code = missing_code(submission) is not None
    is_described = not (gaps or lacks_code or missing_description(submission))
    described = (
        f"{gaps} gap{pluralize(gaps)} to fill in" if gaps else "code missing" if lacks_code else "described"
    )
    undescribed = "title only" if needs_code(submission) else "title only; the rest is optional"
    steps = [
        # Elsewhere the title alone is enough to submit, but nobody learns from it what the method does.
        ("Description", "describe", described if submission.description else undescribed, is_described),
        ("Files", "files", files_state, has_runs and ready_files == len(needed)),
        ("Submission", "submit", "not ready" if to_dos else ready, False),
    ]
    next_step = next(number for number, (*_, is_done) in enumerate(steps) if not is_done)
    return [
        DraftStep(name, anchor, state, is_done, number == next_step)
        for number, (name, anchor, state, is_done) in enumerate(steps)
    ]
