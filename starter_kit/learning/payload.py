"""What a run trains and sends: tensors of the model, adapters beside it, or both, as one vector."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from evaluator.docvqa.vt5 import VT5
from starter_kit.compression.lora import Adapters, LoRA
from starter_kit.learning.tensors import TrainableTensors
from starter_kit.randomness import Stream


class Payload:
    """The trained part of `model`.

    Args:
        trainable: Patterns of the model's tensors; None for all of them, or for none of them where there are adapters.
        frozen: Patterns of those among them that stay as they are.

    Attributes:
        adapters: None without `lora`.
        start: The vector (d,) that every party begins with.

    Raises:
        ProblemError: (`E_CONFIGURATION`) A pattern matches nothing.
    """

    def __init__(
        self,
        model: VT5,
        *,
        trainable: Sequence[str] | None,
        frozen: Sequence[str],
        lora: LoRA | None,
        stream: Stream,
    ) -> None:
        parameters = model.trainable_parameters()
        self._model = model
        self.adapters = Adapters(model, lora, stream) if lora else None
        if self.adapters is None:
            self.tensors = TrainableTensors(parameters, trainable or ["*"], frozen)
        else:
            self.tensors = TrainableTensors(
                {**self.adapters.parameters, **parameters}, ["*.lora_[AB].weight", *(trainable or [])], frozen
            )
        self.start = self.tensors.read()

    @contextmanager
    def model_with(self, weights: Tensor) -> Iterator[VT5]:
        """The model at `weights` (d,) in the reference architecture: adapters are merged for as long as it is used."""
        self.tensors.write(weights)
        if self.adapters is None:
            yield self._model
        else:
            with self.adapters.merged():
                yield self._model
