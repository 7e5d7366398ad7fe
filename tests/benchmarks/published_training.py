"""The published way to train on a client's providers, written anew from its description: what local training is
measured against.

For each provider in turn: the whole state dict is loaded again, frozen image tower and four names of the tied embedding
and all; a fresh AdamW with PyTorch's defaults; for each batch every word is tokenized by a call of its own, the image
tower runs for every question, the model runs in eager attention and keeps all attention maps, answers are generated and
their confidences computed, though nobody reads them; then the state dict is copied deeply, what changed is flattened
over all its entries, clipped and added.

It is given what makes it quicker than it is: decoded pixels are at hand, there is no dropout, and generation ends with
the longest gold answer of a batch, where random weights would run on to 20 tokens.
"""

import copy
import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from transformers import GenerationConfig

from evaluator.docvqa.architecture import MAX_ANSWER_LENGTH
from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.images import read_page
from evaluator.docvqa.tokenization import EncodedText, Tokenizer
from evaluator.docvqa.vt5 import VT5, Batch
from tests.benchmarks.published_scoring import Ending, PublishedScoring, Stopwatch


class PublishedTraining:
    """Trains on questions of `dataset`, by their index; `watch` tells where the time went."""

    def __init__(
        self, model: VT5, tokenizer: Tokenizer, dataset: Dataset, *, learning_rate: float, clip_norm: float
    ) -> None:
        self.model = model
        self.dataset = dataset
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.watch = Stopwatch()
        self._reading = PublishedScoring(model, tokenizer, batch_size=0, length_of=lambda question: 0)
        self.pixels = {
            page: read_page(dataset.image_path(page), model.config.visual.image_size)
            for page in dict.fromkeys(question.page for question in dataset.questions)
        }

    def client_update(self, providers: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, Tensor]:
        """The sum of the providers' clipped updates, by entry of the state dict; a provider is a list of batches."""
        t5 = self.model.language_backbone
        t5.set_attn_implementation("eager")
        try:
            return self._client_update(providers)
        finally:
            t5.set_attn_implementation("sdpa")

    def _client_update(self, providers: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, Tensor]:
        with self.watch.on("copying and flattening states"):
            start = copy.deepcopy(self.model.state_dict())
            sizes = [value.numel() for value in start.values()]
            total = torch.zeros(sum(sizes))
        for batches in providers.values():
            with self.watch.on("copying and flattening states"):
                self.model.load_state_dict({name: value.clone() for name, value in start.items()})
            self._train(batches)
            with self.watch.on("copying and flattening states"):
                end = copy.deepcopy(self.model.state_dict())
                update = torch.cat([(end[name] - start[name]).flatten() for name in start])
                total += update / max(1.0, float(update.norm()) / self.clip_norm)
        self.model.load_state_dict(start)
        parts = total.split(sizes)
        return {name: part.view_as(start[name]) for name, part in zip(start, parts, strict=True)}

    def _train(self, batches: Sequence[Sequence[int]]) -> None:
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.learning_rate)
        for batch in batches:
            loss = self._forward(batch)
            with self.watch.on("backward pass"):
                torch.autograd.backward(loss)
            with self.watch.on("optimizer"):
                optimizer.step()
                optimizer.zero_grad()

    def _forward(self, chosen: Sequence[int]) -> Tensor:
        t5 = self.model.language_backbone
        questions = [self.dataset.questions[index] for index in chosen]
        with self.watch.on("words to tokens"):
            texts = [self.text(question) for question in questions]
            answers = [self.answer(question) for question in questions]
        with self.watch.on("image tower"):
            features = self.model.page_features(torch.stack([self.pixels[q.page] for q in questions]))
        with self.watch.on("forward pass"):
            batch = Batch.pad(texts, features, answers)
            embeddings = self.model.embed(batch.input_ids, batch.boxes, batch.features)
            mask = torch.cat([batch.attention_mask, batch.attention_mask.new_ones(features.shape[:2])], dim=1)
            output = t5(
                inputs_embeds=embeddings, attention_mask=mask, labels=batch.labels, output_attentions=True
            )
        with self.watch.on("generation"):
            self._generate(embeddings, mask, [len(answer) for answer in answers])
        loss: Tensor = output.loss
        return loss

    def text(self, question: Question) -> EncodedText:
        return self._reading._encode(self.dataset, question)

    def answer(self, question: Question) -> list[int]:
        ids = self._reading._tokenizer(random.choice(question.answers), add_special_tokens=False).input_ids
        return [*ids, self.model.config.eos_token_id]

    def _generate(self, embeddings: Tensor, mask: Tensor, lengths: list[int]) -> None:
        config = self.model.config
        output = self.model.language_backbone.generate(
            inputs_embeds=embeddings,
            attention_mask=mask,
            generation_config=GenerationConfig(
                max_length=MAX_ANSWER_LENGTH,
                num_beams=1,
                do_sample=False,
                output_scores=True,
                output_attentions=True,
                return_dict_in_generate=True,
                decoder_start_token_id=config.decoder_start_token_id,
                eos_token_id=config.eos_token_id,
                pad_token_id=config.pad_token_id,
            ),
            logits_processor=[Ending(lengths, config.eos_token_id)],
        )
        torch.stack(output.scores).softmax(-1).max(-1).values.prod(0)
