"""The state of a client between two messages of a round, and its serialization."""

from enum import IntEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from starter_kit.secure_aggregation import ProtocolError
from starter_kit.secure_aggregation.keys import KEY_BYTES
from starter_kit.secure_aggregation.sealing import SharePair
from starter_kit.secure_aggregation.terms import Terms


class Leg(IntEnum):
    """The next step of a client."""

    ADVERTISE = 1
    SHARE = 2
    MASK = 3
    UNMASK = 4


PrivateBytes = Field(min_length=KEY_BYTES, max_length=KEY_BYTES, repr=False)


class ProtocolState(BaseModel):
    """A client's state. It holds secrets: whoever reads it can unmask the client's vector.

    Attributes:
        leg: The next step.
        masking_private, encryption_private: See `PublicKeys`.
        self_mask_seed: The seed of the mask that the client adds on its own.
        key_list: The server's message with everybody's public keys, as it came; empty before leg 2.
        held: The shares of the secrets of all clients that the vector is masked with, itself among them, by id. After
            leg 2 there are only its own.
        survivors: The clients whose vectors arrived, once shares were revealed accordingly.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        ser_json_bytes="base64",
        val_json_bytes="base64",
        hide_input_in_errors=True,
    )

    version: Literal[1] = 1
    client: int
    terms: Terms
    leg: Leg = Leg.ADVERTISE
    masking_private: bytes = PrivateBytes
    encryption_private: bytes = PrivateBytes
    self_mask_seed: bytes = PrivateBytes
    key_list: bytes = b""
    held: dict[int, SharePair] = Field(default_factory=dict, repr=False)
    survivors: tuple[int, ...] | None = None

    def to_bytes(self) -> bytes:
        """Return the state as JSON."""
        return self.model_dump_json().encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "ProtocolState":
        """Return the state that `to_bytes` wrote. Raises `ProtocolError` for anything else."""
        try:
            return cls.model_validate_json(data)
        except ValidationError:
            raise ProtocolError("not the state of a client of secure aggregation") from None
