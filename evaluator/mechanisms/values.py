"""The base of all values of a mechanism, and the ranges of their numbers."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

# Outside of these the accountants' arithmetic is slow or loses its digits, and no training run is there: a provider
# seen at a noise multiplier of 0.1 has an ε near 100 from that one round.
MIN_SAMPLING_RATE = 1e-9
MIN_NOISE_MULTIPLIER = 0.1
MAX_NOISE_MULTIPLIER = 1e4
MAX_ROUNDS = 1_000_000

Rate = Annotated[float, Field(ge=MIN_SAMPLING_RATE, le=1, allow_inf_nan=False)]
# In longer cycles, rounding could count as much as δ.
RoundsPerCycle = Annotated[int, Field(ge=2, le=10_000)]
# So that products of several stay finite and above 0.
Positive = Annotated[float, Field(ge=1e-12, le=1e12)]
# What canonical JSON can hold exactly.
Count = Annotated[int, Field(ge=0, lt=2**53)]
SomeCount = Annotated[int, Field(ge=1, lt=2**53)]


class Value(BaseModel):
    """An immutable part of a mechanism. Nothing is converted: `"1"` is no number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
