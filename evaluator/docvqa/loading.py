"""Pages and questions on their way to the model: read, decoded and tokenized beside the model's work.

A shard is some pages with all questions about them. While the model works on one shard, the next is prepared in
threads: decoding an image lets other threads run.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from evaluator.docvqa.architecture import VT5Config
from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.images import read_page
from evaluator.docvqa.tokenization import EncodedText, Tokenizer
from evaluator.errors import ProblemError

MAX_THREADS = 16
# The middle of the pixels' range, as what is missing of a truncated image.
GRAY = 0.0


@dataclass(frozen=True)
class Shard:
    """Pages by name, and the questions about them by their place among all that are asked."""

    pages: list[str]
    questions: list[int]


@dataclass(frozen=True)
class LoadedShard:
    """A shard ready for the model.

    Attributes:
        texts: One for each of the shard's questions.
        page_rows: For each question, its page's place in `shard.pages`.
        pixels: (P, 3, size, size) float32; gray where a page has no image that can be read.
        without_image: Those pages.
    """

    shard: Shard
    texts: list[EncodedText]
    page_rows: list[int]
    pixels: Tensor
    without_image: list[str]


def shards(questions: Sequence[Question], pages: int) -> list[Shard]:
    """Return all questions in shards of `pages` pages each, pages in the order of their first question."""
    by_page: dict[str, list[int]] = {}
    for index, question in enumerate(questions):
        by_page.setdefault(question.page, []).append(index)
    names = list(by_page)
    return [
        Shard(some, [index for page in some for index in by_page[page]])
        for some in (names[start : start + pages] for start in range(0, len(names), pages))
    ]


@dataclass(frozen=True)
class Loader:
    """Prepares shards of `questions` for a model of this configuration."""

    dataset: Dataset
    questions: Sequence[Question]
    tokenizer: Tokenizer
    config: VT5Config

    def load(self, wanted: Iterable[Shard]) -> Iterator[LoadedShard]:
        """Yield the shards in their order, each prepared while the one before it is in use."""
        with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1), "loading") as pool:
            started: deque[tuple[Shard, list[Future[Tensor | None]], Future[list[EncodedText]]]] = deque()
            try:
                for shard in wanted:
                    images = [pool.submit(self._image, page) for page in shard.pages]
                    started.append((shard, images, pool.submit(self._encode, shard)))
                    if len(started) > 1:
                        yield self._finish(*started.popleft())
                while started:
                    yield self._finish(*started.popleft())
            finally:
                pool.shutdown(cancel_futures=True)

    def _finish(
        self, shard: Shard, images: list[Future[Tensor | None]], texts: Future[list[EncodedText]]
    ) -> LoadedShard:
        size = self.config.visual.image_size
        gray = torch.full((3, size, size), GRAY)
        read = [image.result() for image in images]
        rows = {page: row for row, page in enumerate(shard.pages)}
        return LoadedShard(
            shard=shard,
            texts=texts.result(),
            page_rows=[rows[self.questions[index].page] for index in shard.questions],
            pixels=torch.stack([gray if image is None else image for image in read]),
            without_image=[page for page, image in zip(shard.pages, read, strict=True) if image is None],
        )

    def _image(self, page: str) -> Tensor | None:
        try:
            return read_page(self.dataset.image_path(page), self.config.visual.image_size)
        except ProblemError:
            return None

    def _encode(self, shard: Shard) -> list[EncodedText]:
        texts = []
        for index in shard.questions:
            question = self.questions[index]
            page = self.dataset.pages[question.page]
            texts.append(
                self.tokenizer.encode(question.question, page.words, page.boxes, self.config.max_input_tokens)
            )
        return texts
