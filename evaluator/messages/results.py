"""The results of one run, as one document: the site stores it, ranks by it and publishes it.

A new result is a new field of `RunResults`; the database, the API and the exported boards then include it without
further changes. When a step has passed, each field of its result is copied to the field of the same name here, if
there is one.
"""

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from evaluator.accounting.bounds import MembershipBounds
from evaluator.messages.jobs import (
    AccountingResult,
    Check,
    CheckStatus,
    CommunicationResult,
    Epsilon,
    ScoringResult,
    StepResult,
    TrustLevel,
)
from evaluator.messages.leakage import Leakage
from evaluator.messages.rankings import COUNTED

# The checks that tie the checkpoint to noised sums in a training record, each with the ends by which it does. After any
# other end of one of them, the run is unbound. Noise whose distribution was flagged may have been moved to where it
# doesn't reach the model; where nobody could look at the distribution, because a codec rounded the noise or the updates
# may imitate it, there may be no noise. An alignment that no genuine run has may be a model written into the noise.
BINDING_CHECKS = {
    "record.linkage": {CheckStatus.PASSED},
    "record.whole_change": {CheckStatus.PASSED, CheckStatus.NOT_APPLICABLE},
    "record.noise_shape": {CheckStatus.PASSED, CheckStatus.NOT_APPLICABLE},
    "record.alignment": {CheckStatus.PASSED, CheckStatus.NO_POWER, CheckStatus.NOT_APPLICABLE},
}
# The decimals of a score as it is stored and ranked by, of which a small test set supports fewer.
MOST_DECIMALS = 4

# Made for each document: pydantic copies a list that is the default itself, which takes as long as all other fields.
NOTHING: Any = Field(default_factory=list, json_schema_extra={"default": []})


def supported_decimals(questions: int) -> int:
    """Return how many decimals of a mean score over so many questions are shown.

    The last of them is worth about half of the largest standard error that the mean can have, 1 / (4·√questions).
    """
    return max(1, min(MOST_DECIMALS, round(math.log10(4 * math.sqrt(max(1, questions))))))


def unbound_by(checks: Iterable[Check]) -> str:
    """Return the first of `BINDING_CHECKS` that doesn't bind the run, with how it ended; empty where all do."""
    ends = {check.id: check.status for check in checks}
    for name, binding in BINDING_CHECKS.items():
        status = ends.get(name)
        if status not in binding:
            return f"{name}: {status.replace('_', ' ') if status else 'not made'}"
    return ""


def log_flag(result: CommunicationResult) -> str:
    """Return the first flagged check of a log that is the team's word; empty where none was, and for counted bytes."""
    flagged = (check.id for check in result.checks if check.status is CheckStatus.FLAGGED)
    return "" if result.counting == COUNTED else next(flagged, "")


class QuestionTypeScore(BaseModel):
    """The mean ANLS over the questions of one type, and where its 95% interval begins and ends."""

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
        anls_low: Where the 95% interval of `anls` over other draws of providers begins; it ends at `anls_high`.
        public_anls: The mean over the public part once `anls` is that over the private one, as is `public_accuracy`;
            None otherwise.
        question_types: The means over the types of questions that are frequent enough, on the same questions as `anls`.
        bytes_total: The bytes by which runs rank: what was sent in both directions during the whole training, with or
            without first downloads as the track's rule says, and `decoder_bytes`.
        bytes_sent: The bytes of all messages in the log, as `first_download_bytes` are those of the first round's
            downloads, which the log may have left out.
        decoder_bytes: The size of the team's own codec file.
        counting: `counted` if the checkpoint was computed from the messages, so that nothing else reached it; otherwise
            the log is the team's word.
        not_counted_because: Why the bytes aren't counted, though a transcript was attached.
        rounds_folded: How many rounds were computed from their messages, of `log_rounds`.
        log_flag: The first flagged check of a declared log; of counted bytes the check on the team's other indexes, if
            that was flagged. Empty otherwise.
        bytes_needed: The fewest bytes that could have carried what changed in the weights.
        epsilon: The recomputed ε that is compared with the budget.
        epsilons: The recomputed ε by every accountant under every sampling rule; one of them decides.
        accountant: Name, version and precision of the deciding accountant.
        membership: How well anybody can find out from the run whether a privacy unit took part.
        decimals: How many decimals of the scores are shown, by the number of questions that they are means over.
        unbound: The check because of which nothing ties the recorded sums to the checkpoint, with how it ended, such as
            `record.linkage: flagged`; empty where they are tied, and without a record.
        trust_level: The highest level that the run has earned; `trust_by` says by whom, and `trust_at` when.
        trust_rounds: Which part of the run that level is about, such as `4 of 100 rounds`; empty where it is about all.
        failed_level: The level of the newest replay or rerun, if the run failed it; `failed_because` says how.
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
    decimals: int = MOST_DECIMALS
    question_types: list[QuestionTypeScore] = NOTHING
    bytes_total: int | None = None
    bytes_sent: int | None = None
    first_download_bytes: int | None = None
    decoder_bytes: int = 0
    counting: Literal["counted", "declared"] = "declared"
    not_counted_because: str = ""
    rounds_folded: int = 0
    log_rounds: int | None = None
    log_flag: str = ""
    bytes_needed: int | None = None
    epsilon: float | None = None
    epsilons: list[Epsilon] = NOTHING
    accountant: str = ""
    membership: MembershipBounds | None = None
    leakage: Leakage | None = None
    joint_epsilon: float | None = None
    joint_runs: int | None = None
    unbound: str = ""
    trust_level: TrustLevel | None = None
    trust_rounds: str = ""
    trust_by: str = ""
    trust_at: datetime | None = None
    failed_level: TrustLevel | None = None
    failed_because: str = ""
    checks: list[Check] = NOTHING

    @property
    def trust_label(self) -> str:
        """The trust level in words, such as `L1 conforming` or `L2, 4 of 100 rounds`; empty before there is one."""
        if self.trust_level is None:
            return ""
        return (
            f"L{self.trust_level.value}, {self.trust_rounds}" if self.trust_rounds else self.trust_level.label
        )

    @property
    def counting_label(self) -> str:
        """How the bytes are known: `declared`, `counted`, or of a large run such as `counted, 4 of 30 rounds`."""
        rounds = self.log_rounds or 0
        if not 0 < self.rounds_folded < rounds:
            return self.counting
        return f"{self.counting}, {self.rounds_folded} of {rounds} rounds"

    @property
    def flagged_checks(self) -> int:
        """The number of checks that the reviewers are asked to look at."""
        return sum(check.status is CheckStatus.FLAGGED for check in self.checks)

    def including(self, result: StepResult) -> Self:
        """Return these results with those of a step that has passed; its checks follow the earlier ones."""
        shared = type(self).model_fields.keys() & type(result).model_fields.keys()
        found = {name: getattr(result, name) for name in shared} | _derived(result)
        return self.model_copy(update={**found, "checks": [*self.checks, *found.get("checks", [])]})


def _derived(result: StepResult) -> dict[str, object]:
    """Return the fields of results that follow from a step's result without being in it."""
    match result:
        case CommunicationResult():
            return {"log_flag": log_flag(result), "log_rounds": result.rounds}
        case AccountingResult():
            return {"unbound": unbound_by(result.checks)}
        case ScoringResult():
            return {"decimals": supported_decimals(result.questions)}
        case _:
            return {}
