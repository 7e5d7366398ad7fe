"""The whole experiment on a task that is far too small to learn anything."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset
from evaluator.leakage.statistics import Statistic
from starter_kit.data.forms import FormSettings
from tests.studies.reproduction.experiment import Experiment, Part, Results, TrainedRow
from tests.studies.reproduction.leakage.experiment import LeakageExperiment, LeakageResults, Size
from tests.studies.reproduction.rows import ROWS, Row

TASK = FormSettings(providers=10, clients=10, valid_forms=4, test_forms=8)

SOME = [row for row in ROWS if row.name in ("zero-shot", "fl-provider-dp-1", "lora-nf4", "fedavg")]


def experiment(folder: Path, rows: Sequence[Row], said: list[str], task: FormSettings = TASK) -> Experiment:
    parts: list[Part] = [TrainedRow(row) for row in rows]
    return Experiment(folder, 1, parts=parts, task=task, say=said.append)


def last(results: Iterator[Results]) -> Results:
    *_, all_ = results
    return all_


def run(folder: Path, said: list[str]) -> Results:
    return last(experiment(folder, SOME, said).run())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment's folder with everything in it. Not to be changed."""
    made = tmp_path_factory.mktemp("experiment")
    run(made, [])
    return made


def test_every_row_is_trained_and_scored_on_the_test_split(folder: Path) -> None:
    results = run(folder, [])
    assert [outcome.row for outcome in results.outcomes] == [row.name for row in SOME]
    by_row = {outcome.row: outcome for outcome in results.outcomes}
    assert all(0 <= outcome.anls <= 1 for outcome in results.outcomes)
    assert by_row["fl-provider-dp-1"].epsilon == pytest.approx(1, rel=1e-3)
    assert by_row["zero-shot"].bytes_total == 0
    assert by_row["fedavg"].epsilon is None
    assert by_row["fedavg"].bytes_total > 100 * by_row["lora-nf4"].bytes_total > 0


def test_what_is_there_is_not_trained_again(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/model.safetensors")}
    assert run(folder, []) == run(folder, [])
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/model.safetensors")} == before


def test_a_new_row_costs_that_row_alone(folder: Path, tmp_path: Path) -> None:
    earlier = run(folder, [])
    new = replace(SOME[0], name="new")
    said: list[str] = []
    # In an empty folder, without the earlier runs.
    *kept, added = last(experiment(tmp_path, [*SOME, new], said).run(earlier)).outcomes
    assert kept == earlier.outcomes
    assert added.row == "new"
    assert [line.split(":")[0] for line in said] == [f"seed 1, {new.title}"]


def test_outcomes_count_no_more_for_other_settings_another_base_or_another_task(folder: Path) -> None:
    earlier = run(folder, [])
    base, task = earlier.base, earlier.task
    assert list(earlier.kept(base, task).values()) == earlier.outcomes
    assert not earlier.kept(base, task.model_copy(update={"providers": 20}))
    assert not earlier.kept(base.model_copy(update={"accuracy": 0.5}), task)
    changed = replace(SOME[0], changes=("seed=7",))
    assert (changed.name, 1, changed.settings_sha256) not in earlier.kept(base, task)


def test_runs_and_data_of_another_task_are_not_taken_for_those_of_this_one(tmp_path: Path) -> None:
    other = TASK.model_copy(update={"providers": 12})
    first, second = (experiment(tmp_path, SOME, [], task) for task in (TASK, other))
    assert first.data(1) != second.data(1)
    assert len(Dataset(second.data(1), "train").questions) > len(Dataset(first.data(1), "train").questions)
    assert first.run_folder(SOME[0], 1) != second.run_folder(SOME[0], 1)


def test_what_other_code_made_is_trained_again_and_nothing_else(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = run(folder, [])
    first, second = SOME[:2]
    one = experiment(tmp_path, [first, second], [])
    before = one.run_folder(first, 1)
    by_others = [
        outcome.model_copy(update={"made_with": "kit 0.0.9"}) if outcome.row == first.name else outcome
        for outcome in earlier.outcomes
    ]
    said: list[str] = []
    kept = one.forget(earlier.model_copy(update={"outcomes": by_others}))
    again = last(experiment(tmp_path, [first, second], said).run(kept))
    assert [line.split(":")[0] for line in said] == [f"seed 1, {first.title}"]
    assert again.outcomes == earlier.outcomes[:2]
    # Nor is a run of other code scored in place of one that is to be trained.
    monkeypatch.setattr("tests.studies.reproduction.experiment.code", lambda: "0" * 64)
    assert one.run_folder(first, 1) != before


def test_results_survive_being_written_down(folder: Path) -> None:
    results = run(folder, [])
    assert Results.model_validate_json(results.model_dump_json()) == results


def attacked(folder: Path, rows: Sequence[Row], size: Size, said: list[str]) -> LeakageResults:
    attacks = LeakageExperiment(folder, 1, task=TASK, size=size, coverage_runs=0, rows=rows, say=said.append)
    (results,) = attacks.run()
    return results


def test_the_same_runs_are_attacked(folder: Path) -> None:
    rows = [row for row in SOME if row.name in ("zero-shot", "fl-provider-dp-1")]
    size = Size(providers=5, forms=1, resamples=100)
    before = set(folder.glob("*/model.safetensors"))
    said: list[str] = []
    results = attacked(folder, rows, size, said)
    assert set(folder.glob("*/model.safetensors")) == before
    assert [(outcome.row, outcome.questions) for outcome in results.outcomes] == [
        (row.name, questions) for row in rows for questions in ("red", "red-trained")
    ]
    assert len(said) == 4
    untrained, *_, private = results.outcomes
    assert untrained.bounds is None
    assert untrained.attacks[0].measures[Statistic.AUC].value == 0.5
    assert (untrained.attacks[0].members, untrained.attacks[0].nonmembers) == (5, 5)
    # At ε = 1 and δ = 1e-5, at most e/(1 + e).
    assert private.bounds is not None
    assert 0.5 < private.bounds.balanced_accuracy < 0.74
    assert LeakageResults.model_validate_json(results.model_dump_json()) == results


def test_attacks_that_were_made_are_not_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in SOME if row.name == "zero-shot"]

    def with_resamples(resamples: int) -> LeakageResults:
        return attacked(folder, rows, Size(providers=5, forms=1, resamples=resamples), [])

    before = with_resamples(100)
    monkeypatch.setattr("tests.studies.reproduction.leakage.experiment.assess_checkpoint", None)
    assert with_resamples(100) == before
    with pytest.raises(TypeError):
        with_resamples(101)


def test_other_numbers_of_providers_are_asked_about_other_questions(folder: Path) -> None:
    rows = [row for row in SOME if row.name == "zero-shot"]

    def members(providers: int) -> int:
        size = Size(providers=providers, forms=1, resamples=100)
        return attacked(folder, rows, size, []).outcomes[0].attacks[0].members

    assert [members(providers) for providers in (5, 6, 5)] == [5, 6, 5]
