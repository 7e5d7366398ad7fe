"""A careful implementation of a client's round, with PyTorch and PEFT alone: what local training is also measured
against.

It avoids what the published loop wastes: texts and the frozen image tower's features are computed once, attention is
PyTorch's own, the optimizer is fused, nothing is generated, and only what is trained is copied, compared and clipped.
Providers train one after another, as PEFT has one set of adapters in use.
"""

from collections.abc import Mapping, Sequence

import torch
from peft import LoraConfig, inject_adapter_in_model
from torch import Tensor
from torch.nn.functional import cross_entropy

from evaluator.docvqa.tokenization import EncodedText
from evaluator.docvqa.vt5 import IGNORED, VT5, Batch


class CarefulTraining:
    """Trains all weights but the image tower, or PEFT's adapters.

    Args:
        texts, features, answers: Of each question: its page's words, its page's features (V, dv), its answer's tokens.
        adapters: PEFT's settings; None to train the weights.
        start: The initial value of what is trained, by name, an adapter's without PEFT's own `.default`.
    """

    def __init__(
        self,
        model: VT5,
        texts: Sequence[EncodedText],
        features: Sequence[Tensor],
        answers: Sequence[Sequence[int]],
        *,
        learning_rate: float,
        clip_norm: float,
        start: Mapping[str, Tensor],
        adapters: LoraConfig | None = None,
    ) -> None:
        self.model, self.texts, self.features, self.answers = model, texts, features, answers
        self.learning_rate, self.clip_norm = learning_rate, clip_norm
        if adapters:
            inject_adapter_in_model(adapters, model)
        weights = {name.replace(".default", ""): weight for name, weight in model.named_parameters()}
        model.requires_grad_(False)
        self.trained: list[Tensor] = [weights[name].requires_grad_(True) for name in start]
        with torch.no_grad():
            torch._foreach_copy_(self.trained, list(start.values()))

    def client_update(self, providers: Mapping[str, Sequence[Sequence[int]]]) -> Tensor:
        """Return the sum (d,) of the providers' clipped updates; a provider is a list of batches."""
        start = [weight.detach().clone() for weight in self.trained]
        total = torch.zeros(sum(weight.numel() for weight in start))
        for batches in providers.values():
            optimizer = torch.optim.AdamW(self.trained, lr=self.learning_rate, fused=True)
            for batch in batches:
                optimizer.zero_grad()
                torch.autograd.backward(self.loss(batch))
                optimizer.step()
            with torch.no_grad():
                update = torch.cat(
                    [(weight - old).flatten() for weight, old in zip(self.trained, start, strict=True)]
                )
                total.add_(update, alpha=min(1.0, self.clip_norm / float(update.norm())))
                torch._foreach_copy_(self.trained, start)
        return total

    def loss(self, chosen: Sequence[int]) -> Tensor:
        """Return the mean loss over the answers' tokens of a batch."""
        features = torch.stack([self.features[index] for index in chosen])
        batch = Batch.pad(
            [self.texts[index] for index in chosen], features, [self.answers[index] for index in chosen]
        )
        assert batch.labels is not None
        return cross_entropy(
            self.model.logits(batch).flatten(0, 1), batch.labels.flatten(), ignore_index=IGNORED
        )
