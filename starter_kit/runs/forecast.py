"""What a run will take, computed before it: bytes, ε, memory and time, and what to change where it doesn't fit or rank.

Functions of values alone; `starter_kit.runs.planning` measures what they are given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.records.epsilon import CLAIM_TOLERANCE
from starter_kit.settings.track_rules import DELTA, MAX_ROUNDS, RULE

# A page's name, with its three questions and their tokens; its own tokens are in a file.
TEXT_BYTES = 6_000
# Python, PyTorch, the tokenizer, and the image tower's work on a few pages.
PROGRAM_BYTES = 600_000_000
# A step's memory for its activations, over what is kept of them for the backward pass: temporary tensors, and what an
# allocator loses to fragmentation.
ACTIVATIONS = 1.1
# The same where a step on a CPU computes its batch in parts under dropout: masks are small and leave holes in the
# memory that a part frees, which the next one doesn't quite fill.
ACTIVATIONS_OF_PARTS = 1.6
# Vectors of a local training: where it begins, and the change that it makes.
TRAINING_VECTORS = 2
# Vectors on a GPU for a whole private round, beside the model: where its providers begin, and the sum of their updates.
ROUND_VECTORS = 2
FLOAT = 4


@dataclass(frozen=True)
class Traffic:
    """The bytes of a run.

    Attributes:
        first_bytes: A message to a client in the first round.
        down_bytes, up_bytes: A message to a client in later rounds, and from one.
        clients: How many clients take part in a round, on average.
        most_clients: The most that can.
    """

    rounds: int
    first_bytes: int
    down_bytes: int
    up_bytes: int
    clients: float
    most_clients: int

    @property
    def expected_bytes(self) -> int:
        """The bytes of all messages, both ways; exact where the number of clients is fixed."""
        return round(self.clients * self._bytes_of_a_client)

    @property
    def most_bytes(self) -> int:
        """The bytes with as many clients as can take part."""
        return self.most_clients * self._bytes_of_a_client

    @property
    def _bytes_of_a_client(self) -> int:
        """The bytes of a client that takes part in every round."""
        later = self.rounds * (self.down_bytes + self.up_bytes)
        return later + self.first_bytes - self.down_bytes if self.rounds else 0


@dataclass(frozen=True)
class Privacy:
    """ε of all rounds, by the rules of track 2 where the run writes a training record.

    Attributes:
        noise_multiplier: σ; None where the noise isn't Gaussian.
        product: ε where sampled clients count as amplification; None where that isn't defined.
        needed: For each budget that ε under the track's rule exceeds, the noise multiplier that would keep it.
        claimed: ε that the record would claim, by the settings' own rule and δ; None for `epsilon`.
        rule, claimed_delta, rounds: The settings' own, which the record states.
    """

    unit: str
    delta: float
    epsilon: float
    product: float | None
    noise_multiplier: float | None
    recorded: bool
    needed: dict[float, float]
    claimed: float | None = None
    rule: SamplingRule = RULE
    claimed_delta: float = DELTA
    rounds: int = 1

    def rejections(self) -> dict[str, str]:
        """Return why track 2 would reject the record whatever its noise, each with the setting that corrects it."""
        found = {}
        if self.recorded and self.claims_less:
            why = f"the rule {self.rule} claims less than the track's rule {RULE} computes"
            found[why] = f"sampling_rule={RULE}"
        if self.recorded and self.claimed_delta != DELTA:
            found[f"δ = {self.claimed_delta:g}, and the track's is {DELTA:g}"] = f"delta={DELTA:g}"
        if self.recorded and self.rounds > MAX_ROUNDS:
            found[f"{self.rounds:,} rounds, and the track allows {MAX_ROUNDS:,}"] = f"rounds={MAX_ROUNDS}"
        return found

    @property
    def claims_less(self) -> bool:
        """Whether the rule of the settings gives a smaller ε than the track's, which rejects such a claim."""
        return (
            self.rule is not RULE
            and self.product is not None
            and self.product < self.epsilon - CLAIM_TOLERANCE
        )

    def budget(self, budgets: Iterable[float]) -> float | None:
        """Return the smallest of `budgets` that ε is within; None if it exceeds all."""
        return min((budget for budget in budgets if self.epsilon <= budget * (1 + 1e-9)), default=None)


@dataclass(frozen=True)
class Memory:
    """The memory of one process, in bytes, where the model trains on the CPU; on a GPU, `host_bytes` and
    `device_bytes` share it.

    Of several GPUs, each takes `device_bytes`.

    Attributes:
        optimizer_bytes: The optimizer's state, but for preconditioners.
        activations_bytes: What a step keeps of its forward pass, with its temporary tensors.
        vectors_bytes: The vectors of a round: model, update, sum and messages.
        states_bytes: What the clients of a round keep from it to later ones.
        texts_bytes: The names of all pages, and their questions.
        preconditioners_bytes: Shampoo's matrices, which are there before the first step.
        round_bytes: The vectors that a private round keeps on a GPU; 0 on the CPU, whose vectors are all counted.
        clipping_bytes: Those that are there while an update is clipped, after its steps; likewise.
    """

    model_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    vectors_bytes: int
    states_bytes: int
    texts_bytes: int
    preconditioners_bytes: int = 0
    round_bytes: int = 0
    clipping_bytes: int = 0

    @property
    def device_bytes(self) -> int:
        """What is where the model is."""
        kept = self.gradient_bytes + self.optimizer_bytes + self.preconditioners_bytes
        return self.model_bytes + self.round_bytes + max(kept + self.activations_bytes, self.clipping_bytes)

    @property
    def host_bytes(self) -> int:
        """What is in the machine's memory if the model is on a GPU."""
        return self.vectors_bytes + self.states_bytes + self.texts_bytes + PROGRAM_BYTES

    @property
    def step_bytes(self) -> int:
        """What a training of a single step takes on the CPU, at its peak: as much as `pfl plan` itself.

        The optimizer's state is new in that step, after the backward pass has freed the activations. Base weights that
        are read are there twice.
        """
        vectors = TRAINING_VECTORS * self.gradient_bytes
        step = (
            self.gradient_bytes
            + self.preconditioners_bytes
            + max(self.activations_bytes, self.optimizer_bytes)
        )
        return PROGRAM_BYTES + self.model_bytes + max(self.model_bytes, self.texts_bytes + vectors + step)


@dataclass(frozen=True)
class Timing:
    """The time of the work, from what was measured.

    Attributes:
        provider_s: Clipping and adding one provider's update.
        pages_s: Making the image features of all pages, once for all runs on the data.
        scoring_s: Scoring rounds on the validation split.
        round_s: A round on one device, without messages between machines.
    """

    step_s: float
    provider_s: float
    pages_s: float
    round_s: float
    total_s: float
    scoring_s: float

    @classmethod
    def of(
        cls,
        steps: float,
        providers: float,
        rounds: int,
        *,
        step_s: float,
        provider_s: float,
        pages_s: float,
        scoring_s: float = 0.0,
    ) -> "Timing":
        """Return the time of rounds of so many steps, and updates clipped one by one, on average."""
        round_s = steps * step_s + providers * provider_s
        return cls(step_s, provider_s, pages_s, round_s, rounds * round_s + scoring_s, scoring_s)


@dataclass(frozen=True)
class Disk:
    """What is written.

    Attributes:
        features_bytes: The image features of pages, beside the data.
        run_bytes: The run folder while it trains: checkpoint, state, and what a training record must be able to open.
    """

    features_bytes: int
    run_bytes: int


@dataclass(frozen=True)
class Room:
    """What there is, in bytes: `device` before the model is there, and None where the model trains on the CPU."""

    memory: int
    device: int | None
    disk: int


@dataclass(frozen=True)
class Forecast:
    """What a run will take.

    Attributes:
        device_peak_bytes: What the measured step took of a GPU's memory at its peak, with the model; None if nothing
            was measured there.
    """

    experiment: str
    method: str
    parameters: int
    trained: int
    traffic: Traffic
    privacy: Privacy | None
    memory: Memory
    timing: Timing | None
    disk: Disk
    room: Room
    device_peak_bytes: int | None = None

    @property
    def host_bytes(self) -> int:
        """The memory of the process, beside a GPU's."""
        return self.memory.host_bytes + (self.memory.device_bytes if self.room.device is None else 0)


def optimizer_bytes(shapes: Sequence[Sequence[int]], optimizer: str, momentum: float) -> int:
    """Return the bytes of the optimizer's state but for preconditioners, for trained tensors of these shapes."""
    vectors = {"adamw": 2, "sgd": 1 if momentum else 0, "shampoo": 0}.get(optimizer, 1)
    return vectors * FLOAT * sum(map(prod, shapes))


def shampoo_bytes(shapes: Sequence[Sequence[int]], max_dimension: int = 8192) -> int:
    """Return the bytes of a client's preconditioners: L, R and their roots."""
    sides = [side for shape in shapes for side in (shape[0], prod(shape) // shape[0])]
    return 2 * FLOAT * sum(side * side for side in sides if side <= max_dimension)


def advice(
    forecast: Forecast, *, micro_batch_size: int, features: str, budgets: Sequence[float]
) -> list[str]:
    """Return what to change where the run doesn't fit or would have no rank; nothing where all is well.

    Args:
        micro_batch_size, features: See `Compute`.
        budgets: The values of ε for which there are boards.
    """
    return [
        *_memory_advice(forecast, micro_batch_size),
        *_disk_advice(forecast, features),
        *_rank_advice(forecast, budgets),
    ]


def _memory_advice(forecast: Forecast, micro_batch_size: int) -> Iterable[str]:
    memory, room = forecast.memory, forecast.room
    if forecast.host_bytes > room.memory and memory.states_bytes > memory.vectors_bytes:
        yield "The clients' states don't fit into memory: train fewer tensors, or fewer clients."
    needed, there = (
        (forecast.host_bytes, room.memory) if room.device is None else (memory.device_bytes, room.device)
    )
    if needed <= there:
        return
    activations_fit = there - (needed - memory.activations_bytes)
    of_an_example = memory.activations_bytes / max(micro_batch_size, 1)
    if room.device is None:
        # As there may be dropout.
        of_an_example *= ACTIVATIONS_OF_PARTS / ACTIVATIONS
    if activations_fit > of_an_example:
        fitting = int(activations_fit / of_an_example)
        yield f"A step doesn't fit into memory: --set compute.micro_batch_size={fitting}"
    elif activations_fit > 0:
        yield (
            "Not even one example fits into memory: --set compute.micro_batch_size=1 "
            "--set compute.checkpoint_activations=true"
        )
    else:
        yield "Weights and optimizer don't fit into memory: train adapters (lora), or fewer tensors (trainable)."


def _disk_advice(forecast: Forecast, features: str) -> Iterable[str]:
    disk = forecast.disk
    if disk.features_bytes + disk.run_bytes <= forecast.room.disk:
        return
    if features == "float32" and disk.features_bytes > disk.run_bytes:
        yield "The image features don't fit on the disk: --set compute.features=float16 takes half of it."
    else:
        yield "The disk has too little room: name another --out, or another folder in PFL_PAGE_FEATURES."


def _rank_advice(forecast: Forecast, budgets: Sequence[float]) -> Iterable[str]:
    privacy = forecast.privacy
    if privacy is None:
        return
    if not privacy.recorded:
        yield f"The privacy of one {privacy.unit} has no board: this run can be submitted to track 1 only."
        return
    rejections = privacy.rejections()
    corrected = "".join(f" --set {change}" for change in rejections.values())
    if privacy.budget(budgets) is None:
        yield f"ε = {privacy.epsilon:.4g} is over every budget: track 2 rejects such a record."
        for budget, sigma in privacy.needed.items():
            yield (
                f"For ε = {budget:g}: --set noise_multiplier=null --set target_epsilon={budget:g}{corrected}, "
                f"which is noise multiplier {sigma:.4g}"
            )
    elif rejections:
        yield f"Track 2 rejects the record: {'; '.join(rejections)}.{corrected}"
