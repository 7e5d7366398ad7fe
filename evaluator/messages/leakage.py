"""What a worker reports of the leakage of a checkpoint: figures for everyone, and statistics for the organizers."""

from typing import Annotated, Literal

from pydantic import Field, FiniteFloat, ValidationInfo, field_validator

from evaluator.messages.base import Message

Share = Annotated[float, Field(ge=0, le=1)]
Interval = tuple[Share, Share]


class Leakage(Message):
    """How well an attack finds out which providers took part in a training, each figure rounded to 0.05.

    The attack is the likelihood ratio of `evaluator.leakage`, fixed beforehand, on all providers of the leakage set.
    Figures are None where nothing was found: the AUC is below what a board shows.

    Attributes:
        least_auc: The smallest AUC that a board shows, by the number of members and of others, rounded up to 0.01. None
            if there are too few to show any, or if the run was measured before this was stated.
        auc: At least `least_auc`, of which the rounded AUC may fall short.
        tpr_at_1_percent: The share of the members that it finds with 1% false positives.
        auc_interval: The 95% interval of `auc` over providers, rounded outward to 0.05. None where there is no figure,
            or if the run was measured before intervals were stated. The other intervals likewise.
    """

    providers: int = Field(ge=4)
    least_auc: Share | None = None
    auc: Share | None = None
    balanced_accuracy: Share | None = None
    tpr_at_1_percent: Share | None = None
    tpr_at_10_percent: Share | None = None
    auc_interval: Interval | None = None
    balanced_accuracy_interval: Interval | None = None
    tpr_at_1_percent_interval: Interval | None = None
    tpr_at_10_percent_interval: Interval | None = None

    @field_validator("auc")
    @classmethod
    def _not_below_the_least(cls, auc: float | None, info: ValidationInfo) -> float | None:
        return auc if auc is None else max(auc, info.data.get("least_auc") or 0.0)


class LeakageResult(Message):
    """The leakage of a checkpoint, as everyone may read it."""

    kind: Literal["leakage"] = "leakage"
    leakage: Leakage
    leakage_set_sha256: str
    checkpoint_sha256: str


class AttackMeasure(Message):
    """A figure of an attack with its 95% interval over providers, and its difference from the base weights."""

    attack: str
    target_set: int = Field(ge=0)
    members: int = Field(ge=0)
    nonmembers: int = Field(ge=0)
    statistic: str
    value: FiniteFloat
    low: FiniteFloat
    high: FiniteFloat
    p_value: FiniteFloat
    above_base: FiniteFloat
    above_base_low: FiniteFloat
    above_base_high: FiniteFloat


class LeakageDetail(Message):
    """All attacks of a leakage step, which only the organizers see. Names of providers stay on the worker.

    Attributes:
        left_out: Which target sets were not attacked, and why.
    """

    measures: list[AttackMeasure]
    left_out: list[str] = []
