import random
from itertools import islice
from pathlib import Path

import pytest

from evaluator.docvqa.reference import open_reference
from starter_kit.reproduction.base import BaseSettings, cards, create_base, train_tokenizer
from starter_kit.reproduction.cards import PAIRS, PUBLIC_SHARES, meaning

# A world of two labels, issued and due, in which reading is learned in seconds.
EASY = BaseSettings(seed=1, steps=450, batch_size=32, kinds=1, pairs_per_card=1, named_share=1.0)


def test_the_base_learns_to_read_cards_that_it_has_not_seen(tmp_path: Path) -> None:
    # Who copies a value without reading its label is right in three cases of five.
    accuracy = create_base(tmp_path, EASY)
    model, tokenizer = open_reference(tmp_path)

    assert accuracy > 0.65
    assert tokenizer.vocab_size <= model.config.vocab_size


def test_the_same_settings_give_the_same_weights(tmp_path: Path) -> None:
    few = EASY.model_copy(update={"steps": 3})

    create_base(tmp_path / "one", few)
    create_base(tmp_path / "two", few)

    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_every_step_is_reported(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    create_base(
        tmp_path, EASY.model_copy(update={"steps": 2}), lambda done, total: seen.append((done, total))
    )

    assert seen == [(1, 2), (2, 2)]


def test_a_card_holds_its_answer() -> None:
    for card in islice(cards(BaseSettings(), random.Random(5)), 300):
        assert card.answer in " ".join(card.words)
        assert len(card.boxes) == len(card.words)


@pytest.mark.parametrize("number", range(len(PUBLIC_SHARES)))
def test_public_cards_mean_what_the_task_means_by_a_word_in_the_stated_share(number: int) -> None:
    words = {pair.words[number]: pair for pair in PAIRS}
    as_meant = asked = 0
    for card in islice(cards(BaseSettings(named_share=0.0), random.Random(6)), 8_000):
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
        BaseSettings(kinds=2, pairs_per_card=3)
