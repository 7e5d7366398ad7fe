"""Settings that all methods share. A method's module adds its own in a class `Settings` derived from these."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.records.lines import Tuning
from starter_kit.compression.codecs import BUILT_IN
from starter_kit.compression.lora import LoRA
from starter_kit.compression.plugin_codecs import CODECS, CodecPlugin
from starter_kit.federation.rounds import Client
from starter_kit.learning.compute import Compute
from starter_kit.learning.local_training import LocalTraining
from starter_kit.learning.plugins import HookPlugin
from starter_kit.own_files import OwnFile, file_of
from starter_kit.plugin import WRITER, Plugin, plugins_in
from starter_kit.settings.plan import Plan


class SecureAggregationSettings(BaseModel):
    """Settings of secure aggregation, with which the server learns only the sum of the updates.

    Attributes:
        bound: The largest absolute value of a coordinate of one client's update; null if the method knows it.
        tolerated_losses: Number of a round's clients that may be lost; fewer than half of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bound: float | None = Field(default=None, gt=0)
    tolerated_losses: int = Field(default=0, ge=0)


class Checkpoints(BaseModel):
    """Which models of a run are kept in addition to the last one, and how often a long local training is saved.

    Attributes:
        every: The number of rounds between two copies of the model; 0 for none.
        best: Whether the model of the round with the highest ANLS on the validation split is kept; needs
            `evaluate_every`.
        local_steps: The number of steps after which a local training is saved, so an interrupted run can
        resume within a round; 0 for never. Only for runs without privacy whose clients run in one process.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    every: int = Field(default=0, ge=0)
    best: bool = False
    local_steps: int = Field(default=1000, ge=0)

    @property
    def keeps_earlier_models(self) -> bool:
        """Whether models of earlier rounds are kept."""
        return self.every > 0 or self.best


class RunSettings(BaseModel, ABC):
    """Settings of every method.

    Attributes:
        method: Name of the module in starter_kit/methods, with hyphens, or path of a Python file.
        experiment: Name of the run.
        seed: The seed of all randomness that privacy doesn't depend on. Coins and noise of a private run
        have no seed. If no seed is set, `pfl train` draws one, because equal runs give equal checkpoints and
        a site accepts each checkpoint only once. Other commands use 42.
        rounds: Number of federated rounds. With 0, the result is the unchanged base weights, for reference.
        max_input_tokens: Maximum number of tokens of question and page read in training; null for the limit of the base
            weights, which also applies in the evaluation.
        trainable: Name patterns of the tensors to train and send, such as `*.layer_norm.weight`; null for all tensors,
            or, with `lora`, for the adapters alone.
        frozen: Name patterns of tensors, among the trainable ones, that are not trained.
        lora: Low-rank adapters; null for none.
        codec: Encoding of vectors in messages, in both directions.
        secure_aggregation: Secure aggregation; null if the server may see individual updates.
        dropout: Whether the model uses dropout in training.
        evaluate_every: The number of rounds between two scores of the model on the validation split; 0 for no scores.
        evaluate_questions: Number of questions of the validation split to score in these rounds, the same each time;
            null for all. The last round is also scored on all of them.
        checkpoints: Models to keep in addition to the last one, and how often to save for resuming.
        device: Device for training: the processor, an NVIDIA GPU, or an Apple GPU (without privacy only, and with
            dropout that doesn't follow from the seed).
        compute: Computation of a training step: time, memory and rounding.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # The number of vectors as long as the model that the method stores at each client between rounds.
    client_vectors: ClassVar[int] = 0

    method: str
    experiment: str = Field(pattern=r"^[\w.-]{1,100}$")
    seed: int = Field(default=42, ge=0, lt=2**53)
    rounds: int = Field(ge=0)
    max_input_tokens: int | None = Field(default=None, ge=16)
    trainable: list[str] | None = Field(default=None, min_length=1)
    frozen: list[str] = []
    lora: LoRA | None = None
    codec: Annotated[Literal["float32", "nf4"] | CodecPlugin, CODECS.reader, WRITER] = "float32"
    secure_aggregation: SecureAggregationSettings | None = None
    dropout: bool = False
    evaluate_every: int = Field(default=0, ge=0)
    evaluate_questions: int | None = Field(default=None, ge=1)
    checkpoints: Checkpoints = Checkpoints()
    device: Literal["cpu", "cuda", "mps"] = "cpu"
    compute: Compute = Compute()

    @abstractmethod
    def plan(self, clients: Sequence[Client]) -> Plan:
        """Return the plan of the run for the data set's `clients`.

        Raises:
            ProblemError: (`E_CONFIGURATION`) A setting doesn't fit the clients; (`E_PRIVACY_BUDGET`) not even one
                round fits into the budget.
        """

    @model_validator(mode="after")
    def _no_conflict(self) -> Self:
        if conflict := next(self.conflicts(), None):
            raise ValueError(conflict)
        return self

    def conflicts(self) -> Iterator[str]:
        """Yield what doesn't go together in these settings, each with its correction. Derived classes add their own."""
        # A method's own Settings may name any other codec.
        if not isinstance(self.codec, CodecPlugin) and self.codec not in BUILT_IN:
            yield (
                f"codec {self.codec} of the method's Settings is none of {', '.join([*BUILT_IN, *CODECS.names])}; name "
                "a file with a class Codec instead, which `pfl new NAME --codec` writes"
            )
        for setting, used in (
            ("evaluate_questions", self.evaluate_questions is not None),
            ("checkpoints.best", self.checkpoints.best),
        ):
            if used and not self.evaluate_every:
                yield f"{setting} does nothing while evaluate_every is 0; say how often to score"
        if self.lora and self.lora.dropout and not self.dropout:
            yield "lora.dropout does nothing while dropout is false; set it to true or lora.dropout to 0"
        if self.secure_aggregation and self.codec != "float32":
            yield f"masked updates can't be packed by codec {self.codec}; use float32"


class LocalTrainingSettings(RunSettings):
    """Further settings of methods whose clients train with an optimizer.

    Attributes:
        local: How a client, or a provider, trains within a round.
    """

    local: LocalTraining


class PrivateSettings(RunSettings):
    """Further settings of differentially private methods.

    Attributes:
        rounds: Number of federated rounds.
        target_epsilon: ε that no round may exceed.
        clip_norm: The bound on the update of one privacy unit.
        replayable: Whether coins and noise are derived from a secret of the run, so the organizers can
        replay some rounds; docs/replay.md describes the costs.
    """

    # Why a run of the method can't be replayed; empty where it can.
    not_replayable: ClassVar[str] = ""

    rounds: int = Field(ge=1)
    target_epsilon: float | None = Field(default=None, gt=0)
    delta: float = Field(gt=0, lt=1)
    clip_norm: float = Field(gt=0, le=1e12)
    replayable: bool = False

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.checkpoints.keeps_earlier_models and not getattr(self, "validation_on_private_data", False):
            yield (
                "checkpoints keeps models of earlier rounds to choose from, and ε doesn't cover a choice by "
                "providers' data; leave it out, or declare the choice with validation_on_private_data=true where the "
                "method has a training record"
            )


class RecordedSettings(PrivateSettings, LocalTrainingSettings):
    """Further settings of methods whose runs write a training record.

    Set `target_epsilon`, `noise_multiplier` or both. With the first alone, σ is computed so that all rounds fit into
    the target; the second alone is σ itself; with both, as many rounds are run as fit into the target.

    Attributes:
        tuning: How these settings were chosen.
        validation_on_private_data: Whether a setting, the round or the checkpoint was chosen based on
        providers' data.
    """

    noise_multiplier: float | None = Field(default=None, gt=0)
    sampling_rule: SamplingRule = SamplingRule.TWO_STAGE
    tuning: Tuning = Tuning(private_runs=0)
    validation_on_private_data: bool = False

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.target_epsilon is None and self.noise_multiplier is None:
            yield "give target_epsilon, noise_multiplier or both"
        for setting, plugin in plugins_in(self):
            if problem := unrecordable(plugin, file_of(type(self))):
                yield (
                    f"no {setting} of {plugin} in a run with a training record: {problem}; docs/methods.md says what a "
                    "record can't state"
                )


def unrecordable(plugin: Plugin, method: OwnFile | None) -> str:
    """Return why a run with this plug-in can't have a training record; empty where it can.

    Args:
        method: The file of the method; None for one of the kit's.
    """
    file = file_of(type(plugin))
    if file and (method is None or file.sha256 != method.sha256):
        return (
            "organizers examine the method's file and no other. Put its class into the file of the method, and name "
            "that file in both places"
        )
    if isinstance(plugin, CodecPlugin | HookPlugin) and plugin.keeps_state:
        return "it keeps something of a client's data from round to round, which no noise covers"
    if isinstance(plugin, CodecPlugin) and plugin.bits_per_parameter is None:
        return "its messages vary in size, and the record states one number of bits for each (check `record.bytes`)"
    return ""
