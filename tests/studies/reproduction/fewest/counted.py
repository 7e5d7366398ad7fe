"""Rows whose bytes are those that the evaluator counts: their checkpoint is computed from their messages."""

from dataclasses import dataclass

from evaluator.messages.jobs import CommunicationResult, TrackRules
from starter_kit.evaluation.steps import check_run
from starter_kit.runs.folder import RunFolder
from starter_kit.weights import tiny_vt5
from tests.studies.reproduction.experiment import TASK, Experiment, TrainedRow
from tests.studies.reproduction.fewest.rows import CANDIDATES, CHANGES, LADDER
from tests.studies.reproduction.rows import Outcome

# First downloads are free, as on a track by default.
RULES = TrackRules(reference="local", test_set="local", clients=TASK.clients)


@dataclass(frozen=True)
class CountedRow(TrainedRow):
    """A row whose run is trained, scored on the test split, and folded."""

    def measure(self, experiment: Experiment, seed: int) -> list[Outcome]:
        """Return the scores of the run with its counted bytes, by which a track would rank it."""
        counted = counted_bytes(RunFolder(experiment.run_folder(self.row, seed)))
        return [
            outcome.model_copy(update={"bytes_total": counted})
            for outcome in super().measure(experiment, seed)
        ]


def counted_bytes(run: RunFolder) -> int:
    """Return the bytes of a run that count for its rank. Raises `ValueError` where they aren't counted."""
    for outcome in check_run(run, RULES, tiny_vt5.FOLDER):
        if isinstance(outcome.result, CommunicationResult) and outcome.result.counting == "counted":
            return outcome.result.bytes_total
    raise ValueError(f"the bytes of {run.path} are not counted")


PARTS, ONCE = ([CountedRow(row) for row in rows] for rows in ([*LADDER, *CANDIDATES], CHANGES))
