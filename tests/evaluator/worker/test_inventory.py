"""What a worker reports to have."""

from pathlib import Path

from evaluator.docvqa.dataset import Dataset
from evaluator.worker.inventory import inventory_of


def write_split(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(folder.name)


def test_test_sets_and_leakage_sets_are_reported_each_with_the_hash_of_its_split(tmp_path: Path) -> None:
    data = tmp_path / "test_sets" / "forms"
    for split in ("test", "red", "red-trained"):
        write_split(data / split, "pages.jsonl", "questions.jsonl")
    (data / "images").mkdir()
    write_split(data / "half", "pages.jsonl")
    found = inventory_of(tmp_path)
    assert found.test_sets == {"forms": Dataset(data, "test").sha256()}
    assert found.leakage_sets == {
        "forms/red": Dataset(data, "red").sha256(),
        "forms/red-trained": Dataset(data, "red-trained").sha256(),
    }


def test_a_worker_without_folders_reports_nothing(tmp_path: Path) -> None:
    found = inventory_of(tmp_path)
    assert (found.references, found.test_sets, found.leakage_sets) == ({}, {}, {})
