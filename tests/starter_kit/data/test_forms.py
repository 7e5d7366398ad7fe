import hashlib
from pathlib import Path

import numpy as np
import pytest

from evaluator.docvqa.dataset import Dataset
from starter_kit.data.forms import FormSettings, generate
from starter_kit.data.forms.drawing import draw_form
from starter_kit.data.forms.fields import PAIRS, meaning

SMALL = FormSettings(seed=3, clients=3, providers=30, valid_forms=8, test_forms=20)
AMOUNTS = ("gross", "net", "amount", "total", "sum", "price")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All three splits in one folder."""
    folder = tmp_path_factory.mktemp("forms")
    generate(folder, folder, SMALL)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_same_settings_give_the_same_files(folder: Path, tmp_path: Path) -> None:
    generate(tmp_path, tmp_path, SMALL)

    assert files(tmp_path) == files(folder)


def test_the_pages_and_questions_are_those_of_the_published_figures(folder: Path) -> None:
    # A change here makes docs/reproduction.md, docs/leakage.md and others those of another task.
    content = b"".join(data for name, data in sorted(files(folder).items()) if not name.endswith(".jpg"))
    assert hashlib.sha256(content).hexdigest().startswith("9392a9efe1c0798b")


def test_another_seed_gives_other_pages(folder: Path, tmp_path: Path) -> None:
    generate(tmp_path, tmp_path, SMALL.model_copy(update={"seed": 4}))

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
def test_half_of_the_held_out_forms_come_from_providers_never_trained_on(folder: Path, split: str) -> None:
    trained = {page.provider for page in Dataset(folder, "train").pages.values()}
    pages = Dataset(folder, split).pages.values()

    assert sum(page.provider not in trained for page in pages) == len(pages) // 2


def test_no_form_is_in_two_splits(folder: Path) -> None:
    texts = [
        {" ".join(page.words) for page in Dataset(folder, split).pages.values()}
        for split in ("train", "valid", "test")
    ]

    assert len(set.union(*texts)) == sum(map(len, texts))


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_answer_stands_after_the_label_that_forms_mean(folder: Path, split: str) -> None:
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


def test_the_public_folder_holds_nothing_of_the_test_set(tmp_path: Path) -> None:
    public, secret = tmp_path / "public", tmp_path / "secret"
    for made in (public, secret):
        made.mkdir()
    generate(public, secret, SMALL)

    test = Dataset(secret, "test")
    assert sorted(path.name for path in public.iterdir()) == ["dataset.json", "images", "train", "valid"]
    assert {path.stem for path in (secret / "images").iterdir()} == test.pages.keys()
    assert not any((public / "images" / f"{page}.jpg").exists() for page in test.pages)
    assert "seed" not in (public / "dataset.json").read_text()


def test_every_form_has_a_picture(folder: Path) -> None:
    pages = {name for split in ("train", "valid", "test") for name in Dataset(folder, split).pages}
    assert {path.stem for path in (folder / "images").iterdir()} == pages


def test_a_word_is_drawn_where_its_box_is(folder: Path) -> None:
    page = next(iter(Dataset(folder, "train").pages.values()))
    one_word, drawn = (
        np.asarray(draw_form(page.words[:count], page.boxes[:count], (1, 2, 3)))
        for count in (1, len(page.words))
    )
    height, width, _ = drawn.shape

    for left, top, right, bottom in page.boxes[1:]:
        rows, columns = (
            slice(round(top * height), round(bottom * height)),
            slice(round(left * width), round(right * width)),
        )
        assert (drawn[rows, columns] != one_word[rows, columns]).any()


def test_more_held_out_forms_of_training_providers_than_providers_are_rejected() -> None:
    with pytest.raises(ValueError, match="more forms of training providers"):
        FormSettings(providers=20, test_forms=100, valid_forms=2)
