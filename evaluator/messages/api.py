"""The messages of the site's REST API, version 1, as the site and its clients exchange them in JSON.

The site's endpoints and `pfl`'s client use the same models, so a field has one name and one type everywhere.
Sizes are in bytes, hashes are lower-case hexadecimal, and times are ISO 8601 in UTC.
"""

import re
from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evaluator.accounting.accountant import Accountant
from evaluator.errors import Problem
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.units import Adjacency
from evaluator.messages.base import Message
from evaluator.messages.examinations import Report
from evaluator.messages.jobs import (
    DRAWN_ROUNDS,
    ArtifactKind,
    FirstDownload,
    PrivacyRules,
    Step,
    TrackRules,
    TrustLevel,
)
from evaluator.messages.rankings import RankingRule
from evaluator.messages.results import RunResults
from evaluator.messages.states import FINAL_STATES, ResultStatus, RunState, SubmissionState

SHA256 = r"^[0-9a-f]{64}$"
# PostgreSQL stores no null character, and UTF-8 has no half of a surrogate pair, which JSON may escape.
UNSTORABLE = re.compile("[\\0\ud800-\udfff]")


class Request(Message):
    """Base of what clients send: a misspelled field is rejected, not ignored, and so is text that can't be stored."""

    @field_validator("*")
    @classmethod
    def _is_storable(cls, value: object) -> object:
        if isinstance(value, str) and UNSTORABLE.search(value):
            raise ValueError("Text without null characters and halves of surrogate pairs is expected")
        return value


class Response(BaseModel):
    """Base of what the site sends: a client ignores fields that it doesn't know."""

    model_config = ConfigDict(frozen=True, from_attributes=True)


class Problems(Response):
    """The body of every response with an error status; it holds at least one problem.

    It is problem details as RFC 9457 defines them, sent as `application/problem+json`, which the coded problems extend.

    Attributes:
        title: What the status means.
        detail: What is wrong first of all.
    """

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str = ""
    problems: list[Problem] = Field(min_length=1)


class Account(Response):
    """The user whom the API token belongs to, and the name of their team."""

    email: str
    name: str
    orcid: str = ""
    orcid_verified: bool = False
    shows_orcid: bool = False
    team: str | None


class PhaseInfo(Response):
    """A period of a track. A submission belongs to the phase in which it was submitted.

    Attributes:
        starts_at: Null where it has no beginning, as is `ends_at` where it has no deadline.
        submissions_per_day: How many submissions a team may make in any 24 hours.
        results: Whether results are public at once, or for the team alone until the phase ends.
        allows_private: Whether a team may keep a submission private until it publishes it.
        anonymity: Whether a team may be listed under an anonymous name, and until when.
        examined_ranks: How many of the phase's first ranks, on each board, are final only once the run has the trust
            level `examined_level`.
        requires_counted: Whether runs whose bytes are declared have no rank, where bytes rank.
    """

    name: str
    starts_at: datetime | None
    ends_at: datetime | None
    submissions_per_day: int
    results: Literal["at_once", "after_end"]
    allows_private: bool
    anonymity: Literal["none", "until_named", "until_end"]
    examined_ranks: int = 0
    examined_level: TrustLevel = TrustLevel.RERUN
    requires_counted: bool = False


class TrackInfo(Response):
    """A track and its rules.

    Attributes:
        ranking: The kind of the track, and `rule` what it ranks runs by; the limits that the rule names are fields
            here, and the budget of each board.
        budgets: The ε of each board; a single null where ε plays no part.
        run_artifacts: The files that every run needs.
        optional_artifacts: The files that a run may have as well, for a higher trust level or to have its bytes
            counted.
        submission_artifacts: The files that the submission as a whole needs.
        reference: The name of the base weights.
        reference_sha256: The SHA-256 of their file; empty on a site that doesn't have them itself.
        trainable: Shell-style patterns of the names of the tensors that may differ from the base weights; all may
            where the list is empty.
        providers_per_client: How many providers of the training data each client has, which a training record must not
            exceed; empty where the organizers don't say.
        data_sha256: The hash of the training data's manifest, which annexes must state; empty without an account, since
            whoever can guess the data could compare, and where the organizers don't say.
        drawn_rounds: How many rounds a challenge draws for a replay, which covers the last one as well.
        first_download: Whether the bytes of a run include what its clients download in the first round.
        challenges_per_day: How many new training records a team may upload in any 24 hours; each gets a challenge.
        submission_license: The SPDX identifier of the license that teams accept when they submit; empty if none.
        requires_code: Whether a submission needs a description, and code: a link to a commit, or files of each run.
        unbound_level: The trust level that a run needs for a rank if no check ties its checkpoint to the recorded
            sums (`RunResults.unbound`); 0 if such a run ranks like any other.
        ranks_counted_alone: Whether runs whose bytes are declared get no rank, in the phase that runs now or next.
        phases: In the order of time; they don't overlap.
        closed_because: Why the track accepts no submissions now; empty while it does.
    """

    slug: str
    name: str
    summary: str
    ranking: str
    rule: RankingRule
    budgets: list[float | None]
    run_artifacts: list[ArtifactKind]
    optional_artifacts: list[ArtifactKind]
    submission_artifacts: list[ArtifactKind]
    reference: str
    reference_sha256: str = ""
    trainable: list[str]
    clients: int
    max_rounds: int
    providers_per_client: list[int]
    data_sha256: str = ""
    drawn_rounds: int = DRAWN_ROUNDS
    first_download: FirstDownload = FirstDownload.FREE
    max_checkpoint_bytes: int
    anls_threshold: float
    delta: float
    sampling_rule: SamplingRule
    accountant: Accountant
    adjacency: Adjacency
    challenges_per_day: int
    submission_license: str = ""
    requires_code: bool = False
    unbound_level: TrustLevel = TrustLevel.REPLAYED
    ranks_counted_alone: bool = False
    phases: list[PhaseInfo]
    closed_because: str

    def rules(self, budget: float | None) -> TrackRules:
        """Return the rules of a run at this budget, as workers apply them; the test set is secret."""
        privacy = None
        if budget is not None:
            privacy = PrivacyRules(
                epsilon=budget,
                delta=self.delta,
                accountant=self.accountant,
                sampling_rule=self.sampling_rule,
                adjacency=self.adjacency,
            )
        return TrackRules(
            reference=self.reference,
            test_set="secret",
            trainable=self.trainable,
            clients=self.clients,
            max_rounds=self.max_rounds,
            providers_per_client=self.providers_per_client,
            data_sha256=self.data_sha256,
            drawn_rounds=self.drawn_rounds,
            first_download=self.first_download,
            privacy=privacy,
        )


class NewRunToken(Request):
    """Request a token for one training run in a track.

    Attributes:
        training: A name of the training that the trainer draws at random. The site then gives it an unused token if
            there is one: the token that this training took before, or else the newest one that the account has
            requested and no training has taken. Empty: always a new token, which a training may take later.
    """

    track: str
    training: str = Field(default="", pattern=r"^([0-9a-f]{32})?$")


class IssuedRunToken(Response):
    """A token for one training run.

    Attributes:
        run: The run whose training record was accepted with it, else null. Practice runs don't count.
        challenged_at: When the challenge of its record was drawn, which spends it; null for an unused token. With a
            challenge and without a run, its challenge is unresolved.
        explanation: What the team says about an unresolved challenge, for the reviewers.
    """

    token: str
    track: str
    issued_at: datetime
    run: UUID | None
    challenged_at: datetime | None
    explanation: str

    @property
    def is_unresolved(self) -> bool:
        """Whether its challenge is unresolved."""
        return self.challenged_at is not None and self.run is None


class ExplainedChallenge(Request):
    """Explain an unresolved challenge to the reviewers of the team's later runs.

    Attributes:
        explanation: Plain text; an empty one removes the explanation.
    """

    explanation: str


class RunTokenPage(Response):
    """A part of the list of a team's run tokens, newest first; `count` is the number of all of them."""

    items: list[IssuedRunToken]
    count: int


class NewSigningKey(Request):
    """Register a key that may sign the team's training records."""

    public_key: str
    name: str = ""


class SigningKey(Response):
    """A key that may sign the team's training records. `public_key` is the raw Ed25519 key in hexadecimal."""

    public_key: str
    name: str
    created_at: datetime


class NewSubmission(Request):
    """Open a draft in a track.

    Attributes:
        keep_private: Whether only the team and the organizers see it, once submitted, until the team publishes it.
        anonymous: Whether the public reads a random name in place of the team's.
        practice: Whether it is for practice: never public, reviewed or ranked, and free to repeat a checkpoint.
    """

    track: str
    title: str
    description: str = ""
    code_url: str = ""
    paper_url: str = ""
    keep_private: bool = False
    anonymous: bool = False
    practice: bool = False


class ChangedText(Request):
    """Change the text of a submission; a field that is left out stays.

    Once it is submitted, the title, `keep_private`, `anonymous` and `practice` stay as well.

    Attributes:
        publishes_proof: Whether the team agrees that everybody can read its privacy proof, and the answers to the
            reviewers' checklist, while the proof is accepted.
    """

    title: str | None = None
    description: str | None = None
    code_url: str | None = None
    paper_url: str | None = None
    keep_private: bool | None = None
    anonymous: bool | None = None
    practice: bool | None = None
    publishes_proof: bool | None = None


class Submitting(Request):
    """Submit a draft.

    Attributes:
        license: The license that the team accepts, as in `TrackInfo.submission_license`.
    """

    license: str = ""


class Withdrawal(Request):
    """Withdraw a submission.

    Attributes:
        reason: Public for good, where the submission was; at most 300 characters, and may be empty.
    """

    reason: str = ""


class ProofRevision(Request):
    """Send the revised proof that was uploaded.

    Attributes:
        note: What changed, for the reviewers; at most 2,000 characters.
    """

    note: str


class NewRun(Request):
    """Add the run at a budget to a draft; the budget is null where ε plays no part."""

    budget: float | None = None


class RunSummary(Response):
    """A run of a submission and the ε of its board."""

    id: UUID
    budget: float | None


class ListedRun(RunSummary):
    """A run as the list of submissions shows it.

    Attributes:
        anls: Its score, of which `decimals` decimals are shown; null before it is scored.
        rank: Its rank on its board; null where it has none.
        ranked: How many runs have a rank there; 0 where this one has none.
        possible_ranks: The ranks that the uncertainty of scores allows, such as 2–3; empty where that is one.
        status: How far the result can be relied on; null before it is scored.
        bytes_total: The bytes of its communication; null before it is scored.
        unranked_because: Why the scored run has no rank; empty where it has one, and before.
    """

    state: RunState
    status: ResultStatus | None = None
    anls: float | None = None
    decimals: int = 4
    rank: int | None = None
    ranked: int = 0
    possible_ranks: str = ""
    bytes_total: int | None = None
    unranked_because: str = ""


class RunExamination(Response):
    """What an examination by the organizers found out about the run.

    Attributes:
        level: The trust level that the run has earned with it, if it passed and is the newest of its level.
        command: Its kind: conformance, replay or rerun.
        by: Who made it.
        summary: What was found, in words.
    """

    level: TrustLevel
    command: str
    passed: bool
    by: str
    at: datetime
    summary: str
    report: Report


class RunStatus(RunSummary):
    """A run, its results and the progress of its evaluation.

    Attributes:
        rank: Its rank on its board; null where it has none.
        ranked: How many runs have a rank there; 0 where this one has none.
        possible_ranks: The ranks that the uncertainty of scores allows, such as 2–3; empty where that is one.
        status: How far the result can be relied on; null before it is scored.
        unranked_because: Why the scored run has no rank; empty where it has one, and before.
        step: The current step of the current attempt; `done` of `total` units of it are finished.
        remaining_s: The worker's estimate of the seconds left of the step; null where there is none.
        queue_position: The run's position in the queue of the step, from 1; null unless it waits there.
        next_attempt_at: When the next attempt may begin after a fault of the platform; null if it may begin now.
        attempt: The number of the current attempt, from 1; 0 before the first one.
        tensors: How many tensors the checkpoint holds; null before its validation.
        changed_tensors: The names of those that differ from the base weights; null before the validation.
    """

    state: RunState
    status: ResultStatus | None = None
    rank: int | None = None
    ranked: int = 0
    possible_ranks: str = ""
    unranked_because: str = ""
    step: Step | None
    done: int
    total: int
    remaining_s: float | None
    queue_position: int | None
    next_attempt_at: datetime | None
    heartbeat_at: datetime | None
    attempt: int
    results: RunResults
    examinations: list[RunExamination] = []
    tensors: int | None
    changed_tensors: list[str] | None
    problems: list[Problem]

    @property
    def is_final(self) -> bool:
        """Whether the evaluation of the run has ended."""
        return self.state in FINAL_STATES


class QuotaStatus(Response):
    """The team's quota slots of the last 24 hours in a track; `next_slot` is null when a slot is free now.

    Of a practice submission they are the slots for practice.
    """

    limit: int
    used: int
    left: int
    next_slot: datetime | None


class Submission(Response):
    """Base of the two views of a submission.

    Attributes:
        url: The address of its page.
        phase: The phase in which it was submitted; null for a draft.
        published_at: Since when it is public, once a run has a score; null while it is private.
        anonymous: Whether the public reads an alias in place of the team's name.
        practice: Whether it is for practice, and never public, reviewed or ranked.
        license: The SPDX identifier of the license that the team accepted when it submitted; empty if there was none.
    """

    id: UUID
    url: str
    track: str
    title: str
    state: SubmissionState
    phase: str | None = None
    submitted_at: datetime | None
    published_at: datetime | None = None
    anonymous: bool = False
    practice: bool = False
    license: str = ""


class SubmissionSummary(Submission):
    """A submission as the team's list shows it."""

    runs: list[ListedRun]


class CheckpointStatus(Response):
    """What would keep the team from submitting a checkpoint to a track for a rank; no problems where nothing would."""

    problems: list[Problem]


class SubmissionPage(Response):
    """A part of the list of a team's submissions, newest first; `count` is the number of all of them."""

    items: list[SubmissionSummary]
    count: int


class SubmissionStatus(Submission):
    """A submission with its text and the status of each of its runs.

    Attributes:
        keep_private: Whether the team chose to publish it itself.
        alias: What the public reads in place of the team while it is anonymous.
        edited_at: When its text was last changed after it was submitted; null if it never was.
        refunded_at: When its quota slot was given back; null if it wasn't.
    """

    keep_private: bool = False
    alias: str = ""
    description: str = ""
    code_url: str = ""
    paper_url: str = ""
    publishes_proof: bool = False
    edited_at: datetime | None = None
    refunded_at: datetime | None = None
    quota: QuotaStatus
    runs: list[RunStatus]

    @property
    def is_final(self) -> bool:
        """Whether the evaluation of every run has ended."""
        return all(run.is_final for run in self.runs)
