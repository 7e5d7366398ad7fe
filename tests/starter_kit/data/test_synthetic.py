import hashlib
import json
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from evaluator.docvqa.dataset import Dataset
from starter_kit.data.phrasings import INVOICE_PHRASINGS, RECEIPT_PHRASINGS
from starter_kit.data.summary import ImportSummary
from starter_kit.data.synthetic import SyntheticSettings, generate
from starter_kit.data.synthetic.generation import pages_by_rank
from starter_kit.data.synthetic.invoices import write_invoice
from starter_kit.data.synthetic.providers import all_names, providers
from starter_kit.data.synthetic.rendering import ACCENTS, draw_invoice
from starter_kit.randomness import data_stream

SMALL = SyntheticSettings(train_providers=40, train_pages=90, valid_pages=12, test_pages=24)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("synthetic")


@pytest.fixture(scope="module")
def summary(folder: Path) -> ImportSummary:
    return generate(folder / "public", folder / "secret", SMALL)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_same_seed_gives_the_same_bytes(folder: Path, summary: ImportSummary, tmp_path: Path) -> None:
    generate(tmp_path / "public", tmp_path / "secret", SMALL)
    assert digests(tmp_path) == digests(folder)


def test_another_seed_gives_other_invoices(folder: Path, summary: ImportSummary, tmp_path: Path) -> None:
    generate(tmp_path / "public", tmp_path / "secret", SMALL.model_copy(update={"seed": 8}))
    assert Dataset(tmp_path / "secret", "test").sha256() != Dataset(folder / "secret", "test").sha256()


def test_the_public_folder_reveals_nothing_of_the_test_set(folder: Path, summary: ImportSummary) -> None:
    public, test = folder / "public", Dataset(folder / "secret", "test")
    assert not (public / "test").exists()
    assert {path.stem for path in (folder / "secret" / "images").iterdir()} == test.pages.keys()
    text = "".join(path.read_text() for path in public.rglob("*.json*"))
    assert not [page for page in test.pages if page in text or (public / "images" / f"{page}.jpg").exists()]
    assert "seed" not in text


def test_clients_part_the_training_providers(folder: Path, summary: ImportSummary) -> None:
    train = Dataset(folder / "public", "train")
    dealt = [provider for providers in train.info.clients.values() for provider in providers]
    assert sorted(train.info.clients) == list(range(10))
    assert sorted(dealt) == sorted({page.provider for page in train.pages.values()})
    assert len(dealt) == 40


@pytest.mark.parametrize(("place", "split", "pages"), [("public", "valid", 12), ("secret", "test", 24)])
def test_held_out_pages_are_half_of_seen_providers(
    folder: Path, summary: ImportSummary, place: str, split: str, pages: int
) -> None:
    training = {page.provider for page in Dataset(folder / "public", "train").pages.values()}
    held_out = [page.provider in training for page in Dataset(folder / place, split).pages.values()]
    assert len(held_out) == pages
    assert sum(held_out) == pages // 2


def test_unseen_providers_of_test_are_not_met_in_validation(folder: Path, summary: ImportSummary) -> None:
    training, valid, test = (
        set(summary.splits[split].pages_by_provider) for split in ("train", "valid", "test")
    )
    assert not (valid - training) & (test - training)


def test_pages_are_few_for_most_providers_and_many_for_some() -> None:
    counts = pages_by_rank(SyntheticSettings())
    assert sum(counts) == 900
    assert min(counts) == 1
    assert max(counts) >= 40
    assert sorted(counts)[len(counts) // 2] <= 2


def test_answers_stand_on_the_page_as_running_words(folder: Path, summary: ImportSummary) -> None:
    for place, split in (("public", "train"), ("public", "valid"), ("secret", "test")):
        dataset = Dataset(folder / place, split)
        asked = Counter(question.page for question in dataset.questions)
        assert asked.keys() == dataset.pages.keys()
        assert set(asked.values()) == {2, 3}
        for question in dataset.questions:
            text = f" {' '.join(dataset.pages[question.page].words)} "
            assert f" {question.answers[0]} " in text, question
            assert question.question in INVOICE_PHRASINGS[question.key]


def test_every_key_has_at_least_four_wordings_and_none_is_shared() -> None:
    for phrasings in (INVOICE_PHRASINGS, RECEIPT_PHRASINGS):
        wordings = [wording for key in phrasings.values() for wording in key]
        assert len(wordings) == len(set(wordings))
        assert min(map(len, phrasings.values())) >= 4


def test_all_providers_differ_in_what_identifies_them() -> None:
    everyone = list(providers(3, len(all_names())))
    for identity in ("name", "email", "tax_number"):
        assert len({getattr(provider, identity) for provider in everyone}) == len(everyone)
    assert any(not provider.name.isascii() for provider in everyone)
    assert all(provider.email.isascii() for provider in everyone)
    styles = {json.dumps(vars(provider.style)) for provider in everyone}
    assert len(styles) > 0.95 * len(everyone)


def test_words_of_every_layout_lie_apart_on_the_page() -> None:
    for number, provider in enumerate(providers(5, 300)):
        sheet = draw_invoice(write_invoice(provider, data_stream(5, number)), 300, 400)
        boxes = np.array(sheet.boxes)
        assert boxes.min() >= 0
        assert boxes.max() <= 1
        assert (boxes[:, 2:] > boxes[:, :2]).all()
        overlap = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - np.maximum(
            boxes[:, None, :2], boxes[None, :, :2]
        )
        both = (overlap > 0.0026).all(axis=-1)  # more than a pixel each way
        assert both.sum() == len(boxes), [sheet.words[i] for i in np.argwhere(both.sum(axis=1) > 1)[:, 0]]


def test_boxes_hold_the_ink_of_their_words_and_nothing_is_drawn_outside() -> None:
    for number, provider in enumerate(providers(5, 60)):
        invoice = write_invoice(provider, data_stream(5, number))
        sheet = draw_invoice(invoice, 300, 400)
        inked = np.any(np.asarray(sheet.image) != provider.style.paper, axis=-1)
        for word, (x0, y0, x1, y1) in zip(sheet.words, sheet.boxes, strict=True):
            box = inked[round(y0 * 400) : round(y1 * 400), round(x0 * 300) : round(x1 * 300)]
            assert box.any(axis=0).mean() > 0.5, word  # ink all along the word, not in a corner of the box
            inked[round(y0 * 400) - 1 : round(y1 * 400) + 2, round(x0 * 300) - 1 : round(x1 * 300) + 2] = (
                False
            )
        logo_bottom = 14 + provider.style.logo_px + 1
        rules = inked[logo_bottom:].mean(axis=1) > 0.8
        assert not inked[logo_bottom:][~rules].any(), provider.name


def test_every_accent_of_the_word_lists_can_be_drawn() -> None:
    text = "".join(provider.name + provider.address for provider in providers(1, len(all_names())))
    marks = {mark for letter in text for mark in unicodedata.normalize("NFD", letter)[1:]}
    assert marks <= ACCENTS.keys()
    assert all(ord(unicodedata.normalize("NFD", letter)[0]) < 128 for letter in text)


def test_an_invoice_adds_up() -> None:
    for number, provider in enumerate(providers(2, 50)):
        invoice = write_invoice(provider, data_stream(2, number))
        separators = str.maketrans("", "", ".,")
        total = int(invoice.values["total_amount"].translate(separators))
        assert total == sum(int(amount.translate(separators)) for _, amount in invoice.items)


def test_images_are_small_rgb_jpegs(folder: Path, summary: ImportSummary) -> None:
    path = next((folder / "public" / "images").iterdir())
    with Image.open(path) as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (300, 400))
    assert path.stat().st_size < 30_000


def test_the_summary_counts_what_is_on_disk(folder: Path, summary: ImportSummary) -> None:
    test = Dataset(folder / "secret", "test")
    assert summary.splits["test"].pages == len(test.pages) == 24
    assert summary.splits["test"].questions == len(test.questions)
    assert summary.clients == dict.fromkeys(range(10), 4)


@pytest.mark.parametrize(
    "changes",
    [
        {"train_providers": 5},
        {"train_pages": 399},
        {"train_providers": 2000, "train_pages": 3000},
        {"min_questions": 4},
        {"clients": 0},
    ],
)
def test_settings_that_do_not_fit_together_are_rejected(changes: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        SyntheticSettings.model_validate(changes)
