from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from evaluator.docvqa import tokenization
from evaluator.docvqa.tokenization import END_BOX, PROMPT_BOX, Tokenizer
from evaluator.errors import ErrorCode, ProblemError
from tests.evaluator.docvqa.factories import make_tokenizer
from tests.tiny_reference import train_tokenizer

SENTENCEPIECE_FOLDER = Path(__file__).parents[1] / "data" / "vt5-reference"
BOX = (0.1, 0.2, 0.3, 0.4)

TOKENIZER = make_tokenizer()
CONVERTED = Tokenizer.from_folder(SENTENCEPIECE_FOLDER)


def test_every_token_carries_the_box_of_its_word() -> None:
    text = TOKENIZER.encode("What?", ["12.50", "due"], [BOX, (0.5, 0.6, 0.7, 0.8)], 512)
    prompt = len(TOKENIZER.encode("What?", [], [], 512)) - 1
    amount, due = (len(ids) - 1 for ids in TOKENIZER.encode_answers(["12.50", "due"]))
    assert text.ids[-1] == 1
    assert text.boxes == ([PROMPT_BOX] * prompt + [BOX] * amount + [(0.5, 0.6, 0.7, 0.8)] * due + [END_BOX])


@given(
    words=st.lists(st.text(max_size=12), max_size=30),
    max_input_tokens=st.integers(min_value=2, max_value=64),
)
@pytest.mark.parametrize("tokenizer", [TOKENIZER, CONVERTED], ids=["trained", "converted"])
def test_the_text_is_cut_to_length_and_always_ends(
    tokenizer: Tokenizer, words: list[str], max_input_tokens: int
) -> None:
    whole = tokenizer.encode("total?", words, [BOX] * len(words), 100_000)
    text = tokenizer.encode("total?", words, [BOX] * len(words), max_input_tokens)
    assert len(text.ids) == len(text.boxes) == min(max_input_tokens, len(whole.ids))
    assert text.is_cut == (len(text) < len(whole))
    assert text.ids[:-1] == whole.ids[: len(text.ids) - 1]
    assert (text.ids[-1], text.boxes[-1]) == (1, END_BOX)


def test_words_are_tokenized_apart_from_each_other() -> None:
    together = TOKENIZER.encode("q", ["12", "50"], [BOX, BOX], 64)
    joined = TOKENIZER.encode("q", ["1250"], [BOX], 64)
    assert together.ids != joined.ids


def test_as_many_boxes_as_words_are_needed() -> None:
    with pytest.raises(ValueError, match="shorter"):
        TOKENIZER.encode("q", ["a", "b"], [BOX], 64)


def test_a_full_word_cache_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = [["total", "12.50", "due"], ["date", "10/17/18"], ["total", "due"]]
    expected = [TOKENIZER.encode("q", words, [BOX] * len(words), 64) for words in pages]
    monkeypatch.setattr(tokenization, "CACHED_WORDS", 3)
    fresh = make_tokenizer()
    assert [fresh.encode("q", words, [BOX] * len(words), 64) for words in pages] == expected


class Interrupted:
    """A backend that calls `meanwhile` before it encodes words, as another thread may."""

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        self._backend = backend
        self.meanwhile: Callable[[], object] = int

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def encode_batch(self, words: list[str], **options: bool) -> list[tokenizers.Encoding]:
        meanwhile, self.meanwhile = self.meanwhile, int
        meanwhile()
        return self._backend.encode_batch(words, **options)


def test_a_page_keeps_its_words_when_another_thread_fills_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boxes = [BOX] * 3
    expected = TOKENIZER.encode("q", ["a", "b", "c"], boxes, 64)
    monkeypatch.setattr(tokenization, "CACHED_WORDS", 3)
    backend = Interrupted(make_tokenizer()._backend)
    tokenizer = Tokenizer(backend)  # type: ignore[arg-type]
    tokenizer.encode("q", ["a", "b"], boxes[:2], 64)
    backend.meanwhile = lambda: tokenizer.encode("q", ["d", "e", "f"], boxes, 64)
    assert tokenizer.encode("q", ["a", "b", "c"], boxes, 64) == expected


@given(st.text(alphabet=st.characters(categories=["Ll", "Lu", "Nd", "Sc"]), min_size=1, max_size=20))
def test_any_word_can_be_written_and_read_back(word: str) -> None:
    tokenizer = TOKENIZER
    [ids] = tokenizer.encode_answers([word])
    assert tokenizer.encode_answers([tokenizer.decode(ids)]) == [ids]
    assert tokenizer.encode_answers([word])[0].count(2) == 0


@pytest.mark.parametrize(
    "answer", ["12.50", "10/17/18", "billing@agency.com", "RM 1,234.00", "net 30 days", "Café, 5%"]
)
def test_answers_survive_and_keep_their_case(answer: str) -> None:
    [ids] = TOKENIZER.encode_answers([answer])
    assert ids[-1] == 1
    assert TOKENIZER.decode([*ids, 0, 0]) == answer


@pytest.mark.parametrize(("loose", "tight"), [("what ?", "what?"), ("a , b", "a, b"), ("it 's", "it's")])
def test_decoding_tightens_punctuation_as_the_published_code_does(loose: str, tight: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode_answers([loose])[0]) == tight


def test_digits_stand_alone() -> None:
    texts = ["2018 2018 2019 2020"] * 100
    tokenizer = train_tokenizer(texts, 400)
    four_digits, two_digits = tokenizer.encode_answers(["2018", "20"])
    assert (len(four_digits), len(two_digits)) == (4 + 1, 2 + 1)


def test_training_gives_the_same_tokenizer_each_time_and_keeps_within_its_size(tmp_path: Path) -> None:
    texts = [f"invoice number {n * 7919} of client{chr(97 + n % 26)} total {n}.50" for n in range(400)]
    for run in ("a", "b"):
        tokenizer = train_tokenizer(texts, 300)
        tokenizer.save(tmp_path / run)
        assert tokenizer.vocab_size == 300
    assert (tmp_path / "a/tokenizer.json").read_bytes() == (tmp_path / "b/tokenizer.json").read_bytes()


@pytest.mark.parametrize("tokenizer", [TOKENIZER, CONVERTED], ids=["trained", "converted"])
def test_a_tokenizer_survives_saving_and_opening(tmp_path: Path, tokenizer: Tokenizer) -> None:
    tokenizer.save(tmp_path)
    opened = Tokenizer.from_folder(tmp_path)
    words = ["Total", "12.50", "", "ﬁn", "<unk>"]
    boxes = [BOX] * len(words)
    assert opened.encode("What is due?", words, boxes, 64) == tokenizer.encode(
        "What is due?", words, boxes, 64
    )
    assert opened.vocab_size == tokenizer.vocab_size


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (None, ""),
        ("tokenizer.json", "{}"),
        ("tokenizer.json", '{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}'),
        ("spiece.model", "not a protocol buffer"),
    ],
)
def test_a_folder_without_a_readable_tokenizer_is_rejected(
    tmp_path: Path, name: str | None, content: str
) -> None:
    if name is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(ProblemError) as error:
        Tokenizer.from_folder(tmp_path)
    assert error.value.problem.code is ErrorCode.REFERENCE_FORMAT
