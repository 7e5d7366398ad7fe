"""The schema of the training record: one `run` line, one `round` line for each round, one `end` line.

A run that was interrupted has a `resume` line where it was resumed.

The record is public. Which providers took part, how many of them did, how long a round took and every random seed are
private, so no line has a place for them; an unknown key is rejected. What only organizers may see is in the annex.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from evaluator.mechanisms.mechanism import Mechanism
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Sampling
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from evaluator.mechanisms.values import Count, Positive
from evaluator.parametrizations.known import PARAMETRIZATIONS, check_known
from evaluator.parametrizations.lora import LORA
from evaluator.parametrizations.parametrization import Parametrization
from evaluator.parametrizations.turns import Turns, turns_of
from evaluator.records.certificate import MAX_ROUNDS
from evaluator.records.server_steps import ServerStep

SCHEMA = "pfl-dp-record/3"
MAX_NUMEL = 2**40
# Adapters are in the annex as a whole, at the start and at the end.
MAX_ADAPTER_NUMEL = 2**21

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# Raw Ed25519, in hexadecimal.
PublicKey = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]
# Drawn by the site after the record was uploaded; in a dry run, the record's own hash.
Challenge = Sha256
RunToken = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
Name = Annotated[str, Field(min_length=1, max_length=200)]
# Far beyond any ε that means something, and small enough for every database.
Claim = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Bytes = Count
Rounds = Count
# By which the product of an adapter's factors is multiplied.
LoRAScale = Positive
# The name of a parametrization, which a line leaves out where it is LoRA.
ParametrizationName = Annotated[
    str, AfterValidator(check_known), Field(exclude_if=lambda name: name == LORA.name)
]


class RecordLine(BaseModel):
    """Immutable base of everything in a record. Nothing is converted: `"1"` is no number."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True
    )


class Codec(RecordLine):
    """How tensors are packed into messages: `bits_per_parameter` counts scales and zero points."""

    name: Name
    bits_per_parameter: Positive


class TrainableTensor(RecordLine):
    """A tensor that leaves a client. The names of adapter tensors are not in the checkpoint."""

    name: Name
    shape: Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(max_length=8)]

    @property
    def numel(self) -> int:
        product = 1
        for length in self.shape:
            product *= length
        return product


@dataclass(frozen=True)
class Adapter:
    """An adapter of a layer.

    Attributes:
        tensors: Its trained parts by their letters.
    """

    layer: str
    parametrization: Parametrization
    tensors: Mapping[str, TrainableTensor]

    @property
    def target(self) -> str:
        """The name of the weight that it is merged into."""
        return f"{self.layer}.weight"

    @property
    def ranks(self) -> set[int]:
        """The lengths of those sides that are its rank: one, unless the shapes of its parts don't fit each other."""
        return {
            length
            for part in self.parametrization.trained
            for side, length in zip(part.sides, self.tensors[part.letter].shape, strict=False)
            if side == "rank"
        }

    @property
    def rank(self) -> int:
        """Its rank."""
        return min(self.ranks)

    def fits(self, weight: tuple[int, ...]) -> bool:
        """Return whether it can be merged into a weight of this shape.

        With a rank above a side of the weight, noise could lie in directions that the product leaves out.
        """
        return (
            len(weight) == 2
            and self.rank <= min(weight)
            and all(
                tuple(self.tensors[part.letter].shape) == part.shape(self.rank, weight)
                for part in self.parametrization.trained
            )
        )


class TrainedLine(RecordLine):
    """The part of a first line that states what is trained.

    Attributes:
        trainable: Every tensor that leaves a client, each once, in the order of the weight vector, which is that of
            their names.
        lora_scale: The factor with which the adapter of trainable tensors `<layer>.lora_<letter>.weight` is merged into
            `<layer>.weight` of the base weights at the end; None where no adapters are trained.
        parametrization: What the adapters are: see `evaluator.parametrizations`.
    """

    trainable: Annotated[list[TrainableTensor], Field(min_length=1)]
    lora_scale: LoRAScale | None
    parametrization: ParametrizationName = LORA.name

    @property
    def shapes(self) -> dict[str, list[int]]:
        """The shape of every trainable tensor by its name, in the order of the weight vector."""
        return {tensor.name: tensor.shape for tensor in self.trainable}

    @property
    def numels(self) -> list[int]:
        """The coordinates of every trainable tensor, in the order of the weight vector."""
        return [tensor.numel for tensor in self.trainable]

    @property
    def numel(self) -> int:
        """d, the coordinates of the weight vector."""
        return sum(self.numels)

    @property
    def adapters(self) -> list[Adapter]:
        """The adapters that are merged at the end, in the order of their first tensors."""
        if self.lora_scale is None:
            return []
        named, known = (
            {tensor.name: tensor for tensor in self.trainable},
            PARAMETRIZATIONS[self.parametrization],
        )
        return [
            Adapter(layer, known, {part.letter: named[layer + part.suffix] for part in known.trained})
            for layer in known.layers(named)
        ]

    @property
    def turns(self) -> Turns | None:
        """Which coordinates each round moves; None where that is all of them."""
        return turns_of(PARAMETRIZATIONS[self.parametrization], list(self.shapes), self.numels)

    @model_validator(mode="after")
    def _adapters_are_whole(self) -> Self:
        adapters = self.adapters
        for adapter in adapters:
            if len(adapter.ranks) > 1 or any(len(tensor.shape) != 2 for tensor in adapter.tensors.values()):
                sides = [f"({', '.join(part.sides)})" for part in adapter.parametrization.trained]
                names = " and ".join(tensor.name for tensor in adapter.tensors.values())
                raise ValueError(f"the shapes of {names} are not {' and '.join(sides)}")
        if {adapter.target for adapter in adapters} & self.shapes.keys():
            raise ValueError("a tensor that adapters are merged into is not trained itself")
        if (self.lora_scale is None) != (not adapters):
            raise ValueError("lora_scale is the factor of adapters, and null without any")
        if self.lora_scale is None and self.parametrization != LORA.name:
            raise ValueError("parametrization is that of adapters, and left out without any")
        if (
            sum(tensor.numel for adapter in adapters for tensor in adapter.tensors.values())
            > MAX_ADAPTER_NUMEL
        ):
            raise ValueError(f"adapters have at most {MAX_ADAPTER_NUMEL} coordinates in all")
        return self

    @model_validator(mode="after")
    def _has_a_weight_vector(self) -> Self:
        if not 1 <= self.numel < MAX_NUMEL:
            raise ValueError(f"the trainable tensors have from 1 to {MAX_NUMEL - 1} coordinates")
        if len(self.shapes) < len(self.trainable):
            raise ValueError("every trainable tensor must be named once")
        return self


class Tuning(RecordLine):
    """How settings were chosen: the number of training runs on the private data before this one, and a description."""

    private_runs: Count
    description: Annotated[str, Field(max_length=1000)] = ""


class RunLine(TrainedLine):
    """The first line: what is trained and how it is protected.

    Attributes:
        run_token: The token that the site issued for this run; null for a run that is not to be submitted.
        code_sha256: The hash of the trainer's source files.
        unit: The privacy unit.
        clients: N, of whom some take part in a round.
        clip_norm: S, the L2 bound of one provider's whole update.
        normalizer: The constant by which the noised sum is divided; never the number of those who took part.
        server: What the server does with the noised sum.
        rounds: The planned number of rounds.
        weights_root: The Merkle root of w₀, the weight vector before the first round: see `certificate`.
        round_keys_root: The Merkle root of the keys of all rounds' coins and noise: see `round_keys`. None where no
            round can be replayed, because nobody can draw them again.
        validation_on_private_data: Whether a provider's data chose the checkpoint, the round or a setting.
        claimed_epsilon: ε at `delta` under the track's rules, as the team claims it.
    """

    type: Literal["run"] = "run"
    schema_version: Literal["pfl-dp-record/3"] = Field(default="pfl-dp-record/3", alias="schema")
    run_token: RunToken | None
    kit_version: Name
    code_sha256: Sha256
    track: Name
    method: Name
    unit: Annotated[PrivacyUnit, Field(strict=False)] = PrivacyUnit.PROVIDER
    adjacency: Annotated[Adjacency, Field(strict=False)] = Adjacency.ADD_REMOVE
    delta: Annotated[float, Field(gt=0, lt=1)]
    clients: Annotated[int, Field(ge=1, lt=2**31)]
    sampling: Sampling
    clip_norm: Positive
    noise: Noise
    normalizer: Positive
    server: ServerStep
    codec: Codec
    rounds: Annotated[int, Field(ge=0, le=MAX_ROUNDS)]
    base_sha256: Sha256
    weights_root: Sha256
    round_keys_root: Sha256 | None = None
    tuning: Tuning
    validation_on_private_data: bool
    claimed_epsilon: Claim

    @property
    def mechanism(self) -> Mechanism:
        """The planned mechanism of a round. Raises ValueError where its parts don't fit together."""
        return Mechanism(
            sampling=self.sampling,
            noise=self.noise,
            clients=self.clients,
            unit=self.unit,
            adjacency=self.adjacency,
        )

    def noise_in(self, line: "RoundLine") -> Noise:
        """Return the noise of one round."""
        return self.noise.model_copy(update={"multiplier": line.noise_multiplier})

    def mechanism_in(self, line: "RoundLine") -> Mechanism:
        """Return the mechanism that protected one round. Raises ValueError where its parts don't fit together."""
        return Mechanism(
            sampling=line.sampling,
            noise=self.noise_in(line),
            clients=self.clients,
            unit=self.unit,
            adjacency=self.adjacency,
        )

    @model_validator(mode="after")
    def _mechanism_fits_together(self) -> Self:
        _ = self.mechanism
        return self


class RoundLine(RecordLine):
    """What one round did; a round in which nobody was sampled has its line too.

    Attributes:
        round: The number of the round, from 1.
        clients: K, the number of clients that took part.
        sampling: The sampling of this round.
        noise_multiplier: σ in this round, with the meaning of `Noise.multiplier`.
        update_root: The Merkle root of uₜ, the noised sum before the server's step: see `certificate`.
        weights_root: The Merkle root of wₜ, the weight vector after the round.
    """

    type: Literal["round"] = "round"
    round: Annotated[int, Field(ge=1, lt=2**31)]
    clients: Annotated[int, Field(ge=0, lt=2**31)]
    sampling: Sampling
    clip_norm: Positive
    noise_multiplier: Positive
    bytes_down: Bytes
    bytes_up: Bytes
    update_root: Sha256
    weights_root: Sha256


class ResumeLine(RecordLine):
    """The run was interrupted and resumed here.

    Attributes:
        round: The number of the next round.
        begun: Whether that round had begun before the interruption, so that messages of it may have been sent that no
            round line reports.
        claimed_epsilon: The claim that replaces the run line's, which doesn't count the interruption.
    """

    type: Literal["resume"] = "resume"
    round: Annotated[int, Field(ge=1, lt=2**31)]
    begun: bool
    claimed_epsilon: Claim


class EndLine(RecordLine):
    """The last line, signed: the number of rounds, and the hashes of the checkpoint's file and the annex's body."""

    type: Literal["end"] = "end"
    rounds: Rounds
    bytes_down: Bytes
    bytes_up: Bytes
    checkpoint_sha256: Sha256
    annex_body_sha256: Sha256
    public_key: PublicKey


AnyLine = Annotated[RunLine | RoundLine | ResumeLine | EndLine, Field(discriminator="type")]


@dataclass(frozen=True)
class TrainingRecord:
    """A record whose chain and signature hold.

    Attributes:
        own_challenge: The hash of the chain before the end line, from which the annex's openings are drawn in a dry
            run. Whoever makes the record can try others until it suits, so it is no evidence for anybody else.
        resumes: Where the run was resumed after an interruption.
    """

    run: RunLine
    rounds: list[RoundLine]
    end: EndLine
    own_challenge: str
    resumes: list[ResumeLine] = field(default_factory=list)

    @property
    def last_weights_root(self) -> str:
        """The root of the weights that the run ends with."""
        return self.rounds[-1].weights_root if self.rounds else self.run.weights_root

    @property
    def claimed_epsilon(self) -> float:
        """The team's latest claim."""
        return (self.resumes[-1] if self.resumes else self.run).claimed_epsilon
