"""The schema of a transcript's index: one `run` line, one `round` line for each round, one `end` line.

The index lists every message of a run with its length and its SHA-256. Its first line has no free text: what it can say
beyond the run's settings is a name of a tensor or a number, and the fold rejects those that don't fit.
"""

import hashlib
from typing import Annotated, Literal

from pydantic import Field

from evaluator.messages.jobs import SERVER
from evaluator.records.lines import (
    Bytes,
    RecordLine,
    Rounds,
    Sha256,
    TrainedLine,
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


class TranscriptRun(TrainedLine):
    """The first line: what the run started from, and how messages become the next model.

    Attributes:
        base_sha256: Of the file of the base weights.
        start: What the first values of adapters follow from: see `evaluator.parametrizations`.
        server: What the server does with the mean of a round's updates.
    """

    type: Literal["run"] = "run"
    schema_version: Literal["pfl-transcript/1"] = Field(default="pfl-transcript/1", alias="schema")
    base_sha256: Sha256
    clients: Annotated[int, Field(ge=1, lt=2**31)]
    codec: CodecTerms
    server: ServerStep
    start: Annotated[str, Field(pattern=r"^seed (0|[1-9][0-9]{0,15})$")]


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
