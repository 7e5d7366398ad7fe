"""The ablations on a task that is far too small to learn anything."""

from dataclasses import replace
from pathlib import Path

import pytest

from starter_kit.data.forms import FormSettings
from tests.studies.reproduction.ablations.rows import EPOCH_ROWS, STAGED_RUNS, STAGES, Stage
from tests.studies.reproduction.ablations.staged_scores import StagedScores
from tests.studies.reproduction.experiment import Experiment, Part, Results, TrainedRow
from tests.studies.reproduction.rows import Outcome

pytestmark = pytest.mark.slow

TASK = FormSettings(providers=10, clients=10, valid_forms=4, test_forms=8)
_, _, ONE, TWO = STAGED_RUNS
# A row that ends where the stages of `TWO` do.
SAME = replace(TWO.run, name="the same as a run")
ROWS = [EPOCH_ROWS[1, 0], EPOCH_ROWS[1, 9], SAME]


PARTS: list[Part] = [*map(TrainedRow, ROWS), StagedScores(ONE), StagedScores(TWO)]


def run(folder: Path, said: list[str], earlier: Results | None = None) -> Results:
    *_, results = Experiment(folder, 1, parts=PARTS, task=TASK, say=said.append).run(earlier)
    return results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(tmp_path_factory.mktemp("ablations"), [])


@pytest.fixture(scope="module")
def by_row(results: Results) -> dict[str, Outcome]:
    return {outcome.row: outcome for outcome in results.outcomes}


def test_every_row_and_every_stage_has_an_outcome(results: Results) -> None:
    assert [outcome.row for outcome in results.outcomes] == [
        *(row.name for row in ROWS),
        *(run.row(*stage).name for run in (ONE, TWO) for stage in STAGES),
    ]


def test_the_stages_end_where_the_run_does_that_is_trained_with_the_same_settings(
    by_row: dict[str, Outcome],
) -> None:
    run, last = by_row[SAME.name], by_row[TWO.row(2, Stage.AGGREGATION).name]
    assert (last.anls, last.accuracy, last.bytes_total) == (run.anls, run.accuracy, run.bytes_total)


def test_outcomes_that_count_are_kept(results: Results, tmp_path: Path) -> None:
    said: list[str] = []
    assert run(tmp_path, said, results) == results
    assert not said


def test_stages_are_found_again_where_one_of_them_is_missing(results: Results, tmp_path: Path) -> None:
    missing = ONE.row(2, Stage.UPLOAD).name
    earlier = [outcome for outcome in results.outcomes if outcome.row != missing]
    said: list[str] = []
    found = run(tmp_path, said, results.model_copy(update={"outcomes": earlier}))
    assert found == results
    assert [line.split(":")[0] for line in said] == [f"seed 1, {ONE.title}"]
