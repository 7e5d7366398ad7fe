"""The schema of a transcript's index: one `run` line, one `round` line for each round, one `end` line.

The index lists every message of a run with its length and its SHA-256. Its first line has no free text: what it can say
beyond the run's settings is a name of a tensor or a number, and the fold rejects those that don't fit.
"""

import hashlib
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluator.messages.jobs import SERVER
from evaluator.parametrizations.lora import LORA
from evaluator.parametrizations.turns import Turns, turns_of
from evaluator.records.lines import (
    Adapter,
    Bytes,
    LoRAScale,
    ParametrizationName,
    RecordLine,
    Rounds,
    Sha256,
    TrainableTensor,
    adapters_of,
    check_adapters,
    check_vector,
    parametrization_of,
)
from evaluator.records.merkle import LEAF_PREFIX, Tree
from evaluator.records.server_steps import ServerStep

SCHEMA = "pfl-transcript/1"
# How large the file of a team's own codec may be.
MAX_CODEC_BYTES = 64_000
# How many characters its settings may take.
MAX_SETTINGS = 1000

Party = Annotated[int, Field(ge=SERVER, lt=2**31)]
RoundNumber = Annotated[int, Field(ge=1, lt=2**31)]


class BuiltIn(RecordLine):
    """A codec of the evaluator: see `evaluator.communication.codecs`."""

    kind: Literal["built_in"] = "built_in"
    name: Literal["float32", "nf4"]


class KitPlugin(RecordLine):
    """A codec plug-in of the starter kit, with its settings as they are stored; `kit_version` says which kit's."""

    kind: Literal["kit"] = "kit"
    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    kit_version: Annotated[str, Field(pattern=r"^[0-9A-Za-z.+-]{1,40}$")]
    settings: Annotated[str, Field(max_length=MAX_SETTINGS)]


class OwnFile(RecordLine):
    """A team's own codec, which the run attaches; `settings` is the JSON of what its class is made from."""

    kind: Literal["file"] = "file"
    sha256: Sha256
    size_bytes: Annotated[int, Field(ge=1, le=MAX_CODEC_BYTES)]
    settings: Annotated[str, Field(max_length=MAX_SETTINGS)]


CodecTerms = Annotated[BuiltIn | KitPlugin | OwnFile, Field(discriminator="kind")]


class TranscriptRun(RecordLine):
    """The first line: what the run started from, and how messages become the next model.

    Attributes:
        base_sha256: Of the file of the base weights.
        start: What the first values of adapters follow from: see `evaluator.parametrizations`.
        trainable: Every tensor that leaves a client, each once, in the order of the weight vector.
        lora_scale, parametrization: Those of adapters, as in a training record.
        server: What the server does with the mean of a round's updates.
    """

    type: Literal["run"] = "run"
    schema_version: Literal["pfl-transcript/1"] = Field(default="pfl-transcript/1", alias="schema")
    base_sha256: Sha256
    clients: Annotated[int, Field(ge=1, lt=2**31)]
    codec: CodecTerms
    lora_scale: LoRAScale | None
    parametrization: ParametrizationName = LORA.name
    server: ServerStep
    start: Annotated[str, Field(pattern=r"^seed (0|[1-9][0-9]{0,15})$")]
    trainable: Annotated[list[TrainableTensor], Field(min_length=1)]

    @property
    def adapters(self) -> list[Adapter]:
        """The adapters that are merged at the end."""
        return adapters_of(self.trainable, parametrization_of(self.parametrization, self.lora_scale))

    @property
    def turns(self) -> Turns | None:
        """Which coordinates each round moves; None where that is all of them."""
        known = parametrization_of(self.parametrization, self.lora_scale)
        names = [tensor.name for tensor in self.trainable]
        return turns_of(known, names, [tensor.numel for tensor in self.trainable])

    @property
    def numel(self) -> int:
        """d, the coordinates of the weight vector."""
        return sum(tensor.numel for tensor in self.trainable)

    @model_validator(mode="after")
    def _has_a_vector_with_whole_adapters(self) -> Self:
        check_vector(self.trainable)
        check_adapters(self.trainable, self.parametrization, self.lora_scale)
        return self


class TranscriptMessage(RecordLine):
    """One message: who sent it to whom, how long it is, and its SHA-256."""

    sender: Party
    receiver: Party
    size_bytes: Bytes
    sha256: Sha256

    @property
    def client(self) -> int:
        """The client at its end."""
        return max(self.sender, self.receiver)

    @property
    def leaf(self) -> bytes:
        """Its leaf in the tree over all messages."""
        content = bytes.fromhex(self.sha256) + self.size_bytes.to_bytes(8, "big")
        return hashlib.sha256(LEAF_PREFIX + content).digest()


class TranscriptRound(RecordLine):
    """A round: its messages in the order in which they were sent, and the SHA-256 of the server's state after it.

    That of the weights (d,), float32 and little-endian, and then of the vectors that the server keeps, in the order of
    their names.
    """

    type: Literal["round"] = "round"
    round: RoundNumber
    messages: list[TranscriptMessage]
    state_sha256: Sha256


class TranscriptEnd(RecordLine):
    """The last line: the number of rounds, the Merkle root of all messages, and the checkpoint's SHA-256."""

    type: Literal["end"] = "end"
    rounds: Rounds
    messages_root: Sha256
    checkpoint_sha256: Sha256


AnyTranscriptLine = Annotated[TranscriptRun | TranscriptRound | TranscriptEnd, Field(discriminator="type")]


def messages_root(leaves: list[bytes]) -> str:
    """Return the Merkle root of messages with these leaves; of no message, the hash of nothing."""
    return Tree(leaves).root if leaves else hashlib.sha256(LEAF_PREFIX).hexdigest()
