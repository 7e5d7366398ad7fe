import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evaluator.docvqa.dataset import Dataset, Page, Question, read_info, write_split
from evaluator.errors import ProblemError
from evaluator.scoring.split import private_questions, read_split
from starter_kit.commands.main import app
from starter_kit.data.folders import atomic_folder
from tests.starter_kit.data.sources import ReceiptFolder, sound_receipts

SMALL = ("--train-providers", "10", "--train-pages", "12", "--valid-pages", "4", "--test-pages", "4")
SMALL_FORMS = ("--providers", "10", "--valid-forms", "4", "--test-forms", "6", "--red-providers", "3")
ENTRIES = frozenset({"public", "secret"})


def splits_in(printed: str) -> list[str]:
    """The splits that the first table of a summary counts."""
    rows = printed.partition("└")[0].splitlines()
    return [row.split()[1] for row in rows if row.startswith("│")]


def pfl_data(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, arguments)], env={"COLUMNS": "200"})


def test_synthetic_data_is_written_and_counted(tmp_path: Path) -> None:
    result = pfl_data("synthetic", tmp_path / "out", *SMALL)
    assert result.exit_code == 0, result.output
    assert "10 clients with 1 provider each." in result.stdout
    assert len(Dataset(tmp_path / "out" / "public", "train").pages) == 12
    assert len(Dataset(tmp_path / "out" / "secret", "test").pages) == 4
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_forms_are_written_and_counted(tmp_path: Path) -> None:
    sizes = ("--providers", "10", "--valid-forms", "4", "--test-forms", "6")
    result = pfl_data("forms", tmp_path / "out", *sizes)
    assert result.exit_code == 0
    assert "10 clients with 1 provider each." in result.stdout
    assert len(Dataset(tmp_path / "out" / "public", "train").pages) == 20
    assert len(Dataset(tmp_path / "out" / "secret", "test").pages) == 6


def test_forms_have_splits_for_attacks_where_that_is_asked_for(tmp_path: Path) -> None:
    made = pfl_data("forms", tmp_path / "out", *SMALL_FORMS)
    assert made.exit_code == 0
    assert splits_in(made.stdout) == ["train", "valid", "test", "red", "red-trained"]
    members = {
        name
        for names in Dataset(tmp_path / "out" / "public", "train").info.clients.values()
        for name in names
    }
    for split in ("red", "red-trained"):
        providers = Dataset(tmp_path / "out" / "secret", split).questions_by_provider()
        assert len(providers) == 6
        assert len(providers.keys() & members) == 3


def test_forms_are_skewed_where_that_is_asked_for(tmp_path: Path) -> None:
    sizes = ("--providers", "10", "--valid-forms", "4", "--test-forms", "6", "--skewed")
    made = pfl_data("forms", tmp_path / "out", *sizes)
    assert made.exit_code == 0
    assert {"provider", "email"} <= {
        question.key for question in Dataset(tmp_path / "out" / "public", "train").questions
    }
    for option in (("--red-providers", "3"), ("--partition", "size")):
        rejected = pfl_data("forms", tmp_path / "other", *sizes, *option)
        assert rejected.exit_code != 0
        assert f"no {option[0]} with --skewed" in rejected.output


def test_a_secret_seed_is_drawn_once_and_makes_the_same_test_set_again(tmp_path: Path) -> None:
    seed, size = tmp_path / "seed", ("--published-size", "0.001")
    first = pfl_data("forms", tmp_path / "a", "--seed-file", seed, *size)
    assert "a new secret seed" in first.output
    assert seed.stat().st_mode & 0o777 == 0o600
    assert pfl_data("forms", tmp_path / "b", "--seed-file", seed, *size).exit_code == 0
    pfl_data("forms", tmp_path / "c", "--seed-file", tmp_path / "other", *size)
    a, b, c = (Dataset(tmp_path / name / "secret", "test").sha256() for name in "abc")
    assert a == b != c
    for path in (tmp_path / "a").rglob("*.json*"):
        assert seed.read_text().strip() not in path.read_text()
        assert str(int(seed.read_text(), 16)) not in path.read_text()
    seed.write_text("7")
    for options in (("--seed-file", seed), ("--seed-file", tmp_path / "other", "--seed", "8")):
        rejected = pfl_data("synthetic", tmp_path / "d", *SMALL, *options)
        assert rejected.exit_code == 2
        assert "E_CONFIGURATION" in rejected.stderr


def test_the_partition_is_chosen_and_reported(tmp_path: Path) -> None:
    uneven = pfl_data(
        "forms", tmp_path / "out", *SMALL_FORMS, "--clients", "3", "--partition", "dirichlet:0.2"
    )
    assert "Partition: dirichlet:0.2." in uneven.stdout
    assert "Partition: dirichlet:0.2." in pfl_data("inspect", tmp_path / "out" / "public").stdout
    counts = json.loads(pfl_data("inspect", tmp_path / "out" / "public", "--json").stdout)
    assert counts["partition"] == "dirichlet:0.2"
    assert "partition" not in json.loads((tmp_path / "out" / "secret" / "dataset.json").read_text())
    rejected = pfl_data("forms", tmp_path / "other", *SMALL_FORMS, "--partition", "dirichlet:0")
    assert "such as dirichlet:0.5" in rejected.stderr


def test_more_providers_for_attacks_than_there_are_are_rejected(tmp_path: Path) -> None:
    sizes = ("--providers", "10", "--valid-forms", "4", "--test-forms", "6", "--red-providers", "11")
    result = pfl_data("forms", tmp_path / "out", *sizes)
    assert result.exit_code != 0
    assert "at most 10" in result.output
    assert not (tmp_path / "out").exists()


def test_a_test_set_is_split_once_and_its_salt_is_not_printed(tmp_path: Path) -> None:
    pages = [Page(page=f"d{number}_0", provider=f"p{number}", words=[], boxes=[]) for number in range(10)]
    questions = [
        Question(question_id=one.page, page=one.page, question="What?", answers=["x"]) for one in pages
    ]
    write_split(tmp_path, "test", pages, questions)
    result = pfl_data("split", tmp_path, "--private", "0.4")
    assert result.exit_code == 0
    assert "public: 6 questions of 6 providers" in result.stdout
    assert "private: 4 questions of 4 providers\n  Intervals require at least 6 providers" in result.stdout
    split = read_split(tmp_path)
    assert split is not None
    assert f"SHA-256 {split.sha256}" in result.stdout
    assert split.salt not in result.stdout
    again = pfl_data("split", tmp_path, "--private", "0.5")
    assert again.exit_code != 0
    assert "Scores on two splits can't be compared" in again.output
    assert read_split(tmp_path) == split


def test_what_goes_wrong_in_receipts_is_counted_in_the_printed_summary(tmp_path: Path) -> None:
    source = sound_receipts(tmp_path / "source")
    source.add("a", "KEDAI [bold]A[/wrong]", image=b"broken")
    source.add("b", "KEDAI B", box=b"")
    source.add("c", key={"company": "KEDAI Ç", "total": "9.00"})
    result = pfl_data("receipts", source.path, tmp_path / "out")
    assert result.exit_code == 0
    for line in (
        "Image can't be read",
        "No words",
        "Key is missing",
        "text beyond ASCII",
        "one document only",
    ):
        assert line in result.stdout


def test_data_goes_out_to_imdb_files_and_comes_back(tmp_path: Path) -> None:
    pfl_data("synthetic", tmp_path / "a", *SMALL)
    assert pfl_data("export", tmp_path / "a" / "public", tmp_path / "imdb").exit_code == 0
    result = pfl_data("imdb", tmp_path / "imdb", tmp_path / "b")
    assert result.exit_code == 0
    original, back = (Dataset(tmp_path / name / "public", "train") for name in "ab")
    assert back.pages == original.pages


def test_a_sound_folder_passes_inspection(tmp_path: Path) -> None:
    pfl_data("synthetic", tmp_path / "out", *SMALL)
    for folder, split in (("public", "train"), ("secret", "test")):
        result = pfl_data("inspect", tmp_path / "out" / folder)
        assert result.exit_code == 0, result.stderr
        assert split in result.stdout


def test_the_folder_above_the_data_is_rejected_with_the_one_that_is_meant(tmp_path: Path) -> None:
    pfl_data("synthetic", tmp_path / "out", *SMALL)
    for verb in ("inspect", "manifest"):
        rejected = pfl_data(verb, tmp_path / "out")
        assert rejected.exit_code == 2
        assert f"Use {tmp_path / 'out' / 'public'}" in rejected.stderr


def test_inspection_counts_documents_and_questions_by_what_they_are_about(tmp_path: Path) -> None:
    pfl_data("synthetic", tmp_path / "out", *SMALL)
    printed = pfl_data("inspect", tmp_path / "out" / "public").stdout
    train, valid = (Dataset(tmp_path / "out" / "public", split) for split in ("train", "valid"))
    documents = [len({page.document for page in split.pages.values()}) for split in (train, valid)]
    assert f"Documents: {documents[0]:,} in train, {documents[1]:,} in valid." in printed
    counts = [Counter(question.key for question in split.questions) for split in (train, valid)]
    lines = [line.replace("│", " ").split() for line in printed.splitlines()]
    for key in counts[0] | counts[1]:
        assert [key, str(counts[0][key]), str(counts[1][key])] in lines


def test_inspection_counts_the_splits_for_attacks_by_providers_of_the_clients(tmp_path: Path) -> None:
    pfl_data("forms", tmp_path / "out", *SMALL_FORMS)
    secret = tmp_path / "out" / "secret"
    printed = pfl_data("inspect", secret).stdout
    assert splits_in(printed) == ["test", "red", "red-trained"]
    assert "unknown" not in printed
    clients = {provider for providers in read_info(secret).clients.values() for provider in providers}
    pages = Dataset(secret, "test").pages.values()
    seen = sum(page.provider in clients for page in pages)
    plotted = pfl_data("inspect", secret, "--json", "--plots", tmp_path / "plots")
    parts = {part["name"]: part for part in json.loads(plotted.stdout)["parts"]}
    assert (parts["test, seen providers"]["pages"], parts["test, unseen providers"]["pages"]) == (
        seen,
        len(pages) - seen,
    )
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {"providers.png", "keys.png"}


def test_other_data_than_the_published_is_rejected_where_the_published_is_asked_for(tmp_path: Path) -> None:
    pfl_data("forms", tmp_path / "out", *SMALL_FORMS)
    result = pfl_data("inspect", tmp_path / "out" / "secret", "--published")
    assert result.exit_code == 2
    assert "where: test, seen providers\n  expected: 1,390 providers, 2,875 documents" in result.stderr


def test_both_folders_name_the_clients(tmp_path: Path) -> None:
    pfl_data("synthetic", tmp_path / "out", *SMALL)
    public, secret = (read_info(tmp_path / "out" / folder) for folder in ("public", "secret"))
    assert public.clients == secret.clients
    assert public.clients


def test_inspection_names_what_is_wrong(tmp_path: Path) -> None:
    pfl_data("synthetic", tmp_path / "out", *SMALL)
    folder = tmp_path / "out" / "public"
    train = Dataset(folder, "train")
    page = next(iter(train.pages))
    train.image_path(page).write_bytes(b"broken")
    lines = (folder / "train" / "pages.jsonl").read_text().splitlines()
    moved = json.loads(lines[1]) | {"provider": "NOBODY'S"}
    lines[1] = json.dumps(moved)
    (folder / "train" / "pages.jsonl").write_text("\n".join(lines) + "\n")
    result = pfl_data("inspect", folder)
    assert result.exit_code == 2
    assert f"train, page {page}" in result.stderr
    assert "none for NOBODY'S" in result.stderr


def test_bad_input_ends_with_status_2_and_a_coded_problem(tmp_path: Path) -> None:
    for arguments in (
        ("receipts", tmp_path, tmp_path / "out"),
        ("docile", tmp_path, tmp_path / "out"),
        ("imdb", tmp_path, tmp_path / "out"),
        ("export", tmp_path, tmp_path / "out"),
        ("inspect", tmp_path),
    ):
        result = pfl_data(*arguments)
        assert result.exit_code == 2, arguments
        assert "E_DATASET_FORMAT" in result.stderr
    result = pfl_data("synthetic", tmp_path / "out", "--train-pages", 3)
    assert result.exit_code == 2
    assert "E_CONFIGURATION" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failed_import_leaves_nothing_behind(tmp_path: Path) -> None:
    source = ReceiptFolder(tmp_path / "source")
    source.add("one")
    assert pfl_data("receipts", source.path, tmp_path / "out").exit_code == 2
    assert {path.name for path in tmp_path.iterdir()} == {"source"}


def test_a_folder_that_holds_something_is_only_replaced_with_force(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pfl_data("synthetic", out, *SMALL)
    before = Dataset(out / "secret", "test").sha256()
    rejected = pfl_data("synthetic", out, *SMALL, "--seed", 8)
    assert rejected.exit_code == 2
    assert "E_DATASET_FOLDER" in rejected.stderr
    assert Dataset(out / "secret", "test").sha256() == before
    assert pfl_data("synthetic", out, *SMALL, "--seed", 8, "--force").exit_code == 0
    assert Dataset(out / "secret", "test").sha256() != before
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_even_force_replaces_nothing_but_data(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    result = pfl_data("synthetic", tmp_path, *SMALL, "--force")
    assert result.exit_code == 2
    assert "thesis.tex" in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_failure_keeps_what_was_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "public").mkdir(parents=True)

    def fail() -> None:
        with atomic_folder(out, force=True, entries=ENTRIES) as fresh:
            (fresh / "secret").mkdir()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [path.name for path in out.iterdir()] == ["public"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_in_the_place_of_the_folder_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with (
        pytest.raises(ProblemError, match="E_DATASET_FOLDER"),
        atomic_folder(tmp_path / "out", force=True, entries=ENTRIES),
    ):
        pytest.fail("the block must not run")


def test_a_new_test_set_has_a_private_part_unless_the_organizer_declines(tmp_path: Path) -> None:
    sizes = ("--providers", "10", "--valid-forms", "4", "--test-forms", "12")
    made = pfl_data("forms", tmp_path / "split", *sizes)
    assert "About 50% of the test questions are private, as listed in secret/split.json. " in made.output
    split = read_split(tmp_path / "split" / "secret")
    assert split is not None
    sides = private_questions(Dataset(tmp_path / "split" / "secret", "test"), split)
    assert 0 < sum(sides) < len(sides)
    assert not (tmp_path / "split" / "public" / "split.json").exists()
    assert pfl_data("forms", tmp_path / "whole", *sizes, "--private", "0").exit_code == 0
    assert read_split(tmp_path / "whole" / "secret") is None
    another = pfl_data("forms", tmp_path / "less", *sizes, "--private", "0.25")
    assert "About 25% of the test questions are private" in another.output
