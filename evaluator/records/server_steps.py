"""What the server does with a round's noised sum uₜ, as the training record declares it.

With the normalizer M of the record, g = uₜ/M, and all states zero before the first round, every rule is a function of
each coordinate by itself, so `replay` can compute it again on the blocks that the annex opens.
"""

from typing import Annotated, Literal

from pydantic import Field

from evaluator.mechanisms.values import Positive, Value

Decay = Annotated[float, Field(ge=0, lt=1)]


class SumStep(Value):
    """w ← w + η·g, with the learning rate η."""

    rule: Literal["sum"] = "sum"
    learning_rate: Positive


class MomentumStep(Value):
    """v ← β·v + g; w ← w + η·v, with the momentum β."""

    rule: Literal["momentum"] = "momentum"
    learning_rate: Positive
    momentum: Decay


class AdamStep(Value):
    """m ← β₁·m + (1 − β₁)·g; s ← β₂·s + (1 − β₂)·g²; w ← w + η·m/(√s + ε).

    With `bias_correction` m is divided by 1 − β₁ᵗ and s by 1 − β₂ᵗ before they are used, as by Kingma and Ba (2015);
    without it this is FedAdam (Reddi et al. 2021, arXiv:2003.00295, algorithm 2).
    """

    rule: Literal["adam"] = "adam"
    learning_rate: Positive
    beta_1: Decay
    beta_2: Decay
    epsilon: Positive
    bias_correction: bool


class OtherStep(Value):
    """A rule that can't be replayed; nothing then ties the sums to the model, and check `record.linkage` says so."""

    rule: Literal["other"] = "other"
    description: Annotated[str, Field(max_length=1000)]


ServerStep = Annotated[SumStep | MomentumStep | AdamStep | OtherStep, Field(discriminator="rule")]
