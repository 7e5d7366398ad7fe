"""What an assessment finds, as one document: for `leakage.json`, for pages and for tables."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from evaluator.leakage import memorization
from evaluator.leakage.hiding import Hiding
from evaluator.leakage.statistics import Estimate, LeakageDifference, Statistic

# Our own attack's name, beside the published ones.
LIKELIHOOD = "likelihood"


class Interval(BaseModel):
    """A value with its 95 % interval."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    low: float
    high: float

    @property
    def covers_zero(self) -> bool:
        """Whether 0 is inside."""
        return self.low <= 0 <= self.high


class Measure(Interval):
    """A statistic of an attack, the band of what guessing comes to, and the difference from the base weights."""

    null_low: float
    null_high: float
    p_value: float
    above_base: Interval

    @classmethod
    def of(cls, found: Estimate, above_base: LeakageDifference) -> Self:
        """Return an estimate beside the difference from the base weights."""
        return cls(
            value=found.value,
            low=found.low,
            high=found.high,
            null_low=found.null_low,
            null_high=found.null_high,
            p_value=found.p_value,
            above_base=Interval(value=above_base.value, low=above_base.low, high=above_base.high),
        )


class AttackResult(BaseModel):
    """One attack on one target set.

    Attributes:
        target_set: s of T_s: providers with at least so many questions.
        accuracy: The paper's figure, of all tested providers, the mean over the seeds; None for our own attack.
        accuracy_spread: Its standard deviation over the seeds.
        chance: The share of the larger class, which accuracy has by guessing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    attack: str
    target_set: int
    members: int
    nonmembers: int
    accuracy: float | None = None
    accuracy_spread: float | None = None
    chance: float
    measures: dict[Statistic, Measure]


class RecallResult(BaseModel):
    """Answers of one model to hidden questions about members or nonmembers; shares are None where there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hiding: Hiding
    field: str
    model: str
    kind: str
    documents: int
    accuracy: float | None
    anls: float | None
    confident: int
    confident_accuracy: float | None
    confident_anls: float | None

    @classmethod
    def of(cls, hiding: Hiding, field: str, model: str, kind: str, found: memorization.Recall) -> Self:
        """Return what was found, with None in the place of NaN."""
        shares = (found.accuracy, found.anls, found.confident_accuracy, found.confident_anls)
        accuracy, anls, confident_accuracy, confident_anls = (
            None if share != share else share for share in shares
        )
        return cls(
            hiding=hiding,
            field=field,
            model=model,
            kind=kind,
            documents=found.documents,
            accuracy=accuracy,
            anls=anls,
            confident=found.confident,
            confident_accuracy=confident_accuracy,
            confident_anls=confident_anls,
        )


class ProviderScore(BaseModel):
    """How strongly our own attack holds a provider for a member, and the truth."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str
    is_member: bool
    questions: int
    score: float


class Example(BaseModel):
    """A hidden answer that the model gave exactly."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: str
    is_member: bool
    hiding: Hiding
    field: str
    question: str
    answer: str
    confidence: float


class LeakageResult(BaseModel):
    """All that an assessment found. Names of providers are in it: it is for organizers, and for one's own data.

    Attributes:
        left_out: What was not assessed, and why: coded problems, in words.
        recalled_members: Members of which a hidden answer was given exactly; `recalled_nonmembers` likewise.
        recall_p_value: Fisher's exact test of those two counts; None without a memorization test.
        without_loss: Questions whose loss was no finite number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: int
    providers: list[ProviderScore]
    attacks: list[AttackResult]
    recalls: list[RecallResult] = []
    examples: list[Example] = []
    recalled_members: int = 0
    recalled_nonmembers: int = 0
    recall_p_value: float | None = None
    without_loss: int = 0
    references: int = 0
    left_out: list[str] = Field(default_factory=list)

    @property
    def strongest(self) -> AttackResult:
        """Return our own attack on all providers, which is fixed beforehand: the best of many would be too good."""
        return next(attack for attack in self.attacks if attack.attack == LIKELIHOOD)
