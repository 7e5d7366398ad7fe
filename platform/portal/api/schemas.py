"""What goes in and out of the API. Sizes are in bytes, hashes are lower-case hex, times are ISO 8601 in UTC."""

from datetime import datetime
from uuid import UUID

from ninja import Field, Schema
from pydantic import ConfigDict

from evaluator.contracts import Check
from evaluator.errors import Problem

SHA256 = r"^[0-9a-f]{64}$"


class Request(Schema):
    """Base of what clients send: a misspelt field is rejected, not ignored."""

    model_config = ConfigDict(extra="forbid")


class NewSubmission(Request):
    track: str
    title: str
    description: str = ""
    code_url: str = ""
    paper_url: str = ""


class NewRun(Request):
    budget: float | None = None


class NewUpload(Request):
    submission: UUID
    run: UUID | None = None
    kind: str
    filename: str = Field(min_length=1, max_length=1000)
    size_bytes: int
    sha256: str


class PartSchema(Request):
    number: int
    size_bytes: int
    sha256: str = Field(pattern=SHA256)


class Parts(Request):
    parts: list[PartSchema] = Field(max_length=1000)


class NewRunToken(Request):
    track: str


class NewKey(Request):
    public_key: str
    name: str = ""


class Problems(Schema):
    problems: list[Problem]


class UploadSchema(Schema):
    id: UUID
    part_size_bytes: int
    parts_total: int
    state: str


class PartUrlSchema(Schema):
    """PUT the part there, with these headers; the address is good for this one part and expires soon."""

    number: int
    url: str
    headers: dict[str, str]


class PartUrls(Schema):
    urls: list[PartUrlSchema]


class ArtifactSchema(Schema):
    artifact: UUID
    kind: str
    size_bytes: int
    sha256: str


class RunSchema(Schema):
    id: UUID
    budget: float | None


class RunStatusSchema(RunSchema):
    """`step`, `done`, `total` and `queue_position` (from 1) are of the current attempt; `attempt` is 0 before any.

    `remaining_s` is the worker's estimate of the seconds left of the step, null where there is none.

    Of `tensors`, those in `changed_tensors` differ from the base weights; both are null before the validation.
    `epsilon` is the one that decides; `joint_epsilon` is that of `joint_runs` trainings of the team together.
    """

    state: str
    step: str | None
    done: int
    total: int
    remaining_s: float | None
    queue_position: int | None
    heartbeat_at: datetime | None
    attempt: int
    anls: float | None
    accuracy: float | None
    bytes_total: int | None
    bytes_needed: int | None
    epsilon: float | None
    epsilon_two_stage: float | None
    epsilon_product: float | None
    epsilon_rdp: float | None
    accountant: str
    joint_epsilon: float | None
    joint_runs: int | None
    trust_level: int | None
    tensors: int | None
    changed_tensors: list[str] | None
    checks: list[Check]
    problems: list[Problem]


class QuotaSchema(Schema):
    """Slots of any 24 hours; `next_slot` is null when one is free now."""

    limit: int
    used: int
    left: int
    next_slot: datetime | None


class SubmissionSummary(Schema):
    id: UUID
    url: str
    track: str
    title: str
    state: str
    submitted_at: datetime | None
    runs: list[RunSchema]


class SubmissionSchema(SubmissionSummary):
    quota: QuotaSchema
    runs: list[RunStatusSchema]  # type: ignore[assignment]


class RunTokenSchema(Schema):
    """`run` is the run whose training record carries the token; null as long as none was accepted with it."""

    token: str
    track: str
    issued_at: datetime
    run: UUID | None


class KeySchema(Schema):
    """A key that may sign the team's training records. `public_key` is Ed25519's, raw, in hexadecimal."""

    public_key: str
    name: str
    created_at: datetime


class TrackSchema(Schema):
    """`closed_because` is empty while the track takes submissions.

    `trainable` are patterns, as a shell's, of the names of tensors that may differ from the base weights, `reference`;
    where there is none, all may.
    """

    slug: str
    name: str
    summary: str
    ranking: str
    budgets: list[float | None]
    run_artifacts: list[str]
    submission_artifacts: list[str]
    reference: str
    trainable: list[str]
    clients: int
    max_rounds: int
    max_checkpoint_bytes: int
    anls_threshold: float
    delta: float
    sampling_rule: str
    accountant: str
    adjacency: str
    submissions_per_day: int
    opens_at: datetime | None
    closes_at: datetime | None
    closed_because: str


class Me(Schema):
    email: str
    name: str
    team: str | None
