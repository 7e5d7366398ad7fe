"""A client whose providers train: the published way, a careful one and ours, on a model of middle size, ready to be
measured.

The model has the size of T5-efficient-tiny, with T5's vocabulary. Its image tower and the length of texts are to it
what they are at full size: 28% of what the encoder reads is image. Eight providers take two steps on four questions
each.
"""

import fnmatch
import random
from collections.abc import Callable
from pathlib import Path

import torch
from peft import LoraConfig
from torch import Tensor

from evaluator.docvqa.architecture import VisualConfig, VT5Config
from evaluator.docvqa.dataset import Dataset, write_split
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import VT5
from starter_kit.compression.lora import LoRA
from starter_kit.dp.clipping import clip
from starter_kit.learning.cross_attention import shorten_cross_attention
from starter_kit.learning.documents import Documents
from starter_kit.learning.local_training import Learner, LocalTraining, batches
from starter_kit.learning.stacking import make_learner
from starter_kit.learning.trainable_model import TrainableModel
from starter_kit.randomness import Stream
from tests.benchmarks import full_size
from tests.benchmarks.careful_training import CarefulTraining
from tests.benchmarks.published_training import PublishedTraining
from tests.tiny_reference import random_vt5

PROVIDERS, PAGES, QUESTIONS = 8, 24, 64
LOCAL = LocalTraining(learning_rate=1e-3, batch_size=4)
CLIP_NORM = 1.0
TEXT_TOKENS, WORDS_A_PAGE = 128, 150  # as 512 and 600 at full size
STREAM = Stream(7)

Work = Callable[[], object]  # a client's round: the sum of its providers' clipped updates
Make = Callable[[TrainableModel, Documents], Learner]


def make_model() -> VT5:
    config = VT5Config(
        d_model=256,
        d_kv=64,
        d_ff=1024,
        num_layers=4,
        num_decoder_layers=4,
        num_heads=4,
        max_input_tokens=TEXT_TOKENS,
        visual=VisualConfig(
            hidden_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=1024,
            image_size=112,
        ),
    )
    return random_vt5(config, seed=0).eval()


def write_client(folder: Path) -> None:
    """Pages with answers of as many tokens as `full_size.answer_length` says."""
    tokenizer = full_size.make_tokenizer()
    tokenizer.save(folder)
    dataset = full_size.make_pages(folder / "data", pages=PAGES, questions=QUESTIONS)
    words = sorted({word.lower() for page in dataset.pages.values() for word in page.words if word.isalpha()})
    ids = tokenizer.encode_answers(words)
    single = [word for word, tokens in zip(words, ids, strict=True) if len(tokens) == 2]
    rng = random.Random(3)
    questions = [
        question.model_copy(
            update={"answers": [" ".join(rng.choices(single, k=full_size.answer_length(question) - 1))]}
        )
        for question in dataset.questions
    ]
    pages = [
        page.model_copy(update={"words": page.words[:WORDS_A_PAGE], "boxes": page.boxes[:WORDS_A_PAGE]})
        for page in dataset.pages.values()
    ]
    write_split(folder / "data", "test", pages, questions)


class Client:
    """The data of `write_client`."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = Tokenizer.from_folder(folder)
        self.dataset = Dataset(folder / "data", "test")
        share = QUESTIONS // PROVIDERS
        self.providers = {
            f"provider {number}": list(range(share * number, share * (number + 1)))
            for number in range(PROVIDERS)
        }

    def documents(self, model: TrainableModel) -> Documents:
        return Documents(
            model,
            self.tokenizer,
            self.dataset,
            examples=range(QUESTIONS),
            max_input_tokens=TEXT_TOKENS,
            on_page=lambda done, total: None,
        )

    def published(self, clip_norm: float = CLIP_NORM) -> PublishedTraining:
        return PublishedTraining(
            make_model(),
            self.tokenizer,
            self.dataset,
            learning_rate=LOCAL.learning_rate,
            clip_norm=clip_norm,
        )

    def careful(self, lora: LoRA | None = None, clip_norm: float = CLIP_NORM) -> CarefulTraining:
        vt5, published = make_model(), self.published()
        questions = self.dataset.questions
        with torch.inference_mode():
            pages = {page: vt5.page_features(pixels[None])[0] for page, pixels in published.pixels.items()}
        # In the same order, and adapters with the same initial values.
        ours = TrainableModel(make_model(), lora=lora, fast_layers=False)
        adapters = None
        if lora:
            patterns = "|".join(fnmatch.translate(target) for target in lora.targets)
            adapters = LoraConfig(r=lora.rank, lora_alpha=int(lora.alpha), target_modules=patterns)
        return CarefulTraining(
            vt5,
            [published.text(question) for question in questions],
            [pages[question.page].clone() for question in questions],
            [published.answer(question) for question in questions],
            learning_rate=LOCAL.learning_rate,
            clip_norm=clip_norm,
            adapters=adapters,
            start={name: weight.detach() for name, weight in ours.tensors.parameters.items()},
        )

    def batches(self) -> dict[str, list[list[int]]]:
        """Each provider's batches, as a learner makes them."""
        return {
            name: list(batches(examples, LOCAL, STREAM.at("provider", name)))
            for name, examples in self.providers.items()
        }

    def work(self, make: Make, lora: LoRA | None = None, *, usual_products: bool = False) -> Work:
        vt5 = make_model()
        if usual_products:
            shorten_cross_attention(vt5)
        model = TrainableModel(vt5, lora=lora, fast_layers=not usual_products)
        learner = make(model, self.documents(model))

        def total() -> Tensor:
            total = torch.zeros_like(model.start)
            for change in learner.provider_changes(model.start, self.providers, LOCAL, STREAM):
                clipped = clip(change, CLIP_NORM)
                assert clipped is not None
                total += clipped
            return total

        return total

    def published_work(self) -> Work:
        training, batches = self.published(), self.batches()
        return lambda: training.client_update(batches)

    def careful_work(self, lora: LoRA | None = None) -> Work:
        training, batches = self.careful(lora), self.batches()
        return lambda: training.client_update(batches)


def fastest(model: TrainableModel, documents: Documents) -> Learner:
    return make_learner(model, documents, LOCAL)


def one_by_one(model: TrainableModel, documents: Documents) -> Learner:
    return Learner(model.tensors, documents.loss)


CONTESTANTS: dict[str, Callable[[Client], Work]] = {
    "published loop": lambda client: client.published_work(),
    "careful, all weights": lambda client: client.careful_work(),
    "careful, adapters": lambda client: client.careful_work(LoRA()),
    "full fine-tuning": lambda client: client.work(fastest),
    "adapters, providers stacked": lambda client: client.work(fastest, LoRA()),
    "adapters, one provider by one": lambda client: client.work(one_by_one, LoRA()),
    "full, PyTorch's linear layers": lambda client: client.work(fastest, usual_products=True),
    "stacked, PyTorch's linear layers": lambda client: client.work(fastest, LoRA(), usual_products=True),
}
