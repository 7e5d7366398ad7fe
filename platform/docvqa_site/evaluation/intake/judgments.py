"""What was judged of the files of a run before it was scored; see `docvqa_site.submissions.judged`.

Such files are rejected when they are submitted. Here follows what was unknown then: weights that are the same in a file
of other metadata, and what was judged while the run was in evaluation.
"""

from docvqa_site.evaluation.intake.near_copies import same_weights
from docvqa_site.submissions.judged import judged_files, judged_hashes, judgment_in_words, taken_off
from docvqa_site.submissions.models import Run


def judged_before(run: Run) -> str:
    """Return why a run that is scored for the first time has no rank; empty if nothing was judged of its files.

    A run that was scored before keeps what organizers have decided about it since.
    """
    if run.scored_at is not None or run.submission.practice or run.disqualified_because:
        return ""
    file = judged_files(run.submission.track, judged_hashes(run)).exclude(run=run).first()
    if file is not None and file.run is not None:
        return judgment_in_words(file.run, file.get_kind_display())
    other = same_weights(run).filter(taken_off()).first()
    return judgment_in_words(other, "checkpoint") if other else ""
