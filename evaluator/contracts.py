"""The messages between the site and the workers.

The site sends an `EvaluationJob` for one step of one attempt; a worker answers with `Progress` while it works
and ends with one `StepReport`. All of them travel as JSON. Messages carry no secret of the site, and nothing
of the test set but aggregate scores.
"""

from datetime import datetime
from enum import IntEnum, StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from evaluator.accounting.comparison import Accountant
from evaluator.errors import Problem
from evaluator.mechanisms.events import Adjacency, Event
from evaluator.mechanisms.scenario import SamplingRule

EVALUATOR_QUEUE = "evaluator"  # steps that need a CPU only
SCORING_QUEUE = "evaluator.scoring"  # steps that run the model: GPU workers listen here
INTAKE_QUEUE = "portal.intake"  # reports and progress, back to the site

STEP_TASK = "evaluator.run_step"  # (job)
REPORT_TASK = "portal.receive_report"  # (step report)
PROGRESS_TASK = "portal.receive_progress"  # (progress)

SERVER = -1  # the server's id in the communication log


def evaluator_version() -> str:
    """Return the version that every score is stamped with."""
    try:
        return version("pfl-docvqa-benchmark")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+source"


class Message(BaseModel):
    """Strict, immutable base of everything that crosses a process boundary."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Step(StrEnum):
    """The steps of one evaluation, in the order in which they run."""

    VALIDATE = "validate"
    COMMUNICATION = "communication"
    ACCOUNTING = "accounting"
    SCORING = "scoring"


class ArtifactKind(StrEnum):
    CHECKPOINT = "checkpoint"
    COMMUNICATION_LOG = "communication_log"
    TRAINING_RECORD = "training_record"
    TRAINING_ANNEX = "training_annex"  # for the organizers only
    PRIVACY_PROOF = "privacy_proof"


# What each step reads of a run: a worker is sent the addresses of these files and of no others.
STEP_ARTIFACTS: dict[Step, list[ArtifactKind]] = {
    Step.VALIDATE: [ArtifactKind.CHECKPOINT],
    Step.COMMUNICATION: [ArtifactKind.COMMUNICATION_LOG, ArtifactKind.CHECKPOINT],
    Step.ACCOUNTING: [
        ArtifactKind.TRAINING_RECORD,
        ArtifactKind.TRAINING_ANNEX,
        ArtifactKind.CHECKPOINT,
        ArtifactKind.COMMUNICATION_LOG,
    ],
    Step.SCORING: [ArtifactKind.CHECKPOINT],
}


class ArtifactRef(Message):
    """Where a worker fetches an artifact, and what it must turn out to be."""

    kind: ArtifactKind
    url: str
    size_bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class PrivacyRules(Message):
    """What a track 2 run is accounted by.

    Attributes:
        epsilon: The budget that the recomputed ε must not exceed.
        delta: δ, fixed by the track.
        accountant: Whose ε decides; the other's is shown beside it.
        sampling_rule: Whose ε decides; the other rule's is shown beside it.
        adjacency: That records must declare.
    """

    epsilon: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)
    accountant: Accountant = Accountant.PLD
    sampling_rule: SamplingRule = SamplingRule.TWO_STAGE
    adjacency: Adjacency = Adjacency.ADD_REMOVE


class TrackRules(Message):
    """The rules that the evaluator applies, as they stood when the run was submitted.

    Attributes:
        reference: Name of the reference architecture and base weights, a folder on the worker.
        trainable: Patterns, as a shell's, of the names of tensors that may differ from the base weights; where there
            is none, all may.
        clients: Number of clients; their ids are 0 … clients-1.
        max_rounds: Longest training run that the track allows.
    """

    reference: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    test_set: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    trainable: list[str] = []
    clients: int = Field(gt=0)
    max_rounds: int = Field(default=10_000, gt=0)
    privacy: PrivacyRules | None = None

    def steps(self) -> list[Step]:
        """The steps that a run under these rules goes through, in order."""
        return [step for step in Step if step is not Step.ACCOUNTING or self.privacy is not None]


class EvaluationJob(Message):
    """One step of one attempt at one run. A worker that gets it twice does the same thing twice."""

    evaluation: UUID
    attempt: int = Field(ge=1)
    step: Step
    rules: TrackRules
    artifacts: list[ArtifactRef]

    def artifact(self, kind: ArtifactKind) -> ArtifactRef | None:
        return next((ref for ref in self.artifacts if ref.kind is kind), None)


class TrustLevel(IntEnum):
    """How far a run's record has been checked against what really happened."""

    RECOMPUTED = 0  # every number follows from the files

    @property
    def label(self) -> str:
        """The level's number and name, such as `L0 recomputed`."""
        return f"L{self.value} {self.name.lower()}"


class ValidationResult(Message):
    """What a checkpoint holds.

    Attributes:
        changed: Names of the tensors that differ from the base weights, in the order of the base weights' file.
    """

    kind: Literal["validate"] = "validate"
    tensors: int
    parameters: int
    sha256: str
    changed: list[str]


class CheckStatus(StrEnum):
    """`failed` rejects the run; `flagged` asks the reviewers to look; the rest is good or can't be said."""

    PASSED = "passed"
    FLAGGED = "flagged"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


class Check(Message):
    """One named comparison of what a run says with what it should be.

    Attributes:
        id: Such as `C4`; `evaluator.checks` says what each means and can't detect.
        where: File and place, where there is one.
    """

    id: str = Field(pattern=r"^[A-Z][0-9]{1,2}$")
    status: CheckStatus
    expected: str = ""
    found: str = ""
    where: str = ""


class CommunicationResult(Message):
    """Totals of the communication log, in bytes, and what speaks for and against them.

    Attributes:
        bytes_needed: The fewest bytes that could have carried what changed between the base weights and the checkpoint.
    """

    kind: Literal["communication"] = "communication"
    rounds: int
    messages: int
    bytes_total: int
    bytes_down: int
    bytes_up: int
    bytes_needed: int
    checks: list[Check]


class Epsilon(Message):
    """ε under one rule by one accountant; None where no finite ε holds.

    Attributes:
        margin: The budget minus ε.
        decides: Whether the track's rules compare this ε with the budget.
    """

    sampling_rule: SamplingRule
    accountant: Accountant
    epsilon: FiniteFloat | None
    within_budget: bool
    margin: FiniteFloat | None
    decides: bool = False


class AccountingResult(Message):
    """ε of the run, recomputed from its record, at the track's δ.

    Attributes:
        epsilon: By the track's accountant under its sampling rule: what is compared with the budget.
        epsilons: By every accountant under every rule.
        epsilon_claimed: As the record claims.
        accountant: Name, version and precision of the deciding accountant.
        events: The run's releases under the two-stage rule, from which a team's joint ε is composed.
        run_token: As the record carries it.
        public_key: The key that signed the record, in hexadecimal.
        tuning_runs: Training runs on the private data before this one, as the record declares them.
    """

    kind: Literal["accounting"] = "accounting"
    epsilon: float
    epsilons: list[Epsilon]
    epsilon_claimed: float
    delta: float
    rounds: int
    accountant: str
    within_budget: bool
    events: list[Event]
    run_token: str | None
    public_key: str
    tuning_runs: int = Field(default=0, ge=0)
    checks: list[Check]


class ScoringResult(Message):
    """Means over the test set, each in [0, 1]; no question's own score leaves the worker.

    Attributes:
        precision: The numbers that the model computed with, such as `float32`.
    """

    kind: Literal["scoring"] = "scoring"
    anls: float
    accuracy: float
    questions: int
    precision: str = "float32"
    test_set_sha256: str
    checkpoint_sha256: str


class GroupScore(Message):
    """Means over some of the test set's questions, with the 95 % bootstrap interval of the mean ANLS.

    Attributes:
        by: What the questions are grouped by: all of them, what is asked for, or whether their page's provider was
            among the training providers.
        group: Such as `total_amount`, or `seen` and `unseen`.
    """

    by: Literal["all", "key", "provider"]
    group: str
    questions: int
    anls: float
    anls_low: float
    anls_high: float
    accuracy: float


class ScoringDetail(Message):
    """What the organizers alone are told of a score.

    Attributes:
        pages_without_image: Pages whose image is missing or can't be read; the model saw gray in its place.
    """

    groups: list[GroupScore] = []
    pages_without_image: int = 0


StepResult = Annotated[
    ValidationResult | CommunicationResult | AccountingResult | ScoringResult, Field(discriminator="kind")
]


class Outcome(StrEnum):
    """How a step ended. `rejected` is the participant's to mend, `failed` is ours."""

    PASSED = "passed"
    REJECTED = "rejected"
    FAILED = "failed"


class Provenance(Message):
    """Where a result comes from; shown beside it."""

    worker: str
    evaluator_version: str
    libraries: dict[str, str] = {}
    hardware: str = ""
    started_at: datetime
    finished_at: datetime


class StepReport(Message):
    """How one step of one attempt ended. `detail` and `operator_trace` are never shown to participants."""

    evaluation: UUID
    attempt: int
    step: Step
    outcome: Outcome
    problems: list[Problem] = []
    result: StepResult | None = None
    detail: ScoringDetail | None = None
    provenance: Provenance
    operator_trace: str = ""


class Progress(Message):
    """A heartbeat: `done` of `total` units of the step are finished; a total of 0 is not known yet.

    `remaining_s` is the worker's estimate of the seconds left, None until it has seen some units finish.
    """

    evaluation: UUID
    attempt: int
    step: Step
    done: int = 0
    total: int = 0
    remaining_s: FiniteFloat | None = None
    worker: str = ""
