"""Answers of a model to the questions of a dataset.

An answer doesn't depend on which questions share a batch with its own, so neither on the budget nor on the order
of the questions; between budgets and devices, arithmetic differs by rounding only. With `published_batching` the
published code's dependence on the batch is preserved, and answers come from `VT5.generate`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.devices import precision_of, sent
from evaluator.docvqa.generation import Answer, Encoded, Generator
from evaluator.docvqa.loading import LoadedShard, Loader, Shard, shards
from evaluator.docvqa.threads import set_threads_for
from evaluator.docvqa.tokenization import EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch, pad_labels, row_losses
from evaluator.messages.base import Message
from evaluator.messages.progress import OnProgress, ignore_progress

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
# Returns the texts of some rows, and their pages' features.
Read = Callable[[range], tuple[list[EncodedText], Tensor]]
# The tokens of some rows' gold answers; None where no loss is wanted.
Gold = Sequence[Sequence[int]] | None
# What PyTorch, CUDA, cuBLAS and oneDNN say.
OUT_OF_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "could not create a primitive",
)


@dataclass(frozen=True)
class Budget:
    """What is worked on at once.

    Attributes:
        tokens: Text and visual tokens in one pass through the encoder; a single question may exceed it.
        rows: Questions in one pass through the decoder.
        pages: Pages in a shard; their questions are batched by length.
    """

    tokens: int
    rows: int
    pages: int

    @classmethod
    def of(cls, device: torch.device) -> "Budget":
        """Return the budget of a device: on a CPU what its caches hold, on a GPU a few gigabytes."""
        return cls(3_000, 16, 16) if device.type == "cpu" else cls(60_000, 512, 512)


@dataclass(frozen=True)
class Prediction:
    """The answer to one question. `confidence` is in [0, 1]; see `VT5.generate`."""

    question_id: str
    answer: str
    confidence: float


class ShardAnswers(Message):
    """The answers to one shard's questions, in its order, and its pages whose image the model didn't see."""

    predictions: list[Prediction]
    without_image: list[str]


def in_order(plan: Sequence[Shard], answered: Iterable[ShardAnswers]) -> list[Prediction]:
    """Return the predictions of all shards of `plan`, in the order of the questions."""
    predictions = {
        index: prediction
        for shard, answers in zip(plan, answered, strict=True)
        for index, prediction in zip(shard.questions, answers.predictions, strict=True)
    }
    return [predictions[index] for index in range(len(predictions))]


def predict(
    model: VT5,
    tokenizer: Tokenizer,
    dataset: Dataset,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
    budget: Budget | None = None,
    on_progress: OnProgress = ignore_progress,
    questions: Sequence[Question] | None = None,
) -> list[Prediction]:
    """Return the model's answers to `questions`, all of the dataset's by default, in their order.

    Moves the model to `device`. Every page image is read and encoded once; a page without an image that can be read is
    gray. `on_progress` receives the questions done and their total after every pass, which is every few seconds.
    """
    asked = dataset.questions if questions is None else questions
    answerer = Answerer(model, tokenizer, device=device, dtype=dtype, budget=budget)
    plan = shards(asked, answerer.budget.pages)
    was_training = model.training
    model.eval()
    try:
        answered = answerer.answer_shards(dataset, asked, plan, lambda done: on_progress(done, len(asked)))
        return in_order(plan, answered)
    finally:
        model.train(was_training)


class Answerer:
    """A model on a device, with its tokenizer. `budget` shrinks when the device's memory doesn't suffice."""

    def __init__(
        self,
        model: VT5,
        tokenizer: Tokenizer,
        *,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.budget = budget or Budget.of(self.device)
        self.dtype = dtype or precision_of(self.device)
        set_threads_for(sum(weight.numel() for weight in model.parameters()))
        self.generator = Generator(model.to(self.device), dtype=self.dtype)
        self.tokenizer = tokenizer
        self._model = model

    def loader(self, dataset: Dataset, questions: Sequence[Question]) -> Loader:
        return Loader(dataset, questions, self.tokenizer, self._model.config)

    def answer_shards(
        self,
        dataset: Dataset,
        questions: Sequence[Question],
        wanted: Sequence[Shard],
        on_progress: Callable[[int], None],
    ) -> Iterator[ShardAnswers]:
        """Yield the answers to each shard of `questions`; `on_progress` receives how many of all questions are done."""
        done = 0
        loader = self.loader(dataset, questions)
        for shard, loaded in zip(wanted, loader.load(wanted), strict=True):
            answers = self.answer(loaded, on_progress=partial(_add, on_progress, done))
            yield ShardAnswers(
                predictions=[
                    Prediction(questions[index].question_id, answer, confidence)
                    for index, (answer, confidence, _) in zip(shard.questions, answers, strict=True)
                ],
                without_image=loaded.without_image,
            )
            done += len(answers)

    def answer(
        self,
        loaded: LoadedShard,
        gold: Sequence[str] | None = None,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> list[tuple[str, float, float]]:
        """Return answer, confidence and loss for each of the shard's questions.

        Args:
            gold: Their gold answers. The loss is the mean cross-entropy over the tokens, in nats, and NaN without them;
                the encoder runs once for both.
            on_progress: Receives how many are done.
        """
        tokens = None if gold is None else self.tokenizer.encode_answers(gold)
        features = self.features(loaded.pixels, on_progress)
        answers: dict[int, Answer] = {}
        for places, some in self._answers(loaded.texts, features, loaded.page_rows, tokens):
            answers.update(zip(places, some, strict=True))
            on_progress(len(answers))
        in_order = (answers[place] for place in range(len(loaded.texts)))
        return [(self.tokenizer.decode(answer.ids), answer.confidence, answer.loss) for answer in in_order]

    def features(self, pixels: Tensor, on_progress: Callable[[int], None] = lambda _: None) -> Tensor:
        """Return the image tower's output (P, V, dv), which stays on the device."""
        visual_tokens = self._model.config.visual.tokens
        parts = []
        for group in self._groups([visual_tokens] * len(pixels)):
            for _, part in self._within_memory(
                group, lambda rows: self.generator.page_features(pixels[rows.start : rows.stop])
            ):
                parts.append(part)
                on_progress(0)
        return torch.cat(parts)

    def _answers(
        self, texts: Sequence[EncodedText], features: Tensor, page_rows: Sequence[int], gold: Gold
    ) -> Iterator[tuple[list[int], list[Answer]]]:
        """Yield positions of questions with their answers, the longest texts first."""
        places = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        lengths = [len(texts[place]) + features.shape[1] for place in places]

        def read(rows: range) -> tuple[list[EncodedText], Tensor]:
            some = places[rows.start : rows.stop]
            pages = torch.tensor([page_rows[place] for place in some])
            return [texts[place] for place in some], features.index_select(0, sent(pages, features.device))

        answered = self._plainly if self._model.config.published_batching else self._quickly
        for rows, answers in answered(lengths, read, gold and [gold[place] for place in places]):
            yield places[rows.start : rows.stop], answers

    def _plainly(
        self, lengths: Sequence[int], read: Read, gold: Gold
    ) -> Iterator[tuple[range, list[Answer]]]:
        def generate(rows: range) -> list[Answer]:
            batch = Batch.pad(*read(rows)).to(self.device)
            ids, confidences = self._model.generate(batch)
            answers = list(map(Answer, ids.tolist(), confidences.tolist()))
            if gold is None:
                return answers
            return _with_losses(answers, self._plain_losses(batch, gold[rows.start : rows.stop]))

        for group in self._groups(lengths):
            yield from self._within_memory(group, generate)

    @torch.inference_mode()
    def _plain_losses(self, batch: Batch, gold: Sequence[Sequence[int]]) -> Tensor:
        labels = sent(pad_labels(gold), self.device)
        return row_losses(self._model.logits(replace(batch, labels=labels)), labels)

    def _quickly(
        self, lengths: Sequence[int], read: Read, gold: Gold
    ) -> Iterator[tuple[range, list[Answer]]]:
        begin = 0
        parts: list[Encoded] = []
        for group in self._groups(lengths):
            for rows, encoded in self._within_memory(group, lambda rows: self.generator.encode(*read(rows))):
                parts.append(encoded)
                if rows.stop - begin >= self.budget.rows or rows.stop == len(lengths):
                    yield from self._decode(parts, begin, gold)
                    begin, parts = rows.stop, []

    def _decode(
        self, parts: Sequence[Encoded], begin: int, gold: Gold
    ) -> Iterator[tuple[range, list[Answer]]]:
        """Yield the answers to the rows of `parts`, which are those from `begin` on."""
        for _, encoded in self._within_memory(
            range(len(parts)), lambda some: Encoded.join(parts[some.start : some.stop])
        ):
            decode = partial(self._decode_rows, encoded, gold and gold[begin:])
            for rows, answers in self._within_memory(range(len(encoded)), decode):
                yield range(begin + rows.start, begin + rows.stop), answers
            begin += len(encoded)

    def _decode_rows(self, encoded: Encoded, gold: Gold, rows: range) -> list[Answer]:
        some = encoded.rows(rows)
        answers = self.generator.decode(some)
        if gold is None:
            return answers
        return _with_losses(answers, self.generator.losses(some, gold[rows.start : rows.stop]))

    def _groups(self, lengths: Sequence[int]) -> Iterator[range]:
        """Yield rows of `lengths` tokens, longest first, in groups within the budget at that time."""
        start = 0
        while start < len(lengths):
            stop = min(len(lengths), start + max(1, self.budget.tokens // lengths[start]))
            yield range(start, stop)
            start = stop

    def _within_memory(self, rows: range, run: Callable[[range], Result]) -> Iterator[tuple[range, Result]]:
        """Yield what `run` makes of `rows`, in halves where the device's memory doesn't suffice for all at once."""
        try:
            result = run(rows)
        except Exception as error:
            if len(rows) == 1 or not is_out_of_memory(error):
                raise
        else:
            yield rows, result
            return
        # Only here, outside of the handler, has what the failed call held been let go.
        self.budget = replace(
            self.budget, tokens=max(1, self.budget.tokens // 2), rows=max(1, self.budget.rows // 2)
        )
        logger.warning("the device's memory doesn't suffice; continuing with %s", self.budget)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        middle = len(rows) // 2
        yield from self._within_memory(rows[:middle], run)
        yield from self._within_memory(rows[middle:], run)


def _with_losses(answers: Sequence[Answer], losses: Tensor) -> list[Answer]:
    return [replace(answer, loss=loss) for answer, loss in zip(answers, losses.tolist(), strict=True)]


def _add(on_answered: Callable[[int], None], before: int, more: int) -> None:
    on_answered(before + more)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether a device, or the machine, had no memory left. PyTorch has a class for it on GPUs only."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)
    )
