"""Data folders to imdb files and back."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from evaluator.docvqa.dataset import Dataset, Page, Question, read_info
from evaluator.errors import ErrorCode, ProblemError
from evaluator.leakage.models import membership
from starter_kit.data.imdb_export import export_imdb
from starter_kit.data.imdb_import import convert_imdb
from starter_kit.data.summary import Finding, ImportSummary
from starter_kit.data.synthetic import SyntheticSettings, generate

SETTINGS = SyntheticSettings(clients=3, train_providers=6, train_pages=14, valid_pages=4, test_pages=4)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    generate(folder / "public", folder / "secret", SETTINGS)
    return folder


@pytest.fixture
def source(made: Path, tmp_path: Path) -> Path:
    """The competition's files of a small data set, test set included."""
    export_imdb(made / "secret", tmp_path / "secret")
    export_imdb(made / "public", tmp_path / "source")
    shutil.copy(tmp_path / "secret" / "imdb" / "imdb_test.npy", tmp_path / "source" / "imdb")
    shutil.copytree(tmp_path / "secret" / "images", tmp_path / "source" / "images", dirs_exist_ok=True)
    return tmp_path / "source"


def convert(source: Path) -> ImportSummary:
    return convert_imdb(source, source.parent / "public", source.parent / "back")


def rows(path: Path) -> list[dict[str, object]]:
    return list(np.load(path, allow_pickle=True))


def rewrite(path: Path, content: list[dict[str, object]]) -> None:
    array = np.empty(len(content), dtype=object)
    array[:] = content
    np.save(path, array, allow_pickle=True)


def data_points(source: Path) -> dict[str, dict[str, list[int]]]:
    index: dict[str, dict[str, list[int]]] = json.loads((source / "imdb" / "data_points.json").read_text())
    return index


def write_data_points(source: Path, index: object) -> None:
    (source / "imdb" / "data_points.json").write_text(json.dumps(index))


def content(dataset: Dataset) -> tuple[dict[str, Page], set[tuple[str, str, str, str]]]:
    def facts(question: Question) -> tuple[str, str, str, str]:
        return question.question_id, question.page, question.question, question.answers[0]

    return dataset.pages, {facts(question) for question in dataset.questions}


def test_exported_rows_are_counted_from_1_and_belong_to_their_provider(made: Path, source: Path) -> None:
    train = Dataset(made / "public", "train")
    index = data_points(source)
    assert index.keys() == {"client_0", "client_1", "client_2"}
    for client, providers in index.items():
        loaded = rows(source / "imdb" / f"imdb_train_{client}.npy")
        assert sorted(row for own in providers.values() for row in own) == list(range(1, len(loaded)))
        for provider, own in providers.items():
            assert {train.pages[str(loaded[row]["image_name"])].provider for row in own} == {provider}
            assert {loaded[row]["set_name"] for row in own} == {"train"}


def test_a_data_set_comes_back_from_its_imdb_files(made: Path, source: Path) -> None:
    convert(source)
    for split in ("train", "valid"):
        assert content(Dataset(source.parent / "public", split)) == content(Dataset(made / "public", split))
    assert read_info(source.parent / "public").clients.keys() == read_info(made / "public").clients.keys()
    pages, questions = content(Dataset(source.parent / "back", "test"))
    expected_pages, expected_questions = content(Dataset(made / "secret", "test"))
    assert questions == expected_questions
    assert {name: page.words for name, page in pages.items()} == {
        n: p.words for n, p in expected_pages.items()
    }
    assert not (source.parent / "public" / "test").exists()


def test_the_file_names_of_the_first_release_are_known(made: Path, source: Path) -> None:
    for path in (source / "imdb").glob("imdb_*.npy"):
        path.rename(source / path.name.replace("imdb_", "blue_"))
    (source / "imdb" / "data_points.json").rename(source / "data_points.json")
    summary = convert(source)
    assert {split: tally.pages for split, tally in summary.splits.items()} == {
        "train": 14,
        "valid": 4,
        "test": 4,
    }


def test_an_empty_list_of_rows_is_no_provider_rather_than_the_whole_client(source: Path) -> None:
    index = data_points(source)
    index["client_1"]["EMPTY LTD"] = []
    write_data_points(source, index)
    summary = convert(source)
    assert summary.findings.examples[Finding.EMPTY_PROVIDER] == ["client 1: EMPTY LTD"]
    assert "EMPTY LTD" not in read_info(source.parent / "public").clients[1]
    assert summary.splits["train"].pages == 14


def test_missing_and_broken_images_leave_their_pages_out(source: Path) -> None:
    missing, broken = sorted((source / "images").iterdir())[:2]
    missing.unlink()
    broken.write_bytes(b"broken")
    summary = convert(source)
    assert summary.findings.examples[Finding.MISSING_IMAGE] == [missing.name]
    assert summary.findings.examples[Finding.BROKEN_IMAGE] == [broken.name]
    assert sum(tally.pages for tally in summary.splits.values()) == 20


def test_a_provider_whose_images_are_all_missing_leaves_its_client(made: Path, source: Path) -> None:
    train = Dataset(made / "public", "train")
    provider = next(iter(train.info.clients[0]))
    for page in train.pages.values():
        if page.provider == provider:
            (source / "images" / f"{page.page}.jpg").unlink()
    summary = convert(source)
    assert provider not in read_info(source.parent / "public").clients[0]
    assert summary.findings.examples[Finding.EMPTY_PROVIDER] == [f"client 0: {provider}"]


def test_an_empty_transcription_keeps_its_page(source: Path) -> None:
    content = rows(source / "imdb" / "imdb_test.npy")
    for row in content[1:]:
        row.update(ocr_tokens=[], ocr_normalized_boxes=np.array([]))
    rewrite(source / "imdb" / "imdb_test.npy", content)
    summary = convert(source)
    assert summary.findings.counts[Finding.EMPTY_OCR] == 4
    assert all(page.words == [] for page in Dataset(source.parent / "back", "test").pages.values())


def test_questions_without_an_id_are_named_after_their_file_and_row(source: Path) -> None:
    content = rows(source / "imdb" / "imdb_test.npy")
    del content[1]["question_id"]
    content[3]["question_id"] = content[2]["question_id"]
    rewrite(source / "imdb" / "imdb_test.npy", content)
    summary = convert(source)
    assert summary.findings.counts[Finding.NO_QUESTION_ID] == 2
    ids = [question.question_id for question in Dataset(source.parent / "back", "test").questions]
    assert {"imdb_test-1", "imdb_test-3"} <= set(ids)
    assert len(set(ids)) == len(ids)


def test_boxes_a_little_beyond_the_page_are_clipped(source: Path) -> None:
    content = rows(source / "imdb" / "imdb_test.npy")
    content[1]["ocr_normalized_boxes"] = np.asarray(content[1]["ocr_normalized_boxes"]) + 0.3
    rewrite(source / "imdb" / "imdb_test.npy", content)
    summary = convert(source)
    assert summary.findings.counts[Finding.CLIPPED_BOX] == 1
    page = Dataset(source.parent / "back", "test").pages[str(content[1]["image_name"])]
    assert max(value for box in page.boxes for value in box) == 1.0


def test_boxes_in_pixels_are_rejected(source: Path) -> None:
    content = rows(source / "imdb" / "imdb_test.npy")
    content[1]["ocr_normalized_boxes"] = np.asarray(content[1]["ocr_normalized_boxes"]) * 1000
    rewrite(source / "imdb" / "imdb_test.npy", content)
    with pytest.raises(ProblemError, match="not pixels") as caught:
        convert(source)
    assert caught.value.problem.where == "imdb_test.npy, row 1"


def test_rows_that_no_provider_lists_are_left_out_and_counted(source: Path) -> None:
    index = data_points(source)
    provider, own = next((p, own) for p, own in index["client_0"].items() if len(own) > 1)
    index["client_0"][provider] = own[1:]
    write_data_points(source, index)
    summary = convert(source)
    assert summary.findings.examples[Finding.ROW_WITHOUT_PROVIDER] == [
        f"imdb_train_client_0.npy, row {own[0]}"
    ]


def test_a_page_of_two_providers_stays_whole_with_the_first(source: Path) -> None:
    index = data_points(source)
    first, second = list(index["client_0"])[:2]
    index["client_0"][second].append(index["client_0"][first][-1])
    write_data_points(source, index)
    summary = convert(source)
    assert summary.findings.counts[Finding.ROW_OF_TWO_PROVIDERS] == 1
    assert summary.splits["train"].pages == 14


def test_a_page_that_two_clients_hold_stays_with_the_first(source: Path) -> None:
    path = source / "imdb" / "imdb_train_client_1.npy"
    content = rows(path)
    stray = rows(source / "imdb" / "imdb_train_client_0.npy")[1]
    rewrite(path, [*content, stray])
    index = data_points(source)
    next(iter(index["client_1"].values())).append(len(content))
    write_data_points(source, index)
    summary = convert(source)
    assert summary.findings.counts[Finding.REPEATED_PAGE] == 1
    assert summary.splits["train"].pages == 14


@pytest.mark.parametrize("row", [0, -1, 10_000])
def test_a_row_outside_the_file_is_rejected(source: Path, row: int) -> None:
    index = data_points(source)
    next(iter(index["client_0"].values())).append(row)
    write_data_points(source, index)
    with pytest.raises(ProblemError, match="row 0 is the header") as caught:
        convert(source)
    assert caught.value.problem.found == str(row)


def test_a_provider_of_two_clients_is_rejected(source: Path) -> None:
    index = data_points(source)
    index["client_1"][next(iter(index["client_0"]))] = [1]
    write_data_points(source, index)
    with pytest.raises(ProblemError, match="every provider with one client"):
        convert(source)


def test_a_client_without_file_is_rejected(source: Path) -> None:
    (source / "imdb" / "imdb_train_client_2.npy").unlink()
    with pytest.raises(ProblemError, match="entries for the clients' files"):
        convert(source)


def test_training_files_without_data_points_are_rejected(source: Path) -> None:
    (source / "imdb" / "data_points.json").unlink()
    with pytest.raises(ProblemError, match=r"data_points\.json beside"):
        convert(source)


def test_pages_of_unknown_providers_are_counted(source: Path) -> None:
    (source / "imdb" / "doc2provider.json").unlink()
    summary = convert(source)
    assert summary.findings.counts[Finding.UNKNOWN_PROVIDER] == 8


def test_providers_of_documents_are_read_in_both_forms(made: Path, source: Path) -> None:
    test = Dataset(made / "secret", "test")
    entries: dict[str, object] = {}
    for number, page in enumerate(test.pages.values()):
        entries[page.document] = page.provider if number % 2 else {"provider": page.provider}
    (source / "imdb" / "doc2provider.json").write_text(json.dumps(entries))
    convert(source)
    assert Dataset(source.parent / "back", "test").pages == test.pages


def test_a_training_page_whose_document_has_another_provider_elsewhere_is_counted(
    made: Path, source: Path
) -> None:
    page = next(iter(Dataset(made / "public", "train").pages.values()))
    path = source / "imdb" / "doc2provider.json"
    path.write_text(
        json.dumps(json.loads(path.read_text()) | {page.document: "another"}), encoding="utf-8-sig"
    )
    summary = convert(source)
    assert summary.findings.examples[Finding.OTHER_PROVIDER] == [page.page]
    assert Dataset(source.parent / "public", "train").pages[page.page].provider == page.provider


def test_two_files_that_name_different_providers_of_a_document_are_rejected(source: Path) -> None:
    document = next(iter(json.loads((source / "imdb" / "doc2provider.json").read_text())))
    (source / "imdb" / "red_doc2provider.json").write_text(json.dumps({document: "another"}))
    with pytest.raises(ProblemError) as caught:
        convert(source)
    assert caught.value.problem.where == f"red_doc2provider.json, {document}"
    assert caught.value.problem.found == "another"


def test_a_folder_without_imdb_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        convert_imdb(tmp_path, tmp_path / "public", tmp_path / "secret")
    assert caught.value.problem.code is ErrorCode.DATASET_FORMAT


def test_the_test_file_alone_makes_a_secret_folder_only(source: Path) -> None:
    for path in (source / "imdb").glob("imdb_[tv]*[0-9l].npy"):
        path.unlink()
    summary = convert(source)
    assert summary.splits.keys() == {"test"}
    assert (source.parent / "back" / "dataset.json").is_file()
    assert not (source.parent / "public").exists()


def test_exporting_a_page_whose_image_is_missing_is_rejected(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "secret", tmp_path / "folder")
    next((tmp_path / "folder" / "images").iterdir()).unlink()
    with pytest.raises(ProblemError, match="an image for every page"):
        export_imdb(tmp_path / "folder", tmp_path / "out")


def test_exporting_a_training_page_of_no_client_is_rejected(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "public", tmp_path / "folder")
    path = tmp_path / "folder" / "dataset.json"
    info = json.loads(path.read_text())
    info["clients"]["0"] = []
    path.write_text(json.dumps(info))
    with pytest.raises(ProblemError, match="every training provider with a client"):
        export_imdb(tmp_path / "folder", tmp_path / "out")


def test_boxes_as_lists_a_little_beyond_the_page_are_clipped_too(source: Path) -> None:
    content = rows(source / "imdb" / "imdb_test.npy")
    content[1]["ocr_normalized_boxes"] = (np.asarray(content[1]["ocr_normalized_boxes"]) - 0.3).tolist()
    rewrite(source / "imdb" / "imdb_test.npy", content)
    assert convert(source).findings.counts[Finding.CLIPPED_BOX] == 1


def as_red_team(source: Path, labels: dict[str, str]) -> Path:
    """The test file as the red-team challenge has it: two of its rows' pages belong to providers, with labels."""
    header, *questions = rows(source / "imdb" / "imdb_test.npy")
    red = source.parent / "red"
    (red / "images").mkdir(parents=True)
    owned = [
        {**question, "provider": sorted(labels)[place % len(labels)]}
        for place, question in enumerate({str(row["image_name"]): row for row in questions}.values())
    ]
    rewrite(red / "SaTML_PMIA_nondp.npy", [header, *owned])
    shutil.copytree(source / "images", red / "images", dirs_exist_ok=True)
    return red


def test_red_team_files_name_members_and_nonmembers(source: Path) -> None:
    red = as_red_team(source, {"Ash": "member", "Birch": "non_member"})
    labels = {"Ash": {"label": "member"}, "Birch": {"label": "non_member"}}
    (red / "SaTML_PMIA_label_nondp.json").write_text(json.dumps(labels))
    convert_imdb(red, source.parent / "public", source.parent / "attacked")
    dataset = Dataset(source.parent / "attacked", "red-nondp")
    assert membership(dataset) == {"Ash": True, "Birch": False}
    assert len(dataset.pages) == 4
    assert not (source.parent / "public" / "dataset.json").exists()

    # Beside data for the public, the labels stay with the secret ones.
    shutil.copy(source / "imdb" / "imdb_val.npy", red)
    convert_imdb(red, source.parent / "public-2", source.parent / "attacked-2")
    assert Dataset(source.parent / "public-2", "valid").info.clients == {}
    assert membership(Dataset(source.parent / "attacked-2", "red-nondp")) == {"Ash": True, "Birch": False}


def test_labels_that_contradict_the_rows_are_rejected(source: Path) -> None:
    red = as_red_team(source, {"Ash": "member", "Birch": "non_member"})
    header, *questions = rows(red / "SaTML_PMIA_nondp.npy")
    rewrite(red / "SaTML_PMIA_nondp.npy", [header, *({**row, "label": "member"} for row in questions)])
    (red / "SaTML_PMIA_label_nondp.json").write_text('{"Birch": {"label": "non_member"}}')
    with pytest.raises(ProblemError, match=r"SaTML_PMIA_label_nondp\.json, Birch"):
        convert_imdb(red, source.parent / "public", source.parent / "attacked")


def test_labels_of_another_form_are_rejected(source: Path) -> None:
    red = as_red_team(source, {"Ash": "member"})
    (red / "SaTML_PMIA_label_nondp.json").write_text('{"Ash": 1}')
    with pytest.raises(ProblemError) as caught:
        convert_imdb(red, source.parent / "public", source.parent / "attacked")
    assert caught.value.problem.code == ErrorCode.DATASET_FORMAT


def test_documents_for_attacks_become_a_split_of_their_own_and_go_out_again(source: Path) -> None:
    imdb = source / "imdb"
    (imdb / "imdb_test.npy").rename(imdb / "red_test.npy")
    providers = json.loads((source.parent / "secret" / "imdb" / "doc2provider.json").read_text())
    (imdb / "red_doc2provider.json").write_text(json.dumps(providers))
    summary = convert(source)
    assert not (source.parent / "back").exists()
    public = source.parent / "public"
    red = Dataset(public, "red")
    assert {page.provider for page in red.pages.values()} == {
        entry["provider"] for entry in providers.values()
    }
    assert summary.splits["red"].questions == len(red.questions) > 0
    export_imdb(public, source.parent / "again")
    assert (source.parent / "again" / "imdb" / "red_test.npy").is_file()


def test_files_of_the_red_team_challenge_go_out_again_with_who_is_a_member(source: Path) -> None:
    red = as_red_team(source, {"Ash": "member", "Birch": "non_member"})
    labels = {"Ash": {"label": "member"}, "Birch": {"label": "non_member"}}
    (red / "SaTML_PMIA_label_nondp.json").write_text(json.dumps(labels))
    attacked, again = source.parent / "attacked", source.parent / "again"
    convert_imdb(red, source.parent / "public", attacked)
    (attacked / "red-nondp").rename(attacked / "red-of-mine")
    summary = export_imdb(attacked, source.parent / "exported")
    assert summary.splits["red-of-mine"].pages == 4
    written = rows(source.parent / "exported" / "imdb" / "SaTML_PMIA_of-mine.npy")[1:]
    assert {(row["provider"], row["label"]) for row in written} == {
        ("Ash", "member"),
        ("Birch", "non_member"),
    }
    convert_imdb(source.parent / "exported", source.parent / "public", again)
    first, second = Dataset(attacked, "red-of-mine"), Dataset(again, "red-of-mine")
    assert first.pages == second.pages
    assert {question.question_id: question for question in first.questions} == {
        question.question_id: question for question in second.questions
    }
    assert membership(Dataset(again, "red-of-mine")) == {"Ash": True, "Birch": False}


def test_a_folder_without_any_split_is_not_exported(made: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    shutil.copy(made / "public" / "dataset.json", tmp_path / "folder")
    with pytest.raises(ProblemError, match="a folder train"):
        export_imdb(tmp_path / "folder", tmp_path / "out")
