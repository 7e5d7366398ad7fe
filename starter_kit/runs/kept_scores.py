"""The scores that `pfl evaluate` leaves in a run folder, for its report and for comparisons."""

from pathlib import Path

from evaluator.contracts import ScoringResult
from starter_kit.reporting.metrics import SUMMARY, RunSummary, read_summary, write_summary
from starter_kit.reporting.report import write_report


def keep_scores(folder: Path, result: ScoringResult, split: str) -> None:
    """Write the scores into the folder's summary and report; does nothing where the folder has no summary.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) A file of the run can't be read or written.
    """
    path = folder / SUMMARY
    if path.is_file():
        scores = {"anls": result.anls, "accuracy": result.accuracy, "split": split}
        write_summary(path, RunSummary.model_validate({**dict(read_summary(path)), **scores}))
        write_report(folder)
