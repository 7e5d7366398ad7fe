"""The messages between the harness and a confined method, as JSON: what to run, and what came out.

What comes back is from an untrusted process: arrays are of plain numbers and of the expected length, claims are finite.
"""

import base64
import math
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from evaluator.errors import Problem
from starter_kit.conformance.claims import Claims
from starter_kit.conformance.session import Asked, Observation
from starter_kit.conformance.synthetic import Federation
from starter_kit.federation.rounds import Client
from starter_kit.learning.local_training import LocalTraining

CLAIMS = TypeAdapter(Claims)


class Exchanged(BaseModel):
    """Base of these messages."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Numbers(Exchanged):
    """An array, in little-endian bytes as base64."""

    dtype: Literal["<f8", "<f4", "<i8"]
    shape: list[int]
    data: str

    @classmethod
    def of(cls, array: NDArray[Any]) -> "Numbers":
        little = array.astype(array.dtype.newbyteorder("<"))
        return cls.model_validate(
            {
                "dtype": little.dtype.str,
                "shape": list(array.shape),
                "data": base64.b64encode(little.tobytes()).decode(),
            }
        )

    def array(self) -> NDArray[Any]:
        """Return the array. Raises `ValueError` if the bytes aren't of this shape."""
        flat = np.frombuffer(base64.b64decode(self.data, validate=True), dtype=self.dtype)
        return flat.reshape(self.shape).copy()


class Member(Exchanged):
    """A client and its providers' examples."""

    id: int
    providers: dict[str, list[int]]

    @classmethod
    def of(cls, client: Client) -> "Member":
        return cls(id=client.id, providers=client.providers)

    def client(self) -> Client:
        return Client(self.id, self.providers)


class Data(Exchanged):
    """A `Federation`."""

    clients: list[Member]
    unit_of: Numbers
    coordinates: Numbers
    gradients: Numbers
    size: int
    shapes: dict[str, list[int]]

    @classmethod
    def of(cls, federation: Federation) -> "Data":
        return cls(
            clients=[Member.of(client) for client in federation.clients],
            unit_of=Numbers.of(federation.unit_of),
            coordinates=Numbers.of(federation.coordinates),
            gradients=Numbers.of(federation.gradients.numpy()),
            size=federation.size,
            shapes={name: list(shape) for name, shape in federation.shapes.items()},
        )

    def federation(self) -> Federation:
        return Federation(
            clients=[member.client() for member in self.clients],
            unit_of=self.unit_of.array(),
            coordinates=self.coordinates.array(),
            gradients=torch.from_numpy(self.gradients.array()),
            size=self.size,
            shapes={name: tuple(shape) for name, shape in self.shapes.items()},
        )


class Variant(Exchanged):
    """One change of the settings; see `starter_kit.conformance.variants`."""

    kind: Literal["noise", "nobody"]
    relative: float = 0.0
    clip_norm: float | None = None


class Question(Exchanged):
    """What to run: `count` rounds of the method on `data`; without data the method is only described.

    Attributes:
        method: The settings file; `changes` are as in `Inputs`.
        variants: Further changes, in this order.
    """

    method: str
    changes: list[str]
    variants: list[Variant] = []
    data: Data | None = None
    quick: bool = False
    plain: bool = False
    count: int = 0
    asked: Asked = Asked()


class Description(Exchanged):
    """A method's settings, as far as the harness needs them; `exists` says whether the last variant does."""

    exists: bool = True
    values: dict[str, Any] = {}
    local: LocalTraining | None = None
    is_masked: bool = False


class Answer(Exchanged):
    """What the method is, or claims on the data; or why it could not be run."""

    problems: list[Problem] = []
    description: Description | None = None
    claims: dict[str, Any] | None = None
    clients: list[Member] = []
    text: str = ""

    def read_claims(self) -> Claims:
        """Return the claims. Raises `ValueError` where they can't be any method's."""
        claims = CLAIMS.validate_python(self.claims)
        positive = (claims.bound, claims.scale, claims.client_rate, claims.unit_rate)
        if not all(math.isfinite(value) and value > 0 for value in positive):
            raise ValueError(f"claims that are not positive numbers: {positive}")
        if claims.client_rate > 1 or claims.unit_rate > 1:
            raise ValueError("a rate above 1")
        return claims


class Release(Exchanged):
    """What one sender released in a round; None for the sum."""

    sender: int | None
    vector: Numbers


class Seen(Exchanged):
    """An `Observation`."""

    clients: list[int]
    releases: list[Release]
    total: Numbers
    step: Numbers
    sizes: list[int]
    has_loss: bool = Field(strict=True)

    @classmethod
    def of(cls, seen: Observation) -> "Seen":
        return cls(
            clients=seen.clients,
            releases=[Release(sender=who, vector=Numbers.of(row)) for who, row in seen.releases.items()],
            total=Numbers.of(seen.total),
            step=Numbers.of(seen.step),
            sizes=seen.sizes,
            has_loss=seen.has_loss,
        )

    def observation(self, size: int) -> Observation:
        """Return the observation. Raises `ValueError` unless all of its vectors have `size` numbers."""
        releases = {release.sender: release.vector.array().astype(float) for release in self.releases}
        total, step = self.total.array().astype(float), self.step.array().astype(float)
        if any(vector.shape != (size,) for vector in (*releases.values(), total, step)):
            raise ValueError(f"a vector of other than {size} numbers")
        return Observation(self.clients, releases, total, step, self.sizes, self.has_loss)
