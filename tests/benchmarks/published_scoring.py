"""The published way to score a VT5, written anew from its description: the reference of the benchmarks.

Batches in the order of the file; every word tokenized by a call of its own; a page's image read and encoded for each of
its questions; a forward pass with labels, whose result is not used; then greedy generation that keeps the scores and
all attention maps, in eager attention, until the last row of the batch has ended.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from transformers import GenerationConfig, LogitsProcessor, PreTrainedTokenizerFast

from evaluator.docvqa.architecture import MAX_ANSWER_LENGTH
from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.images import read_page
from evaluator.docvqa.tokenization import END, END_BOX, PAD, PROMPT_BOX, UNKNOWN, EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch

LengthOf = Callable[[Question], int]


class Stopwatch:
    """CPU seconds of this process by what they were spent on."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def on(self, step: str) -> Iterator[None]:
        before = time.process_time()
        try:
            yield
        finally:
            self.seconds[step] += time.process_time() - before

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class Ending(LogitsProcessor):  # type: ignore[misc]
    """Ends each row after its own number of tokens: random weights would never, or at once."""

    def __init__(self, lengths: list[int], end: int) -> None:
        self.lengths = lengths
        self.end = end

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        for row, length in enumerate(self.lengths):
            ends = input_ids.shape[1] == length
            scores[row, self.end] = torch.inf if ends else -torch.inf
        return scores


def plain_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Return the same tokenizer as transformers has it."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer._backend, pad_token=PAD, eos_token=END, unk_token=UNKNOWN
    )


class PublishedScoring:
    """Answers the questions of a dataset as the published code does."""

    def __init__(self, model: VT5, tokenizer: Tokenizer, *, batch_size: int, length_of: LengthOf) -> None:
        self.model = model
        self.config = model.config
        self.batch_size = batch_size
        self.length_of = length_of
        self.watch = Stopwatch()
        self._tokenizer = plain_tokenizer(tokenizer)

    @torch.no_grad()
    def run(self, dataset: Dataset, questions: list[Question]) -> list[str]:
        t5 = self.model.language_backbone
        t5.set_attn_implementation("eager")
        try:
            answers: list[str] = []
            for start in range(0, len(questions), self.batch_size):
                answers += self._batch(dataset, questions[start : start + self.batch_size])
            return answers
        finally:
            t5.set_attn_implementation("sdpa")

    def _batch(self, dataset: Dataset, questions: list[Question]) -> list[str]:
        t5 = self.model.language_backbone
        with self.watch.on("words to tokens"):
            texts = [self._encode(dataset, question) for question in questions]
            chosen = [random.choice(question.answers) for question in questions]
            labels = [self._tokenizer(text, add_special_tokens=False).input_ids for text in chosen]
        with self.watch.on("images"):
            size = self.config.visual.image_size
            pixels = torch.stack([read_page(dataset.image_path(q.page), size) for q in questions])
            with torch.enable_grad():  # as published: no graph is built of a frozen tower
                features = self.model.page_features(pixels)
        batch = Batch.pad(texts, features, [[*ids, self.config.eos_token_id] for ids in labels])
        embeddings = self.model.embed(batch.input_ids, batch.boxes, batch.features)
        mask = torch.cat([batch.attention_mask, batch.attention_mask.new_ones(features.shape[:2])], dim=1)
        with self.watch.on("forward pass, thrown away"):
            t5(inputs_embeds=embeddings, attention_mask=mask, labels=batch.labels, output_attentions=True)
        with self.watch.on("generation"):
            output = t5.generate(
                inputs_embeds=embeddings,
                attention_mask=mask,
                generation_config=GenerationConfig(
                    max_length=MAX_ANSWER_LENGTH,
                    num_beams=1,
                    do_sample=False,
                    output_scores=True,
                    output_attentions=True,
                    return_dict_in_generate=True,
                    decoder_start_token_id=self.config.decoder_start_token_id,
                    eos_token_id=self.config.eos_token_id,
                    pad_token_id=self.config.pad_token_id,
                ),
                logits_processor=[
                    Ending([self.length_of(question) for question in questions], self.config.eos_token_id)
                ],
            )
            torch.stack(output.scores).softmax(-1).max(-1).values.prod(0)
        return [
            self._tokenizer.decode(row, skip_special_tokens=True) for row in output.sequences[:, 1:].tolist()
        ]

    def _encode(self, dataset: Dataset, question: Question) -> EncodedText:
        page = dataset.pages[question.page]
        prompt = f"question: {question.question}  context: "
        ids = list(self._tokenizer(prompt, add_special_tokens=False).input_ids)
        boxes = [PROMPT_BOX] * len(ids)
        for word, box in zip(page.words, page.boxes, strict=True):
            pieces = self._tokenizer(word, add_special_tokens=False).input_ids
            ids += pieces
            boxes += [box] * len(pieces)
        kept = self.config.max_input_tokens - 1
        return EncodedText([*ids[:kept], self.config.eos_token_id], [*boxes[:kept], END_BOX])
