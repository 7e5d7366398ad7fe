"""The model that a run trains: its trained part, its loss, its answers, and its modes."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn

from evaluator.docvqa.architecture import SHARED_EMBEDDING, VT5Config
from evaluator.docvqa.dataset import Dataset, Question
from evaluator.docvqa.devices import sent, without_tf32
from evaluator.docvqa.inference import Prediction, predict
from evaluator.docvqa.tokenization import Tokenizer
from evaluator.docvqa.vt5 import IGNORED, VT5, Batch
from evaluator.parametrizations.turns import Turns, turns_of
from starter_kit.compression.lora import Adapters, LoRA
from starter_kit.compression.peft_files import write_adapter
from starter_kit.learning.checkpointing import checkpoint_blocks
from starter_kit.learning.compute import EXACT, Compute
from starter_kit.learning.cross_attention import shorten_cross_attention
from starter_kit.learning.dropout import use_fast_dropout
from starter_kit.learning.feed_forward import use_fast_feed_forward
from starter_kit.learning.linear import use_fast_linear
from starter_kit.learning.self_attention import use_fast_self_attention
from starter_kit.learning.tensors import TrainableTensors


class TrainableModel:
    """A VT5 in training, whose trained part is one vector: tensors of the model, adapters beside it, or both.

    It takes `model` over: large linear layers and the decoder's cross-attention become faster ones, in place, under the
    same names and with the same weights. Between two calls the model is in the mode of training.

    Args:
        model: On the device where it is to train; nothing else may use it afterwards.
        trainable: Patterns of the model's tensors; None for all of them, or for none of them where there are adapters.
        frozen: Patterns of those among them that are not trained.
        lora: Settings of the adapters; None for none.
        dropout: Whether dropout is on in training. The frozen image tower never has any.
        fast_layers: False for PyTorch's and T5's own layers, which the faster ones are compared with.
        compute: What a training step computes in, and what it keeps of the forward pass.

    Attributes:
        tensors: The trained tensors.
        adapters: None without `lora`.
        start: The vector (d,) float32 that every party begins with.
        dropout: As given.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A pattern matches nothing, or a part of an adapter alone; or adapters don't
            fit a layer.
    """

    def __init__(
        self,
        model: VT5,
        *,
        trainable: Sequence[str] | None = None,
        frozen: Sequence[str] = (),
        lora: LoRA | None = None,
        dropout: bool = False,
        fast_layers: bool = True,
        compute: Compute = EXACT,
    ) -> None:
        if fast_layers:
            use_fast_linear(model)
            shorten_cross_attention(model)
            use_fast_self_attention(model)
            use_fast_feed_forward(model)
            use_fast_dropout(model)
        if compute.checkpoint_activations:
            checkpoint_blocks(model)
        parameters = model.trainable_parameters()
        self._model = model
        self._compute = compute
        self.dropout = dropout
        self.adapters = Adapters(model, lora) if lora else None
        if self.adapters is None:
            self.tensors = TrainableTensors(parameters, trainable or ["*"], frozen)
        else:
            self.tensors = TrainableTensors(
                {**self.adapters.parameters, **parameters},
                [*self.adapters.trained, *(trainable or [])],
                frozen,
            )
            self.adapters.check_whole(self.tensors.parameters)
        self.start = self.tensors.read()
        self._set_training_mode()

    @property
    def config(self) -> VT5Config:
        """The model's architecture."""
        return self._model.config

    @property
    def parameters(self) -> int:
        """How many numbers the model consists of, with its adapters; tied ones count once."""
        return sum(weight.numel() for weight in self.weights)

    @property
    def weights(self) -> list[nn.Parameter]:
        """All weights of the model and its adapters, tied ones once."""
        adapters = self.adapters.parameters.values() if self.adapters else ()
        return list({id(weight): weight for weight in (*self._model.parameters(), *adapters)}.values())

    @property
    def device(self) -> torch.device:
        """The device that the model is on."""
        return next(self._model.parameters()).device

    @property
    def trains_adapters_only(self) -> bool:
        """Whether adapters are all that is trained."""
        return self.adapters is not None and self.tensors.parameters.keys() == self.adapters.trained.keys()

    @cached_property
    def turns(self) -> Turns | None:
        """Which coordinates of the vector each round moves; None where that is all of them."""
        if self.adapters is None:
            return None
        numels = [parameter.numel() for parameter in self.tensors.parameters.values()]
        return turns_of(self.adapters.settings.parametrization, list(self.tensors.parameters), numels)

    @contextmanager
    def in_round(self, number: int) -> Iterator[None]:
        """Inside the block, train only the tensors that round `number` moves."""
        parameters = list(self.tensors.parameters.values())
        for place, parameter in enumerate(parameters):
            parameter.requires_grad_(self.turns is None or self.turns.trains(place, number))
        try:
            yield
        finally:
            for parameter in parameters:
                parameter.requires_grad_()

    @cached_property
    def image_tower_sha256(self) -> str:
        """The SHA-256 of the frozen image tower: of its architecture and its weights."""
        digest = hashlib.sha256(self.config.visual.model_dump_json().encode())
        for name, weight in sorted(self._model.visual_embedding.image_model.state_dict().items()):
            digest.update(name.encode() + weight.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    @torch.inference_mode()
    def page_features(self, pixels: Tensor) -> Tensor:
        """Return the frozen image tower's output (P, V, dv) float32, on the CPU, for pixels (P, 3, H, W)."""
        with without_tf32():
            return self._model.page_features(sent(pixels, self.device)).cpu()

    def losses(self, batch: Batch, sizes: Sequence[int]) -> Tensor:
        """Return the mean loss (G,) over the answers' tokens of each group of examples, from one pass over all.

        Args:
            batch: The examples of all groups in their order, with labels, on the CPU: what depends on how many tokens
                there are is computed there, as the host would have to wait for a GPU.
            sizes: How many examples each of the G groups has.

        Raises:
            ValueError: The batch has no labels.
        """
        if batch.labels is None:
            raise ValueError("the batch has no labels")
        is_token = batch.labels != IGNORED
        of_rows = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        group = of_rows.repeat_interleave(is_token.sum(1))
        parts = [
            is_token.flatten().nonzero().squeeze(1),
            batch.labels[is_token],
            group,
            group.bincount(minlength=len(sizes)),
        ]
        sizes_of_parts = [len(part) for part in parts]
        places, tokens, group, counts = torch.split(sent(torch.cat(parts), self.device), sizes_of_parts)
        batch = batch.to(self.device)
        if batch.features.dtype == torch.float16:
            batch = replace(batch, features=batch.features.float())
        # Scores over the whole vocabulary are computed only where there is a token to score.
        with (
            self._compute.autocast(self.device),
            self._model.language_backbone.lm_head.register_forward_pre_hook(
                lambda _, hidden: hidden[0].flatten(0, 1).index_select(0, places)
            ),
        ):
            scores = self._model.logits(batch)
        if scores.dtype == torch.bfloat16:
            scores = scores.float()
        of_tokens = nn.functional.cross_entropy(scores, tokens, reduction="none")
        zeros = of_tokens.new_zeros(len(sizes))
        return zeros.index_add(0, group, of_tokens) / counts

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of a loss that follows from `losses` to the tensors that it depends on.

        The products of adapters are differentiated in what they were computed in.
        """
        with self._compute.autocast(self.device) if self.adapters else nullcontext():
            torch.autograd.backward(loss)

    def let_go(self) -> None:
        """Remove what a step that failed left: gradients, and a GPU's memory that nothing uses."""
        self.tensors.drop_gradients()
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                torch.cuda.empty_cache()
        elif self.device.type == "mps":
            torch.mps.empty_cache()

    def predict(
        self,
        weights: Tensor,
        tokenizer: Tokenizer,
        dataset: Dataset,
        questions: Sequence[Question] | None = None,
    ) -> list[Prediction]:
        """Return the answers at `weights` (d,) to `questions`, all of the dataset's by default, in their order."""
        with self._reference_at(weights) as model:
            return predict(model, tokenizer, dataset, device=self.device, questions=questions)

    def save(self, weights: Tensor, folder: Path) -> None:
        """Write the model at `weights` (d,) into `folder`, with only the tensors of the reference architecture."""
        with self._reference_at(weights) as model:
            model.save(folder)

    def save_adapters(self, weights: Tensor, folder: Path, *, base: str) -> None:
        """Write the adapters at `weights` (d,), and the layers that are trained beside them, as PEFT stores them.

        Does nothing without adapters, or where a tied tensor is trained: PEFT would untie it.

        Args:
            base: What the files say about the base weights.
        """
        if self.adapters is None or SHARED_EMBEDDING in self.tensors.parameters:
            return
        self.tensors.write(weights)
        trained = self.tensors.parameters
        layers = {name.rpartition(".")[0] for name in trained.keys() - self.adapters.trained.keys()}
        beside = {
            name: tensor
            for name, tensor in self._model.named_parameters()
            if name.rpartition(".")[0] in layers
        }
        write_adapter(folder, self.adapters.settings, {**self.adapters.as_lora(), **beside}, base=base)

    @contextmanager
    def _reference_at(self, weights: Tensor) -> Iterator[VT5]:
        """Inside the block, the model has `weights` (d,) in the reference architecture, with adapters merged."""
        self.tensors.write(weights)
        try:
            with ExitStack() as merged:
                if self.adapters is not None:
                    merged.enter_context(self.adapters.merged())
                yield self._model
        finally:
            self._set_training_mode()

    def _set_training_mode(self) -> None:
        self._model.train(self.dropout)
        self._model.visual_embedding.image_model.eval()
