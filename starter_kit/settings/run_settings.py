"""Settings that all methods share. A method's own stand in its module, as a class `Settings` derived from these."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.records.lines import Tuning
from starter_kit.compression.lora import LoRA
from starter_kit.federation.rounds import Client
from starter_kit.learning.local_training import LocalTraining
from starter_kit.settings.plan import Plan


class SecureAggregationSettings(BaseModel):
    """Masks under which the server learns sums of updates only.

    Attributes:
        bound: The largest absolute value of a coordinate of one client's update; null where the method knows it.
        tolerated_losses: How many of a round's clients may be lost; fewer than half of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bound: float | None = Field(default=None, gt=0)
    tolerated_losses: int = Field(default=0, ge=0)


class RunSettings(BaseModel, ABC):
    """What every method needs.

    Attributes:
        method: Name of the module in starter_kit/methods, with hyphens, or path of a Python file.
        experiment: Name of the run.
        seed: Of all randomness that nothing private rests on. Coins and noise of a private run don't follow from it.
        rounds: Federated rounds. With none of them the run gives the base weights as they are, for reference.
        max_input_tokens: Longest text, question and words, that is read of a page in training.
        trainable: Patterns of the names of the tensors that are trained and sent, such as `*.layer_norm.weight`; null
            for all of them, or for none beside the adapters where `lora` is set.
        frozen: Patterns of those among them that stay as they are.
        lora: Low-rank adapters; null for none.
        codec: How vectors are packed into messages, in both directions.
        secure_aggregation: Null for updates that the server sees.
        dropout: Whether the model's dropout is on in training.
        evaluate_every: Score the model on the validation split after every so many rounds; 0 for never.
        device: Where the model trains.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: str
    experiment: str = Field(pattern=r"^[\w.-]{1,100}$")
    seed: int = Field(default=42, ge=0, lt=2**53)
    rounds: int = Field(ge=0)
    max_input_tokens: int = Field(default=512, ge=16)
    trainable: list[str] | None = Field(default=None, min_length=1)
    frozen: list[str] = []
    lora: LoRA | None = None
    codec: Literal["float32", "nf4"] = "float32"
    secure_aggregation: SecureAggregationSettings | None = None
    dropout: bool = False
    evaluate_every: int = Field(default=0, ge=0)
    device: Literal["cpu", "cuda"] = "cpu"

    @abstractmethod
    def plan(self, clients: Sequence[Client]) -> Plan:
        """Return what the run does with the data set's `clients`.

        Raises:
            ProblemError: (`E_CONFIGURATION`) A setting doesn't go with the clients; (`E_PRIVACY_BUDGET`) not even one
                round fits into the budget.
        """

    @model_validator(mode="after")
    def _dropout_is_on_for_adapters(self) -> Self:
        if self.lora and self.lora.dropout and not self.dropout:
            raise ValueError(
                "lora.dropout does nothing while dropout is false; set it to true or lora.dropout to 0"
            )
        return self

    @model_validator(mode="after")
    def _masks_cover_whole_numbers(self) -> Self:
        if self.secure_aggregation and self.codec != "float32":
            raise ValueError(f"masked updates can't be packed by codec {self.codec}; use float32")
        return self


class LocalTrainingSettings(RunSettings):
    """What methods need whose clients train with an optimizer.

    Attributes:
        local: How a client, or a provider, trains within a round.
    """

    local: LocalTraining


class PrivateSettings(RunSettings):
    """What differentially private methods need beyond that.

    Attributes:
        target_epsilon: ε that no round may exceed.
        clip_norm: Bound on one unit's update.
    """

    rounds: int = Field(ge=1)
    target_epsilon: float | None = Field(default=None, gt=0)
    delta: float = Field(gt=0, lt=1)
    clip_norm: float = Field(gt=0, le=1e12)


class RecordedSettings(PrivateSettings, LocalTrainingSettings):
    """What methods need beyond that whose runs leave a training record.

    Of `target_epsilon` and `noise_multiplier` one is given, or both: the first alone, and σ is computed for all rounds
    to fit into it; the second alone is σ itself; with both, as many rounds are run as fit into the target.

    Attributes:
        tuning: How these settings were chosen.
        validation_on_private_data: Whether a provider's data chose a setting, the round or the checkpoint.
    """

    noise_multiplier: float | None = Field(default=None, gt=0)
    sampling_rule: SamplingRule = SamplingRule.TWO_STAGE
    tuning: Tuning = Tuning(private_runs=0)
    validation_on_private_data: bool = False

    @model_validator(mode="after")
    def _noise_is_given(self) -> Self:
        if self.target_epsilon is None and self.noise_multiplier is None:
            raise ValueError("give target_epsilon, noise_multiplier or both")
        return self
