"""The messages between the site and the workers.

The site sends an `EvaluationJob` for one step of one attempt; a worker answers with `Progress` while it works
and ends with one `WorkerReport`, both signed with the secret that the job carries. All of them travel as JSON. Messages
carry no other secret of the site, and nothing of the test set but aggregate scores.
"""

from datetime import datetime
from enum import IntEnum, StrEnum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Base64Bytes, BeforeValidator, Field, FiniteFloat, model_validator

from evaluator.accounting.accountant import Accountant
from evaluator.accounting.bounds import MembershipBounds
from evaluator.errors import Problem
from evaluator.mechanisms.events import Event
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.units import Adjacency
from evaluator.messages.base import Message
from evaluator.messages.leakage import LeakageDetail, LeakageResult

# The queues of the steps that need only a CPU, of the steps that run the model, to which GPU workers listen, and of
# reports and progress, back to the site.
EVALUATOR_QUEUE = "evaluator"
SCORING_QUEUE = "evaluator.scoring"
INTAKE_QUEUE = "docvqa_site.intake"

STEP_TASK = "evaluator.run_step"  # (job)
REPORT_TASK = "docvqa_site.receive_report"  # (step report)
PROGRESS_TASK = "docvqa_site.receive_progress"  # (progress)

# The server's id in the communication log.
SERVER = -1


@cache
def evaluator_version() -> str:
    """Return the version that every score is stamped with."""
    try:
        return version("pfl-docvqa-benchmark")
    except PackageNotFoundError:
        # The code runs from a source tree that was never installed.
        return "0+source"


class Step(StrEnum):
    """The steps of one evaluation, in the order in which they run.

    Leakage is measured after the score is out, in an attempt of its own: neither score nor rank waits for it.
    """

    VALIDATE = "validate"
    COMMUNICATION = "communication"
    ACCOUNTING = "accounting"
    SCORING = "scoring"
    LEAKAGE = "leakage"


# The steps that run the model, on data that nobody but the organizers may read.
MODEL_STEPS = frozenset({Step.SCORING, Step.LEAKAGE})


class ArtifactKind(StrEnum):
    """The kinds of files that a submission has. Only the organizers read a training annex.

    Settings, method file and the opening of a round are for examinations of a run, of which no step of its evaluation
    is one. Only the organizers read an opening, either. Transcript, messages and codec file are those of a run whose
    bytes are counted; see `evaluator.communication.folding`.
    """

    CHECKPOINT = "checkpoint"
    COMMUNICATION_LOG = "communication_log"
    TRAINING_RECORD = "training_record"
    TRAINING_ANNEX = "training_annex"
    SETTINGS = "settings"
    METHOD_FILE = "method_file"
    ROUND_OPENING = "round_opening"
    PRIVACY_PROOF = "privacy_proof"
    TRANSCRIPT = "transcript"
    MESSAGES = "messages"
    CODEC_FILE = "codec_file"


# What each step reads of a run: a worker is sent the addresses of these files and of no others.
STEP_ARTIFACTS: dict[Step, list[ArtifactKind]] = {
    Step.VALIDATE: [ArtifactKind.CHECKPOINT],
    Step.COMMUNICATION: [
        ArtifactKind.COMMUNICATION_LOG,
        ArtifactKind.CHECKPOINT,
        ArtifactKind.TRANSCRIPT,
        ArtifactKind.MESSAGES,
        ArtifactKind.CODEC_FILE,
    ],
    Step.ACCOUNTING: [
        ArtifactKind.TRAINING_RECORD,
        ArtifactKind.TRAINING_ANNEX,
        ArtifactKind.CHECKPOINT,
        ArtifactKind.COMMUNICATION_LOG,
    ],
    Step.SCORING: [ArtifactKind.CHECKPOINT],
    Step.LEAKAGE: [ArtifactKind.CHECKPOINT],
}


# The files of `STEP_ARTIFACTS` that a run may lack.
OPTIONAL_ARTIFACTS = frozenset({ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES, ArtifactKind.CODEC_FILE})

# The name of a folder on the workers.
# Also of what a worker has; see `evaluator.messages.inventories`.
FOLDER_NAME = r"^[a-z0-9][a-z0-9._-]{0,63}$"
FolderName = Annotated[str, Field(pattern=FOLDER_NAME)]


class ArtifactRef(Message):
    """Where a worker fetches an artifact, and what it must turn out to be.

    Whoever uploads a file announces its SHA-256, which may be that of somebody else's file. So `upload` names what was
    uploaded, and a copy in a cache is of that upload and no other.
    """

    kind: ArtifactKind
    upload: UUID
    url: str
    size_bytes: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class PrivacyRules(Message):
    """The rules by which a run of track 2 is accounted.

    Attributes:
        epsilon: The budget that the recomputed ε must not exceed.
        delta: δ, fixed by the track.
        accountant: The accountant whose ε decides; that of the other is shown beside it.
        sampling_rule: The amplification rule whose ε decides; that of the other is shown beside it.
        adjacency: The adjacency that records must declare.
    """

    epsilon: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)
    accountant: Accountant = Accountant.PLD
    sampling_rule: SamplingRule = SamplingRule.TWO_STAGE
    adjacency: Adjacency = Adjacency.ADD_REMOVE


class LeakageSet(Message):
    """Data with members and nonmembers of the training, by which leakage is measured: a data folder and its split."""

    folder: FolderName
    split: FolderName


# How many rounds a replay, or the folding of a large run, covers beside the last one: by default, and at most.
DRAWN_ROUNDS, MAX_DRAWN = 3, 60


class FirstDownload(StrEnum):
    """Whether what a client receives in the first round counts: the model with which everybody starts.

    The competition's paper leaves the initial transmission out of the cost.
    """

    FREE = "free"
    COUNTED = "counted"


class TrackRules(Message):
    """The rules that the evaluator applies, as they were when the run was submitted.

    Attributes:
        reference: Name of the reference architecture and base weights, a folder on the worker.
        trainable: Shell-style patterns of the names of tensors that may differ from the base weights; all may where
            the list is empty.
        clients: The number of clients; their ids are 0 … clients-1.
        max_rounds: The longest training run that the track allows.
        providers_per_client: How many protected providers each client has, in the order of their ids; empty where the
            organizers don't say.
        data_sha256: The hash of the data manifest that annexes must state; empty where the organizers don't say. It is
            not for the public: whoever can guess the data could compare.
        drawn_rounds: How many rounds a challenge draws for a replay, and at least for folding, besides the last one.
        first_download: Whether the downloads of the first round count.
        leakage_set: The track's, where the step measures leakage; no rank depends on it.
    """

    reference: FolderName
    test_set: FolderName
    trainable: list[str] = []
    clients: int = Field(gt=0)
    max_rounds: int = Field(default=10_000, gt=0)
    providers_per_client: list[Annotated[int, Field(ge=0)]] = []
    data_sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    drawn_rounds: int = Field(default=DRAWN_ROUNDS, ge=0, le=MAX_DRAWN)
    first_download: FirstDownload = FirstDownload.FREE
    privacy: PrivacyRules | None = None
    leakage_set: LeakageSet | None = None

    def steps(self) -> list[Step]:
        """Return the steps that a run under these rules goes through until it has its score, in order."""
        left_out = {Step.LEAKAGE} if self.privacy else {Step.LEAKAGE, Step.ACCOUNTING}
        return [step for step in Step if step not in left_out]


class WeightSample(Message):
    """What training changed at secret places of the weights; see `evaluator.checkpoints.weight_sample`.

    It is for organizers only, since it would show where the places are.

    Attributes:
        key_id: Which key they follow from; samples under different keys can't be compared.
        per_tensor: How many of them are in each tensor.
        changes: float32 in base64, tensor by tensor.
    """

    key_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    per_tensor: int = Field(ge=1, le=2048)
    changes: Base64Bytes = Field(max_length=16_384, repr=False)

    @model_validator(mode="after")
    def _has_whole_rows(self) -> Self:
        if len(self.changes) % (4 * self.per_tensor):
            raise ValueError("the changes are not those of whole tensors")
        return self


class JobHead(Message):
    """What a worker reports on, which it can read in a job of any version of the site.

    Attributes:
        secret: What progress and the report are signed with; it is valid for this step of this attempt.
    """

    evaluation: UUID
    attempt: int = Field(ge=1)
    step: Step
    secret: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)

    @classmethod
    def of(cls, message: object) -> "JobHead":
        """Return the head of a job, whatever else is in it. Raises `ValidationError` if it has none."""
        known = message if isinstance(message, dict) else {}
        return JobHead.model_validate({name: known.get(name) for name in JobHead.model_fields})


class EvaluationJob(JobHead):
    """One step of one attempt at one run. A worker that gets it twice does the same thing twice.

    Attributes:
        challenge: What the site drew when it had the training record, and the annex must answer, or the index of a
            large run's messages; None for any other run.
        sample_key: From which the places of the weight sample follow, where the step takes one; no participant may know
            it.
        is_rehearsal: Whether the worker takes its own base weights and a log without messages in place of a team's
            files: how the organizers of a track try it before teams see it.
    """

    rules: TrackRules
    artifacts: list[ArtifactRef]
    challenge: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    sample_key: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$", repr=False)
    is_rehearsal: bool = False

    @model_validator(mode="after")
    def _has_what_its_step_needs(self) -> Self:
        if self.step is Step.ACCOUNTING and self.challenge is None:
            raise ValueError("a record is accounted with the challenge that the site drew for it")
        if self.step is Step.LEAKAGE and self.rules.leakage_set is None:
            raise ValueError("leakage is measured by a leakage set")
        return self

    def artifact(self, kind: ArtifactKind) -> ArtifactRef | None:
        """Return the address of an artifact; None if the step doesn't read it."""
        return next((ref for ref in self.artifacts if ref.kind is kind), None)


class TrustLevel(IntEnum):
    """How far a run's record has been checked against what really happened.

    Each level has code that earns it: the evaluation the first one, an examination by the organizers each further one.
    """

    # Every number follows from the files.
    RECOMPUTED = 0
    # The method's code kept what it claims, on synthetic data.
    CONFORMING = 1
    # The last round and others, drawn after the record, were trained again and were what the record says.
    REPLAYED = 2
    # A whole training of the attached files had the same score.
    RERUN = 3

    @property
    def label(self) -> str:
        """The level's number and name, such as `L0 recomputed`."""
        return f"L{self.value} {self.name.lower()}"

    @property
    def examination(self) -> str:
        """What earns the level, with its number, such as `replay (L2)`."""
        names = ("evaluation", "conformance examination", "replay", "rerun")
        return f"{names[self]} (L{self.value})"


class ValidationResult(Message):
    """The tensors of a checkpoint.

    Attributes:
        changed: The names of the tensors that differ from the base weights, in the order of the base weights' file.
    """

    kind: Literal["validate"] = "validate"
    tensors: int
    parameters: int
    sha256: str
    changed: list[str]


class CheckStatus(StrEnum):
    """How a check ended: `failed` rejects the run, `flagged` asks the reviewers to look at it.

    `no_power` found nothing, and would have found nothing that matters in a run of these numbers.
    """

    PASSED = "passed"
    NO_POWER = "no_power"
    FLAGGED = "flagged"
    FAILED = "failed"
    NOT_APPLICABLE = "not_applicable"


# The ids of checks in results that were stored while checks had numbers.
NUMBERED_CHECKS = {
    "C1": "record.budget",
    "C2": "record.rounds",
    "C3": "record.models",
    "C4": "record.bytes",
    "C5": "record.clients",
    "C6": "record.providers",
    "C8": "record.noise_size",
    "C9": "record.noise_reuse",
    "C10": "record.tensors",
    "C14": "team.declared_runs",
    "C15": "team.joint_epsilon",
    "C16": "record.checkpoint",
    "C17": "record.annex",
    "C18": "record.base_weights",
    "C19": "record.track_rules",
    "C20": "record.other_uses",
    "C21": "record.linkage",
    "C22": "record.noise_shape",
    "C23": "record.challenge",
    "C24": "record.data",
    "P1": "log.directions",
    "P2": "log.rounds",
    "P3": "log.message_sizes",
    "P4": "log.least_bytes",
}


def _current_id(name: object) -> object:
    return NUMBERED_CHECKS.get(name, name) if isinstance(name, str) else name


class Check(Message):
    """One named comparison of what a run says with what it should be.

    Attributes:
        id: The check's name, such as `record.bytes`; `evaluator.records.check_table` lists what each means.
        where: The file and the place in it, where there is one.
    """

    id: Annotated[str, BeforeValidator(_current_id)] = Field(pattern=r"^[a-z]+\.[a-z_]+$", max_length=40)
    status: CheckStatus
    expected: str = ""
    found: str = ""
    where: str = ""


class CommunicationResult(Message):
    """The bytes of a run, and the checks of its log.

    Attributes:
        bytes_total: The bytes that rank the run, by the track's rule for first downloads, with `decoder_bytes`.
        bytes_down: The bytes of all messages to the clients in the log, as `bytes_up` of those to the server.
        bytes_needed: The fewest bytes that could have carried what changed between the base weights and the checkpoint.
        bytes_sent: The bytes of all messages in the log; None in results from before there was a rule.
        first_download_bytes: What the downloads of the first round take, logged or not; None as above.
        decoder_bytes: The size of the team's own codec file.
        counting: Whether the checkpoint was computed from the messages, or the log is the participant's word.
        not_counted_because: Why not, in words; empty for a run without a transcript.
        rounds_folded: How many rounds were computed from their messages.
    """

    kind: Literal["communication"] = "communication"
    rounds: int
    messages: int
    bytes_total: int
    bytes_down: int
    bytes_up: int
    bytes_needed: int
    bytes_sent: int | None = None
    first_download_bytes: int | None = None
    decoder_bytes: int = 0
    counting: Literal["counted", "declared"] = "declared"
    not_counted_because: str = ""
    rounds_folded: int = 0
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
        epsilon: ε by the track's accountant under its amplification rule, which is compared with the budget.
        epsilons: ε by every accountant under every rule.
        epsilon_claimed: The ε that the record claims.
        accountant: The name, version and precision of the deciding accountant.
        membership: What the deciding rule's composition allows an attack at most.
        events: The run's releases under the two-stage rule, from which a team's joint ε is composed.
        run_token: The run token that the record carries.
        public_key: The key that signed the record, in hexadecimal.
        tuning_runs: How many training runs on the private data before this one the record declares.
        clip_norms: The smallest and the largest clip norm of a round; None from a worker of an earlier version.
        noise: Who adds the noise, and what hides the updates; None from a worker of an earlier version.
    """

    kind: Literal["accounting"] = "accounting"
    epsilon: float
    epsilons: list[Epsilon]
    epsilon_claimed: float
    delta: float
    rounds: int
    accountant: str
    within_budget: bool
    membership: MembershipBounds | None = None
    events: list[Event]
    run_token: str | None
    public_key: str
    tuning_runs: int = Field(default=0, ge=0)
    clip_norms: tuple[float, float] | None = None
    noise: Noise | None = None
    checks: list[Check]


class SplitIdentity(Message):
    """The identity of the split of a test set into a public and a private part; it says nothing of a question's side.

    Attributes:
        private_fraction: About which part of the questions is private.
    """

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    private_fraction: float = Field(gt=0, lt=1)


class ScoringResult(Message):
    """Means over the test set, each in [0, 1]; no question's own score leaves the worker.

    Of a test set that is split all of them are over its public part: those over the private part, and over the whole,
    are in the step's `ScoringDetail`, which only the organizers see.

    Attributes:
        anls_low: Where the 95% interval of the mean ANLS begins, by a bootstrap over providers, as `anls_high` says
            where it ends; see `evaluator.scoring.groups`.
        precision: The numbers that the model computed with, such as `float32`.
    """

    kind: Literal["scoring"] = "scoring"
    anls: float
    anls_low: float | None = None
    anls_high: float | None = None
    accuracy: float
    questions: int
    precision: str = "float32"
    test_set_sha256: str
    split: SplitIdentity | None = None
    checkpoint_sha256: str


# A part of a test set; empty for the whole of it.
TestSetPart = Literal["", "public", "private"]
# The name of the group of questions whose key is empty or rare.
OTHER_KEY = "other"


class GroupScore(Message):
    """Means over some of the test set's questions, with the 95% bootstrap interval of the mean ANLS.

    Attributes:
        by: What the questions are grouped by: nothing, the part of the test set that they are in, their key, or whether
            their page's provider was among the training providers.
        group: The group's name, such as `public` and `private`, `total_amount`, or `seen` and `unseen`.
        part: The part of a split test set in which alone the group's questions are; empty where they may be in any.
    """

    by: Literal["all", "part", "key", "provider"]
    group: str
    part: TestSetPart = ""
    questions: int
    anls: float
    anls_low: float
    anls_high: float
    accuracy: float


class ScoringDetail(Message):
    """The detail of a score that only the organizers see.

    Attributes:
        pages_without_image: Pages whose image is missing or can't be read; the model saw gray in its place.
    """

    groups: list[GroupScore] = []
    pages_without_image: int = 0

    def part(self, name: Literal["public", "private"]) -> GroupScore | None:
        """Return the score on a part of a test set that is split; None where it isn't."""
        return next((one for one in self.groups if (one.by, one.group) == ("part", name)), None)


# How many draws of providers, and the value that stands for a mean of 1.
DRAWS = 1_000
FULL_MEAN = 2**16 - 1


class DrawnMeans(Message):
    """The mean ANLS over each of `DRAWS` draws of providers, the same draws in every evaluation on a test set.

    The differences of two runs' means are a bootstrap of the difference of their scores; see
    `evaluator.scoring.paired_draws`. The site keeps them to itself: they say more of providers than a score does.

    Attributes:
        part: The part of a split test set from which is drawn; empty for the whole of one that isn't split.
        clusters: How many providers there are, with the documents that name none.
        draws_sha256: What was drawn, with the names and sizes of all providers; means of other draws can't be compared.
        means: uint16 in base64, in units of 1 / `FULL_MEAN`, so that each number is a mean in [0, 1].
    """

    part: TestSetPart = ""
    clusters: int = Field(ge=2, lt=2**31)
    draws_sha256: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    means: Base64Bytes = Field(max_length=3 * DRAWS, repr=False)

    @model_validator(mode="after")
    def _has_all_draws(self) -> Self:
        if len(self.means) != 2 * DRAWS:
            raise ValueError(f"the means are not those of {DRAWS} draws")
        return self


StepResult = Annotated[
    ValidationResult | CommunicationResult | AccountingResult | ScoringResult | LeakageResult,
    Field(discriminator="kind"),
]
StepDetail = ScoringDetail | LeakageDetail


class Outcome(StrEnum):
    """How a step ended. The participant must fix a `rejected` one; a `failed` one is the platform's fault."""

    PASSED = "passed"
    REJECTED = "rejected"
    FAILED = "failed"


class Provenance(Message):
    """Where a result comes from, which is shown beside it.

    Attributes:
        sandbox: What the kernel enforced around the step.
    """

    worker: str
    evaluator_version: str
    libraries: dict[str, str] = {}
    hardware: str = ""
    sandbox: str = ""
    started_at: datetime
    finished_at: datetime


class WorkerReport(Message):
    """How one step of one attempt ended.

    `detail`, `sample`, `drawn_means` and `operator_trace` are never shown to participants.
    """

    evaluation: UUID
    attempt: int
    step: Step
    outcome: Outcome
    problems: list[Problem] = []
    result: StepResult | None = None
    detail: StepDetail | None = None
    sample: WeightSample | None = None
    # Of the public and of the private part, or of the whole.
    drawn_means: list[DrawnMeans] = Field(default=[], max_length=2)
    provenance: Provenance
    operator_trace: str = ""

    @property
    def scoring_detail(self) -> ScoringDetail | None:
        """The detail of a score; None of any other step."""
        return self.detail if isinstance(self.detail, ScoringDetail) else None


class Progress(Message):
    """A heartbeat: `done` of `total` units of the step are finished; a total of 0 means that it isn't known yet.

    `remaining_s` is the worker's estimate of the seconds left, None until it has seen some units finish.
    """

    evaluation: UUID
    attempt: int
    step: Step
    done: int = 0
    total: int = 0
    remaining_s: FiniteFloat | None = None
    worker: str = ""
