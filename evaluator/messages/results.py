"""The results of one run, as one document: the site stores it, ranks by it and publishes it.

A new result is a new field of `RunResults`; the database, the API and the exported boards then include it without
further changes. When a step has passed, each field of its result is copied to the field of the same name here, if
there is one.
"""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict

from evaluator.accounting.bounds import MembershipBounds
from evaluator.messages.jobs import (
    Check,
    CheckStatus,
    Epsilon,
    StepResult,
    TrustLevel,
)
from evaluator.messages.leakage import Leakage


class QuestionTypeScore(BaseModel):
    """The mean ANLS over the questions of one type, and where its 95 % interval begins and ends."""

    model_config = ConfigDict(frozen=True)

    name: str
    anls: float
    anls_low: float
    anls_high: float


class RunResults(BaseModel):
    """The results of the steps that have passed so far; what no step has reported is None or empty.

    A field that this version doesn't know, from a document or a site of another version, is ignored.

    Attributes:
        anls: Mean over the test set, in [0, 1], as is `accuracy`. Of a split test set it is over the public part until
            the organizers reveal the private one, and over that from then on.
        anls_low: Where the 95 % interval of `anls` over other draws of providers begins; it ends at `anls_high`.
        public_anls: The mean over the public part once `anls` is that over the private one, as is `public_accuracy`;
            None otherwise.
        question_types: The means over the types of questions that are frequent enough, on the same questions as `anls`.
        bytes_total: Bytes sent in both directions during the whole training.
        bytes_needed: The fewest bytes that could have carried what changed in the weights.
        epsilon: The recomputed ε that is compared with the budget.
        epsilons: The recomputed ε by every accountant under every sampling rule; one of them decides.
        accountant: Name, version and precision of the deciding accountant.
        membership: How well anybody can find out from the run whether a privacy unit took part.
        trust_level: The highest level that the run has earned; `trust_by` says by whom, and `trust_at` when.
        trust_rounds: Which part of the run that level is about, such as `4 of 100 rounds`; empty where it is about all.
        leakage: How well an attack finds out which providers took part; None before it was measured. It ranks nothing.
        joint_epsilon: ε of `joint_runs` trainings of the team in the track together, at the time of the accounting.
        checks: In the order in which they were made.
    """

    model_config = ConfigDict(frozen=True)

    anls: float | None = None
    anls_low: float | None = None
    anls_high: float | None = None
    accuracy: float | None = None
    public_anls: float | None = None
    public_accuracy: float | None = None
    question_types: list[QuestionTypeScore] = []
    bytes_total: int | None = None
    bytes_needed: int | None = None
    epsilon: float | None = None
    epsilons: list[Epsilon] = []
    accountant: str = ""
    membership: MembershipBounds | None = None
    leakage: Leakage | None = None
    joint_epsilon: float | None = None
    joint_runs: int | None = None
    trust_level: TrustLevel | None = None
    trust_rounds: str = ""
    trust_by: str = ""
    trust_at: datetime | None = None
    checks: list[Check] = []

    @property
    def trust_label(self) -> str:
        """The trust level in words, such as `L1 conforming` or `L2, 4 of 100 rounds`; empty before there is one."""
        if self.trust_level is None:
            return ""
        return (
            f"L{self.trust_level.value}, {self.trust_rounds}" if self.trust_rounds else self.trust_level.label
        )

    @property
    def flagged_checks(self) -> int:
        """The number of checks that the reviewers are asked to look at."""
        return sum(check.status is CheckStatus.FLAGGED for check in self.checks)

    def including(self, result: StepResult) -> Self:
        """Return these results with those of a step that has passed; its checks follow the earlier ones."""
        shared = type(self).model_fields.keys() & type(result).model_fields.keys()
        found = {name: getattr(result, name) for name in shared}
        return self.model_copy(update={**found, "checks": [*self.checks, *found.get("checks", [])]})
