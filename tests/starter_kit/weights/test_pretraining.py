from itertools import islice
from pathlib import Path

import pytest

from evaluator.docvqa.reference import open_reference
from starter_kit.weights import pretraining
from starter_kit.weights.pretraining import UNANSWERABLE, CardMaker, create_base


def test_the_same_seed_makes_the_same_cards() -> None:
    assert list(CardMaker(3).cards(20)) == list(CardMaker(3).cards(20))
    assert list(CardMaker(3).cards(20)) != list(CardMaker(4).cards(20))


def test_an_answer_is_on_the_card_unless_it_is_unanswerable() -> None:
    cards = list(CardMaker(1).cards(400))
    for card in cards:
        assert len(card.words) == len(card.boxes)
        assert card.answer == UNANSWERABLE or card.answer in " ".join(card.words).lower()
    share = sum(card.answer == UNANSWERABLE for card in cards) / len(cards)
    assert 0 < share < 2 * pretraining.UNANSWERABLE_SHARE


def test_boxes_lie_on_the_page() -> None:
    for card in islice(CardMaker(2).cards(100), 100):
        for left, top, right, bottom in card.boxes:
            assert 0 <= left <= right <= 1
            assert 0 <= top < bottom <= 1


def test_the_base_weights_learn_and_are_a_whole_reference_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pretraining, "CARDS", 300)
    losses = []
    for steps in (1, 40):
        monkeypatch.setattr(pretraining, "STEPS", steps)
        told: list[tuple[int, int]] = []
        folder = tmp_path / str(steps)
        loss = create_base(folder, seed=1, vocab_size=400, on_progress=lambda *at, told=told: told.append(at))
        losses.append(loss)
        assert told[-1] == (steps, steps)
        model, tokenizer = open_reference(folder)
        assert tokenizer.vocab_size <= model.config.vocab_size
    assert losses[1] < losses[0]
