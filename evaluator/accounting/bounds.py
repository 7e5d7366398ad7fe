"""Bounds that accountants return, as they are stored and published: light to import."""

from pydantic import BaseModel, ConfigDict, Field


class TruePositiveRate(BaseModel):
    """The largest rate at which an attack finds members, at a rate of falsely accused others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    false_positive_rate: float = Field(gt=0, lt=1)
    at_most: float = Field(ge=0, le=1)


class MembershipBounds(BaseModel):
    """How well anybody can find out from a run whether a privacy unit took part: see `membership`.

    Attributes:
        balanced_accuracy: The best attack's mean of true positive and true negative rate; 0.5 is guessing.
        gaussian_mu: The μ of the closest Gaussian DP that the run is no weaker than, for δ from the track's on; None
            where none is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    balanced_accuracy: float = Field(ge=0.5, le=1)
    true_positive_rates: list[TruePositiveRate]
    gaussian_mu: float | None
