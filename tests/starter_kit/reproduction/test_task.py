from pathlib import Path

import pytest

from evaluator.docvqa.dataset import Dataset
from starter_kit.reproduction.cards import PAIRS, meaning
from starter_kit.reproduction.task import TaskSettings, write_task

SMALL = TaskSettings(seed=3, clients=3, providers=30, valid_documents=8, test_documents=20)
AMOUNTS = ("gross", "net", "amount", "total", "sum", "price")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("task")
    write_task(folder, SMALL)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_settings_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    write_task(tmp_path, SMALL)

    assert files(tmp_path) == files(folder)


def test_another_seed_gives_other_pages(folder: Path, tmp_path: Path) -> None:
    write_task(tmp_path, SMALL.model_copy(update={"seed": 4}))

    assert (tmp_path / "train/pages.jsonl").read_bytes() != (folder / "train/pages.jsonl").read_bytes()


def test_every_training_provider_is_at_exactly_one_client(folder: Path) -> None:
    train = Dataset(folder, "train")
    dealt = [provider for providers in train.info.clients.values() for provider in providers]

    assert len(train.info.clients) == 3
    assert len(dealt) == len(set(dealt)) == 30
    assert set(dealt) == {page.provider for page in train.pages.values()}


def test_every_training_provider_has_two_pages_and_four_questions(folder: Path) -> None:
    by_provider = Dataset(folder, "train").questions_by_provider()

    assert {len(questions) for questions in by_provider.values()} == {4}
    assert {len({question.page for question in questions}) for questions in by_provider.values()} == {2}


@pytest.mark.parametrize("split", ["valid", "test"])
def test_half_of_the_held_out_documents_come_from_providers_never_trained_on(
    folder: Path, split: str
) -> None:
    trained = {page.provider for page in Dataset(folder, "train").pages.values()}
    pages = Dataset(folder, split).pages.values()

    assert sum(page.provider not in trained for page in pages) == len(pages) // 2


def test_no_document_is_in_two_splits(folder: Path) -> None:
    texts = [
        {" ".join(page.words) for page in Dataset(folder, split).pages.values()}
        for split in ("train", "valid", "test")
    ]

    assert len(set.union(*texts)) == sum(map(len, texts))


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_answer_stands_after_the_label_that_the_task_means(folder: Path, split: str) -> None:
    dataset = Dataset(folder, split)
    meant = {word: meaning(pair, word) for pair in PAIRS for word in pair.words}

    for question in dataset.questions:
        text = " ".join(dataset.pages[question.page].words)
        assert f"{meant.get(question.key, question.key)} {question.answers[0]}" in text
        assert question.key in question.question


def test_a_page_lists_both_fields_of_the_pair_that_is_asked_for(folder: Path) -> None:
    dataset = Dataset(folder, "train")
    labels = {word: pair.labels for pair in PAIRS for word in pair.words}
    ambiguous = [question for question in dataset.questions if question.key in labels]

    assert len(ambiguous) > len(dataset.questions) / 2
    for question in ambiguous:
        assert set(labels[question.key]) <= set(dataset.pages[question.page].words)


def test_an_amount_is_answered_without_its_currency(folder: Path) -> None:
    answers = [
        question.answers[0] for question in Dataset(folder, "train").questions if question.key == "amount"
    ]

    assert answers
    assert all(answer.replace(".", "").isdigit() for answer in answers)


def test_more_held_out_documents_of_training_providers_than_providers_are_rejected() -> None:
    with pytest.raises(ValueError, match="more documents of training providers"):
        TaskSettings(providers=20, test_documents=100, valid_documents=2)
