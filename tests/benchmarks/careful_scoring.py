"""A careful way to score a VT5 with `transformers.generate`: what scoring is also measured against.

It avoids what the published loop wastes: the words of a page are tokenized by one call, each page's image is read and
encoded once, nothing is computed with labels, and generation keeps neither attention maps nor scores, in PyTorch's own
attention.
"""

import torch
from torch import Tensor
from transformers import GenerationConfig

from evaluator.docvqa.architecture import MAX_ANSWER_LENGTH
from evaluator.docvqa.dataset import Box, Dataset, Page, Question
from evaluator.docvqa.images import read_page
from evaluator.docvqa.tokenization import END_BOX, PROMPT_BOX, EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch
from tests.benchmarks.published_scoring import Ending, LengthOf, Stopwatch, plain_tokenizer


class CarefulScoring:
    """Answers the questions of a dataset, page by page."""

    def __init__(self, model: VT5, tokenizer: Tokenizer, *, batch_size: int, length_of: LengthOf) -> None:
        self.model, self.batch_size, self.length_of = model, batch_size, length_of
        self.watch = Stopwatch()
        self._tokenizer = plain_tokenizer(tokenizer)

    @torch.inference_mode()
    def run(self, dataset: Dataset, questions: list[Question]) -> list[str]:
        size = self.model.config.visual.image_size
        pages = list(dict.fromkeys(question.page for question in questions))
        with self.watch.on("words to tokens"):
            words = {page: self._words(dataset.pages[page]) for page in pages}
            texts = [self._text(question, *words[question.page]) for question in questions]
        with self.watch.on("images"):
            pixels = torch.stack([read_page(dataset.image_path(page), size) for page in pages])
            features = dict(zip(pages, self.model.page_features(pixels), strict=True))
        answers: list[str] = []
        with self.watch.on("generation"):
            for start in range(0, len(questions), self.batch_size):
                chosen = slice(start, start + self.batch_size)
                of_pages = torch.stack([features[question.page] for question in questions[chosen]])
                answers += self._answers(texts[chosen], of_pages, questions[chosen])
        return answers

    def _answers(self, texts: list[EncodedText], features: Tensor, questions: list[Question]) -> list[str]:
        config, batch = self.model.config, Batch.pad(texts, features)
        embeddings, mask = self.model.encoder_input(batch)
        ids = self.model.language_backbone.generate(
            inputs_embeds=embeddings,
            attention_mask=mask,
            generation_config=GenerationConfig(
                max_length=MAX_ANSWER_LENGTH,
                num_beams=1,
                do_sample=False,
                decoder_start_token_id=config.decoder_start_token_id,
                eos_token_id=config.eos_token_id,
                pad_token_id=config.pad_token_id,
            ),
            logits_processor=[Ending(list(map(self.length_of, questions)), config.eos_token_id)],
        )
        return list(self._tokenizer.batch_decode(ids[:, 1:], skip_special_tokens=True))

    def _words(self, page: Page) -> tuple[list[int], list[Box]]:
        pieces = self._tokenizer(page.words, add_special_tokens=False).input_ids
        boxes = [box for box, ids in zip(page.boxes, pieces, strict=True) for _ in ids]
        return [id_ for ids in pieces for id_ in ids], boxes

    def _text(self, question: Question, words: list[int], boxes: list[Box]) -> EncodedText:
        prompt = f"question: {question.question}  context: "
        ids = self._tokenizer(prompt, add_special_tokens=False).input_ids
        kept = self.model.config.max_input_tokens - 1
        placed = [*[PROMPT_BOX] * len(ids), *boxes][:kept]
        return EncodedText([*[*ids, *words][:kept], self.model.config.eos_token_id], [*placed, END_BOX])
