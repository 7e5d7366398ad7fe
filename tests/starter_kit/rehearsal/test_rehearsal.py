import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset
from starter_kit.federation.clients import clients_of
from starter_kit.rehearsal import stages
from starter_kit.rehearsal.__main__ import of_each_method
from starter_kit.rehearsal.inputs import Shape, make_data
from starter_kit.rehearsal.machine import Machine
from starter_kit.rehearsal.page import BEGIN, END, with_table
from starter_kit.rehearsal.stages import Measured, RehearsalError, killed_in_the_second_round
from starter_kit.settings.configuration import config_names, load_settings

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


def test_the_table_replaces_the_one_before_it() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    written = with_table(page, Shape.scaled(1), "2 cores, with batches of 2.", [ROW])
    assert written.startswith("before\n")
    assert written.endswith(f"{END}\nafter\n")
    assert "| a step | 12 | 8 | 2.5 | 3.2 | 3.0 |" in written
    assert "69,894 pages" in written
    assert "2 cores, with batches of 2." in written
    assert "old" not in written
    assert with_table(written, Shape.scaled(1), "2 cores, with batches of 2.", [ROW]) == written


def test_a_page_without_the_section_is_not_written() -> None:
    with pytest.raises(ValueError, match="no section"):
        with_table("a page", Shape.scaled(1), "", [])


def test_a_config_of_each_method_is_rehearsed_with_its_adapters() -> None:
    rehearsed = [load_settings(config) for config in of_each_method()]
    full = [load_settings(config) for config in config_names() if config.startswith("full/")]
    kinds = [(settings.method, settings.lora is not None) for settings in rehearsed]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == {(settings.method, settings.lora is not None) for settings in full}


def test_the_work_of_others_is_told_from_ones_own() -> None:
    machine = Machine()
    subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    assert re.search(r"other work took \d+% of the cores' time", str(machine))


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
