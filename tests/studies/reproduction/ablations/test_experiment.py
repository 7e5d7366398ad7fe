"""The ablations on a task that is far too small to learn anything."""

from dataclasses import replace
from pathlib import Path

import pytest

from starter_kit.data.forms import FormSettings
from tests.studies.reproduction.ablations.experiment import AblationExperiment
from tests.studies.reproduction.ablations.rows import EPOCH_ROWS, STAGED_RUNS, STAGES, Stage
from tests.studies.reproduction.experiment import Results
from tests.studies.reproduction.rows import Outcome

TASK = FormSettings(providers=10, clients=10, valid_forms=4, test_forms=8)
_, _, ONE, TWO = STAGED_RUNS
# A row that ends where the stages of `TWO` do.
SAME = replace(TWO.run, name="the same as a run")
ROWS = [EPOCH_ROWS[1, 0], EPOCH_ROWS[1, 9], SAME]


def experiment(folder: Path, said: list[str]) -> AblationExperiment:
    return AblationExperiment(folder, 1, task=TASK, say=said.append, rows=ROWS, staged_runs=[ONE, TWO])


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return experiment(tmp_path_factory.mktemp("ablations"), []).run()


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
    assert experiment(tmp_path, said).run(results) == results
    assert not said


def test_stages_are_found_again_where_one_of_them_is_missing(results: Results, tmp_path: Path) -> None:
    missing = ONE.row(2, Stage.UPLOAD).name
    earlier = [outcome for outcome in results.outcomes if outcome.row != missing]
    said: list[str] = []
    found = experiment(tmp_path, said).run(results.model_copy(update={"outcomes": earlier}))
    assert found == results
    assert [line.split(":")[0] for line in said] == [f"seed 1, {ONE.title}"]


def test_what_is_forgotten_is_trained_again(tmp_path: Path) -> None:
    said: list[str] = []
    one_row = AblationExperiment(tmp_path, 1, task=TASK, say=said.append, rows=ROWS[:1], staged_runs=[])
    before = one_row.run()
    one_row.forget()
    assert not [*tmp_path.glob("*/model.safetensors")]
    assert one_row.run() == before
    assert len(said) == 2
