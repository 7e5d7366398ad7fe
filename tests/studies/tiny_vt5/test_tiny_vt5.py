import random
from itertools import islice
from pathlib import Path

import pytest
import torch

from evaluator.docvqa.reference import open_reference
from starter_kit.data.forms.fields import PAIRS, PUBLIC_SHARES, meaning
from starter_kit.weights.tiny_vt5 import FOLDER, copy_to, digests
from tests.studies.tiny_vt5.origin import read_origin
from tests.studies.tiny_vt5.pretraining import (
    PretrainingSettings,
    as_batch,
    cards,
    exam_accuracy,
    initial_model,
    make_tokenizer,
    pretrain,
    small_config,
    train_tokenizer,
)
from tests.tiny_reference import mean_loss

# A world of two labels, issued and due.
EASY = PretrainingSettings(seed=1, batch_size=32, kinds=1, pairs_per_card=1, named_share=1.0)

# Of plain questions on public cards that the shipped weights answer; an untrained model answers none.
LEAST_ACCURACY = 0.7

# Random numbers of one seed differ by up to 4e-8 between processors; pre-training changes each tensor by 0.13 or more.
MAX_ROUNDING = 1e-5


def test_the_shipped_files_are_the_ones_that_were_made() -> None:
    assert digests() == read_origin().sha256
    assert read_origin().settings == PretrainingSettings()


def test_the_shipped_weights_read_public_cards_as_well_as_is_stated() -> None:
    model, tokenizer = open_reference(FOLDER)
    accuracy = exam_accuracy(model.eval(), tokenizer, PretrainingSettings())

    assert accuracy > LEAST_ACCURACY
    # Arithmetic differs a little from one processor to another.
    assert accuracy == pytest.approx(read_origin().accuracy, abs=0.02)


def test_what_pretraining_does_not_change_is_shipped_as_the_code_makes_it(tmp_path: Path) -> None:
    settings = PretrainingSettings()
    tokenizer = make_tokenizer(settings)
    tokenizer.save(tmp_path)
    shipped, _ = open_reference(FOLDER)
    begun = initial_model(tokenizer, settings)

    assert (tmp_path / "tokenizer.json").read_bytes() == (FOLDER / "tokenizer.json").read_bytes()
    assert shipped.config == small_config(tokenizer.vocab_size)
    kept = {name for name in begun.state_dict() if name.startswith("visual_embedding.image_model.")}
    assert kept
    for name, tensor in begun.state_dict().items():
        is_kept = torch.allclose(tensor, shipped.state_dict()[name], rtol=0, atol=MAX_ROUNDING)
        assert is_kept == (name in kept), name


def test_a_copy_is_a_whole_reference_folder(tmp_path: Path) -> None:
    copy_to(tmp_path / "base")

    open_reference(tmp_path / "base")
    assert [path.name for path in tmp_path.iterdir()] == ["base"]


def test_pretraining_lowers_the_loss_on_cards_that_it_has_not_seen(tmp_path: Path) -> None:
    fresh = list(islice(cards(EASY, random.Random("fresh")), 32))
    losses = []
    for steps in (1, 50):
        pretrain(tmp_path / str(steps), EASY.model_copy(update={"steps": steps}))
        model, tokenizer = open_reference(tmp_path / str(steps))
        losses.append(mean_loss(model, as_batch(model, tokenizer, fresh)).item())

    assert losses[1] < 0.8 * losses[0]


def test_the_same_settings_give_the_same_weights(tmp_path: Path) -> None:
    few = EASY.model_copy(update={"steps": 3})

    pretrain(tmp_path / "one", few)
    pretrain(tmp_path / "two", few)

    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_every_step_is_reported(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    pretrain(tmp_path, EASY.model_copy(update={"steps": 2}), lambda done, total: seen.append((done, total)))

    assert seen == [(1, 2), (2, 2)]


def test_a_card_holds_its_answer() -> None:
    for card in islice(cards(PretrainingSettings(), random.Random(5)), 300):
        assert card.answer in " ".join(card.words)
        assert len(card.boxes) == len(card.words)


@pytest.mark.parametrize("number", range(len(PUBLIC_SHARES)))
def test_public_cards_mean_what_forms_mean_by_a_word_in_the_stated_share(number: int) -> None:
    words = {pair.words[number]: pair for pair in PAIRS}
    as_meant = asked = 0
    for card in islice(cards(PretrainingSettings(named_share=0.0), random.Random(6)), 8_000):
        word = next((word for word in words if f" {word} " in f" {card.question} "), None)
        if word is None or not set(words[word].labels) <= set(card.words):
            continue
        text = " ".join(card.words)
        asked += 1
        as_meant += f"{meaning(words[word], word)} {card.answer}" in text

    assert asked > 1_000
    assert as_meant / asked == pytest.approx(PUBLIC_SHARES[number], abs=0.04)


def test_numbers_are_read_two_digits_at_a_time() -> None:
    tokenizer = train_tokenizer([f"{a} {b}.{b} {a}" for a in range(10, 99) for b in range(10, 99)], 1_024)
    ids = tokenizer.encode_answers(["12.45"])[0]

    assert len(ids) == 4
    assert tokenizer.decode(ids) == "12.45"


def test_a_card_of_more_pairs_than_there_are_is_rejected() -> None:
    with pytest.raises(ValueError, match="can't show 3 of 2 pairs"):
        PretrainingSettings(kinds=2, pairs_per_card=3)
