import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import torch

from evaluator.docvqa.dataset import Dataset
from starter_kit.federation.clients import clients_of
from starter_kit.runs.forecast import Memory
from starter_kit.settings.config_files import config_names
from starter_kit.settings.configuration import load_settings
from tests.studies.rehearsal import stages
from tests.studies.rehearsal.inputs import Shape, make_data
from tests.studies.rehearsal.machine import OtherWork, machine_name
from tests.studies.rehearsal.page import BEGIN, END, with_table
from tests.studies.rehearsal.rehearsal import Rehearsal, made_once, of_each_method
from tests.studies.rehearsal.results import Conditions, Results, StageResult, settings_sha256
from tests.studies.rehearsal.stages import Measured, RehearsalError, killed_in_the_second_round

RECORDED = Path(__file__).parents[3] / "docs" / "full-size.json"
ROW = Measured(
    stage="a step", seconds=12.4, cpu_s=7.6, peak_bytes=3_210_000_000, planned_bytes=3 * 10**9, step_s=2.5
)


def test_the_published_shape_has_few_providers_with_most_pages() -> None:
    shape = Shape.scaled(1)
    counts = shape.pages_of_providers()
    assert (len(counts), sum(counts), min(counts)) == (4_149, 69_894, counts[-1])
    assert sum(counts[:415]) > sum(counts) / 2


def test_made_up_data_has_its_shape(tmp_path: Path) -> None:
    shape = Shape(3, 6, 12, 20)
    make_data(tmp_path / "data", shape)
    dataset = Dataset(tmp_path / "data", "train")
    assert (len(dataset.pages), len(dataset.questions)) == (12, 20)
    assert [len(client.providers) for client in clients_of(dataset)] == [2, 2, 2]
    assert Counter(page.provider for page in dataset.pages.values())["provider-0"] > 2
    assert all(dataset.image_path(page).is_file() for page in dataset.pages)


CONDITIONS = Conditions(shape=Shape.scaled(1), tiny=False, batch_size=2, changes=["seed=3"])


def result(stage: str, sha256: str = "a") -> StageResult:
    return StageResult(stage=stage, settings_sha256=sha256, machine="2 cores", other_work=0.25, rows=[ROW])


def test_the_table_replaces_the_one_before_it() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    results = Results(conditions=CONDITIONS, stages=[result("full/fedavg")])
    written = with_table(page, results, ["full/fedavg", "full/lora"])
    assert written.startswith("before\n")
    assert written.endswith(f"{END}\nafter\n")
    assert "| a step | 12 | 8 | 2.5 | 3.2 | 3.0 | 25% |" in written
    assert "69,894 pages" in written
    assert "2 cores, with batches of 2 at most, `seed=3`." in written
    assert "Not measured yet: `full/lora`." in written
    assert "old" not in written
    assert with_table(written, results, ["full/fedavg", "full/lora"]) == written
    assert "Not measured" not in with_table(written, results, ["full/fedavg"])


def test_a_page_without_the_section_is_not_written() -> None:
    with pytest.raises(ValueError, match="no section"):
        with_table("a page", Results(conditions=CONDITIONS, stages=[]), [])


def test_what_was_measured_is_kept_under_the_same_conditions_and_settings() -> None:
    order = ["full/fedavg", "full/lora"]
    results = Results(conditions=CONDITIONS, stages=[])
    for stage in reversed(order):
        results = results.with_stage(result(stage), order)
    kept = Results.of(CONDITIONS, results)
    assert [each.stage for each in kept.stages] == order
    assert kept.current("full/lora", "a") == result("full/lora")
    assert kept.current("full/lora", "b") is None
    assert kept.with_stage(result("full/lora", "b"), order).current("full/lora", "b")
    assert Results.of(CONDITIONS.model_copy(update={"batch_size": None}), results).stages == []
    assert Results.of(CONDITIONS, None).stages == []


def test_only_chosen_stages_are_measured_again() -> None:
    results = Results(conditions=CONDITIONS, stages=[result("full/fedavg"), result("full/lora")])
    kept = Rehearsal(CONDITIONS, ["full/lora"]).forget(results)
    assert kept
    assert [each.stage for each in kept.stages] == ["full/fedavg"]


def test_a_change_of_settings_is_seen() -> None:
    assert settings_sha256("full/lora", []) == settings_sha256("full/lora", [])
    assert settings_sha256("full/lora", []) != settings_sha256("full/lora", ["rounds=8"])


def test_inputs_are_made_once_and_never_left_half_made(tmp_path: Path) -> None:
    made: list[Path] = []

    def fail(folder: Path) -> None:
        folder.mkdir()
        raise InterruptedError

    with pytest.raises(InterruptedError):
        made_once(tmp_path / "data", fail)
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        made_once(tmp_path / "data", lambda folder: (folder.mkdir(), made.append(folder))[0])
    assert len(made) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_config_of_each_method_is_rehearsed_with_its_adapters() -> None:
    rehearsed = [load_settings(config) for config in of_each_method()]
    full = [load_settings(config) for config in config_names() if config.startswith("full/")]
    kinds = [(settings.method, settings.lora is not None) for settings in rehearsed]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == {(settings.method, settings.lora is not None) for settings in full}


def test_the_work_of_others_is_told_from_ones_own() -> None:
    others = OtherWork()
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    assert 0 <= others.share <= 1
    assert machine_name().startswith(f"{torch.get_num_threads()} of ")


# A run that takes its time to record a round, and says so when it has.
RUN = """
import sys, time
from pathlib import Path
run = Path(sys.argv[1])
(run / "resume").mkdir(parents=True)
(run / "resume" / "begun").write_text("1\\n")
(run / "metrics.jsonl").write_text("{}\\n")
time.sleep(0.3)
(run / "recorded").touch()
(run / "resume" / "begun").write_text("1\\n2\\n")
time.sleep(600)
"""


def test_a_run_is_killed_when_its_first_round_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "INTO_THE_ROUND_S", 0)
    began = time.perf_counter()
    used = killed_in_the_second_round([sys.executable, "-c", RUN, str(tmp_path)], tmp_path)
    assert (tmp_path / "recorded").exists()
    assert 0.3 < used.seconds <= time.perf_counter() - began
    assert used.peak_bytes > 1_000_000


def test_a_run_that_ends_before_its_second_round_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="status 3"):
        killed_in_the_second_round([sys.executable, "-c", "raise SystemExit(3)"], tmp_path)


def test_memory_is_planned_about_as_it_was_measured_on_the_published_shape() -> None:
    results = Results.model_validate_json(RECORDED.read_bytes())
    steps = [row for stage in results.stages for row in stage.rows if row.planned_bytes is not None]
    assert len(steps) >= 9
    for row in steps:
        assert row.planned_parts is not None
        planned = Memory(**row.planned_parts).step_bytes
        assert planned == row.planned_bytes
        assert 0.95 * row.peak_bytes < planned < 1.15 * row.peak_bytes, row.stage
