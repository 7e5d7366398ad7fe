"""What `pfl submit` does: choose the files of each run, upload them, submit, and watch the evaluation.

The record of a private run goes first. The site then draws its challenge, from which the run's annex is made, and all
other files follow. So it does for the index of a run whose messages are too large to be attached as a whole: the
messages of the drawn rounds follow. Whatever was interrupted, the same command resumes it: a file that the site has
isn't sent again, and the same record or index gets the same challenge.
"""

import platform
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.messages.api import (
    ChangedText,
    IssuedRunToken,
    ListedRun,
    RunStatus,
    Submission,
    SubmissionStatus,
    TrackInfo,
)
from evaluator.messages.file_api import StoredArtifact
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import DRAWN_ROUNDS, OPTIONAL_ARTIFACTS, ArtifactKind
from evaluator.messages.states import ResultStatus, RunState, SubmissionState
from evaluator.records.annex import Annex
from evaluator.records.lines import RunLine
from evaluator.scoring.metrics import cut
from evaluator.worker.time_left import in_words
from starter_kit.reporting.rounding import rounded_up
from starter_kit.runs.answering import answer_challenge, remove_vectors, require_answerable
from starter_kit.runs.folder import FILES, OPENED_MESSAGES, OPENING, RunFolder, budget_of
from starter_kit.runs.opened_round import open_rounds
from starter_kit.runs.round_secret import remove_secret
from starter_kit.runs.run_token import token_problems
from starter_kit.site.client import SiteClient
from starter_kit.site.earlier_runs import earlier_records, unstated_runs
from starter_kit.site.uploading import FileProgress, upload_file

POLLING_PAUSE_S = 1.0

OnTransfer = Callable[[str, float, float], object]
"""Called with what is transferred, how many bytes of everything are done, and the size of everything."""

OnStored = Callable[[StoredArtifact], object]
"""Called with each file that the site has."""


@dataclass(frozen=True)
class PlannedRun:
    """One run and the files to upload for it.

    Attributes:
        budget: The ε of its board; None for the only board of a track where ε plays no part.
        files: The opening of rounds may still have to be made, from the challenge.
        public_key: The key that signed its record, where it has one.
        drawn_rounds: How many rounds a challenge draws for a replay, and at least of the messages, unless the site says
            another number with the challenge.
        line: The first line of its record, where it has one.
    """

    budget: float | None
    files: dict[ArtifactKind, Path]
    public_key: str | None = None
    drawn_rounds: int = DRAWN_ROUNDS
    line: RunLine | None = None

    @property
    def run_token(self) -> str | None:
        """The token in its record."""
        return self.line.run_token if self.line else None

    def answer(self, kind: ArtifactKind, challenge: str, drawn: int | None = None) -> None:
        """Make what the site's challenge for a record or an index asks for: the annex, or what opens rounds."""
        drawn = self.drawn_rounds if drawn is None else drawn
        folder = self.files[kind].parent
        if kind is ArtifactKind.TRANSCRIPT:
            if ArtifactKind.MESSAGES not in self.files:
                return
            # It loads torch, which other submissions don't wait for.
            from starter_kit.runs.opened_messages import open_messages

            if open_messages(folder, challenge, drawn):
                self.files[ArtifactKind.MESSAGES] = folder / OPENED_MESSAGES
            else:
                del self.files[ArtifactKind.MESSAGES]
            return
        answer_challenge(folder, challenge)
        if ArtifactKind.ROUND_OPENING in self.files:
            open_rounds(folder, challenge, drawn)


@dataclass(frozen=True)
class SubmissionPlan:
    """Everything that a submission uploads.

    Attributes:
        doubts: Why the track is probably not the one that the runs are for.
    """

    track: str
    runs: list[PlannedRun]
    proof: Path | None
    practice: bool = False
    requires_code: bool = False
    license: str = ""
    doubts: Sequence[Problem] = ()

    @property
    def examined_files(self) -> list[str]:
        """The names of the files that are sent for the organizers' examinations."""
        kinds = (ArtifactKind.SETTINGS, ArtifactKind.METHOD_FILE, ArtifactKind.ROUND_OPENING)
        return sorted({run.files[kind].name for run in self.runs for kind in kinds if kind in run.files})

    @property
    def run_tokens(self) -> set[str]:
        """The tokens in the runs' records."""
        return {run.run_token for run in self.runs if run.run_token}

    @property
    def size_bytes(self) -> int:
        """The size of all files that there are so far."""
        files = [path for run in self.runs for path in run.files.values() if path.exists()]
        return sum(path.stat().st_size for path in [*files, *([self.proof] if self.proof else [])])


def prepare(
    client: SiteClient,
    track: str,
    folders: Sequence[Path],
    proof: Path | None,
    *,
    with_code: bool = True,
    practice: bool = False,
    accepted_license: str = "",
) -> SubmissionPlan:
    """Plan what to upload by the track's own rules, and check it before anything is sent.

    Args:
        with_code: Whether to attach each run's settings and method file, for the organizers' examinations.
        practice: Whether the submission is for practice, which needs neither proof nor license.
        accepted_license: The license of submissions that the team accepts.

    Raises:
        ProblemError: The track doesn't exist, a file is missing, a record is invalid or carries no run token, a run
            can't answer a challenge, two runs are for the same board, a checkpoint was submitted before, or the team's
            quota is used up.
    """
    for path in folders:
        if not path.is_dir():
            raise ProblemError.of(
                ErrorCode.ARTIFACT_MISSING,
                str(path),
                "a run folder",
                "no such folder",
                message="There is no such run folder.",
                next_step="Check the path: name the folder that `pfl train --out` wrote.",
            )
    if proof and not proof.is_file():
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            f"--proof {proof}",
            "the privacy proof",
            "no such file",
            next_step="Check the path of the proof.",
        )
    rules = client.track(track)
    _require_slot(client, track, practice=practice)
    runs: dict[float | None, PlannedRun] = {}
    for path in folders:
        run = _planned_run(path, rules, with_code=with_code)
        if run.budget in runs:
            raise ProblemError.of(
                ErrorCode.SUBMISSION_BUDGET,
                where=str(path),
                expected=f"one run for {f'ε = {run.budget:g}' if run.budget else 'this track'}",
                found="a second run",
            )
        runs[run.budget] = run
    if ArtifactKind.PRIVACY_PROOF in rules.submission_artifacts and not (proof or practice):
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            "--proof",
            "the privacy proof, which this track requires",
            "no --proof",
            next_step="Add --proof FILE: a PDF, Markdown or notebook file. `pfl describe` drafts one. A trial with "
            "--practice needs none.",
        )
    required_license = "" if practice else rules.submission_license
    if accepted_license != required_license != "":
        raise ProblemError.of(
            ErrorCode.SUBMISSION_LICENSE,
            "--license",
            required_license,
            accepted_license or "no --license",
            next_step=f"If your team agrees to publish under this license, add --license {required_license}. "
            "A trial with --practice needs none.",
        )
    if not practice:
        _require_new(client, track, runs.values())
    needs_code = rules.requires_code and not practice
    planned = list(runs.values())
    doubts = list(_doubts(folders, planned, rules))
    return SubmissionPlan(track, planned, proof, practice, needs_code, required_license, doubts)


def _doubts(folders: Sequence[Path], runs: Sequence[PlannedRun], rules: TrackInfo) -> Iterator[Problem]:
    """Yield why the track is probably not the one that runs are for."""
    next_step = "Choose another --track, or add --anyway to submit it all the same."
    for path, run in zip(folders, runs, strict=True):
        if not rules.rule.is_accounted and (path / FILES[ArtifactKind.TRAINING_RECORD]).is_file():
            yield Problem.of(
                ErrorCode.TRACK_RULES,
                message="The run was trained with privacy, which this track doesn't rank.",
                where=str(path),
                expected=f"a run without a training record, for {rules.slug}",
                found=FILES[ArtifactKind.TRAINING_RECORD],
                next_step=next_step,
            )
        if rules.ranks_counted_alone and is_declared(run.files, run.files[ArtifactKind.COMMUNICATION_LOG]):
            yield Problem.of(
                ErrorCode.TRACK_RULES,
                message="The run's bytes are declared, and this phase ranks only runs with counted bytes.",
                where=str(path),
                expected="transcript.jsonl and messages.bin, from which the bytes are counted",
                found="a communication log alone",
                next_step=next_step,
            )


def is_declared(kinds: Collection[ArtifactKind], log: Path) -> bool:
    """Return whether a run's bytes are declared: it sent messages, and lacks those from which they are counted."""
    with log.open("rb") as file:
        has_rows = bool(file.readline() and file.readline())
    return has_rows and not {ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES} <= set(kinds)


def _require_slot(client: SiteClient, track: str, *, practice: bool) -> None:
    """Raise `ProblemError` (`E_SUBMISSION_QUOTA`) where the site would reject the submission after its upload."""
    quota = client.quota(track, practice=practice)
    if quota.next_slot:
        raise ProblemError.of(
            ErrorCode.SUBMISSION_QUOTA,
            expected=f"at most {quota.limit} {'practice ' if practice else ''}submissions in 24 hours",
            next_step=f"Nothing was uploaded. The next slot is free on {quota.next_slot:%Y-%m-%d at %H:%M} UTC.",
        )


def _require_new(client: SiteClient, track: str, runs: Iterable[PlannedRun]) -> None:
    """Raise `ProblemError` (`E_SUBMISSION_DUPLICATE`) for checkpoints that were submitted before."""
    checkpoints = [run.files[ArtifactKind.CHECKPOINT] for run in runs if ArtifactKind.CHECKPOINT in run.files]
    problems = [
        problem.model_copy(update={"where": str(path)})
        for path in checkpoints
        for problem in client.checkpoint_problems(track, sha256_of(path))
    ]
    if problems:
        raise ProblemError(*problems)


def register_keys(client: SiteClient, plan: SubmissionPlan) -> list[str]:
    """Register the keys that signed the runs' records unless the site knows them; return the new ones."""
    used = {run.public_key for run in plan.runs if run.public_key}
    new = sorted(used - {key.public_key for key in client.signing_keys()}) if used else []
    for public_key in new:
        client.register_key(public_key, platform.node() or "starter kit")
    return new


def send(
    client: SiteClient,
    plan: SubmissionPlan,
    title: str,
    description: str,
    on_progress: OnTransfer,
    choices: ChangedText | None = None,
    on_stored: OnStored = lambda _: None,
    on_draft: Callable[[Submission], object] = lambda _: None,
) -> SubmissionStatus:
    """Upload everything and submit it, resuming a draft of the same title that an earlier call left.

    `choices` say whether it is private or anonymous, and whether the team agrees to publish its proof; what is None
    stays as the draft has it. `on_draft` is called with the draft, which stays if anything later fails.
    """
    draft = resumable_draft(client, plan.track, title, practice=plan.practice)
    draft = draft or client.create_submission(plan.track, title, description, practice=plan.practice)
    on_draft(draft)
    if choices:
        client.change_draft(draft.id, choices)
    if plan.requires_code:
        _require_described(client.submission(draft.id), plan)
    earlier_bytes = 0

    def report(file: FileProgress) -> None:
        # Counted again each time, since an annex may change its size when its challenge is known.
        on_progress(str(file), earlier_bytes + file.done_bytes, plan.size_bytes)

    def upload(path: Path, *, run: UUID | None, kind: ArtifactKind) -> StoredArtifact:
        nonlocal earlier_bytes
        stored = upload_file(client, path, submission=draft.id, run=run, kind=kind, on_progress=report)
        earlier_bytes += stored.size_bytes
        on_stored(stored)
        return stored

    for planned in plan.runs:
        run = client.add_run(draft.id, planned.budget).id
        for kind in list(planned.files):
            # The answer to a challenge may be another file, or none.
            if path := planned.files.get(kind):
                stored = upload(path, run=run, kind=kind)
                if kind is ArtifactKind.TRAINING_RECORD or stored.challenge:
                    planned.answer(kind, challenge_in(stored), stored.drawn_rounds)
    if plan.proof:
        upload(plan.proof, run=None, kind=ArtifactKind.PRIVACY_PROOF)
    return client.submit(draft.id, plan.license)


def _require_described(draft: SubmissionStatus, plan: SubmissionPlan) -> None:
    """Check what the track requires of the text before anything is uploaded; the site checks the link itself.

    Raises:
        ProblemError: (`E_SUBMISSION_INCOMPLETE`) The draft has no description, or neither a link nor files of its code.
    """
    if not draft.description.strip():
        raise ProblemError.of(
            ErrorCode.SUBMISSION_INCOMPLETE,
            "--description",
            "what the method does, which this track requires",
            "nothing",
            next_step="Add --description TEXT, or --description @FILE.",
        )
    code = {ArtifactKind.SETTINGS, ArtifactKind.METHOD_FILE}
    if not draft.code_url and not all(code & run.files.keys() for run in plan.runs):
        raise ProblemError.of(
            ErrorCode.SUBMISSION_INCOMPLETE,
            "--code-url",
            "a link to a commit, or the settings of every run, which this track requires",
            "neither",
            next_step="Add --code-url https://…/commit/…, or leave out --no-code.",
        )


def challenge_in(stored: StoredArtifact) -> str:
    """Return the challenge that the site drew for a training record. Raises `ProblemError` if it drew none."""
    if stored.challenge is None:
        raise ProblemError.of(
            ErrorCode.SITE_UNREACHABLE,
            message="The site drew no challenge for the training record.",
            expected="a challenge",
            found="none",
            next_step="Install the site's version of the starter kit.",
        )
    return stored.challenge


def unexplained_challenges(client: SiteClient, plan: SubmissionPlan) -> list[str]:
    """Return the run tokens of challenges that the team has neither resolved nor explained; none without a token."""
    own = plan.run_tokens
    return [one.token for one in _unresolved(client, plan) if not one.explanation and one.token not in own]


def practiced_challenges(client: SiteClient, plan: SubmissionPlan) -> list[str]:
    """Return the run tokens that a practice submission has spent and left unresolved; none of any other."""
    own = plan.run_tokens if plan.practice else ()
    return [one.token for one in _unresolved(client, plan) if one.token in own]


def tokens_to_spend(client: SiteClient, plan: SubmissionPlan) -> list[str]:
    """Return the run tokens that the upload of the plan's records spends; those that were spent already aren't."""
    tokens = client.run_tokens() if plan.run_tokens else []
    return [one.token for one in tokens if one.token in plan.run_tokens and one.challenged_at is None]


def unstated_by_records(client: SiteClient, plan: SubmissionPlan) -> list[str]:
    """Return, in sentences, that the site knows of more private runs of the team than the plan's records state."""
    lines = [run.line for run in plan.runs if run.line]
    found = [
        unstated_runs(
            earlier_records(client, plan.track, line.run_token, *plan.run_tokens),
            line.tuning.private_runs,
            plan.track,
        )
        for line in lines
    ]
    return list(dict.fromkeys(filter(None, found)))


def _unresolved(client: SiteClient, plan: SubmissionPlan) -> list[IssuedRunToken]:
    """Return the team's unresolved challenges in a track whose records carry run tokens."""
    tokens = client.run_tokens() if plan.run_tokens else []
    return [one for one in tokens if one.track == plan.track and one.is_unresolved]


def discard_private_files(plan: SubmissionPlan) -> int:
    """Delete what only an answer to the challenge is made from, of runs that were submitted: vectors and secrets.

    Returns:
        How many bytes the vectors took.
    """
    records = [run.files.get(ArtifactKind.TRAINING_RECORD) for run in plan.runs]
    folders = [record.parent for record in records if record]
    for folder in folders:
        remove_secret(folder)
    return sum(remove_vectors(folder) for folder in folders)


def resumable_draft(
    client: SiteClient, track: str, title: str, *, practice: bool = False
) -> Submission | None:
    """Return the team's newest draft with this track and title, for practice or not; None if it has none."""
    wanted = (SubmissionState.DRAFT, track, title, practice)
    drafts = (
        submission
        for submission in client.submissions()
        if (submission.state, submission.track, submission.title, submission.practice) == wanted
    )
    return next(drafts, None)


def watch(
    client: SiteClient,
    submission: UUID,
    on_change: Callable[[str], None],
    pause: Callable[[], object] = lambda: time.sleep(POLLING_PAUSE_S),
) -> SubmissionStatus:
    """Wait until the evaluation of every run has ended, and return the final status.

    Args:
        on_change: Called with a line about a run whenever that line changes.
        pause: Called between two requests to the site.
    """
    last_line: dict[UUID, str] = {}
    while True:
        current = client.submission(submission)
        for run in current.runs:
            line = status_line(run)
            if last_line.get(run.id) != line:
                last_line[run.id] = line
                on_change(line)
        if current.is_final:
            return current
        pause()


def status_line(run: RunStatus) -> str:
    """Describe the run's state, its place in the queue and its results in one line."""
    name = f"ε = {run.budget:g}" if run.budget else "run"
    results = run.results
    if run.state is RunState.SCORED and results.anls is not None:
        epsilon = f", ε = {rounded_up(results.epsilon, 4)}" if results.epsilon is not None else ""
        return f"{name}: scored, ANLS {cut(results.anls, results.decimals)}, {results.bytes_total:,} bytes{epsilon}"
    step = f", {run.step}" if run.step else ""
    queue = f", position {run.queue_position} in the queue" if run.queue_position else ""
    later = f", next attempt at {run.next_attempt_at:%Y-%m-%d %H:%M} UTC" if run.next_attempt_at else ""
    time_left = in_words(run.remaining_s)
    # A run is running from its first step on, also while the next one waits.
    state = RunState.QUEUED if run.queue_position else run.state
    return f"{name}: {state}{step}{queue}{later}{f', {time_left}' if time_left else ''}"


def rank_text(run: RunStatus | ListedRun) -> str:
    """Return the rank of a run, and what makes it provisional."""
    under_review = f", {run.status.label}" if run.status is ResultStatus.PROVISIONAL else ""
    possible = f" (could be {run.possible_ranks})" if run.possible_ranks else ""
    return f"#{run.rank} of {run.ranked}{possible}{under_review}"


def outcome_line(run: RunStatus, url: str) -> str:
    """Say where a run that is evaluated stands, and on which page."""
    name = f"ε = {run.budget:g}" if run.budget else "run"
    if run.rank:
        return f"{name}: {rank_text(run)} · {url}"
    return f"{name}: {f'not ranked: {run.unranked_because}' if run.unranked_because else run.state} · {url}"


def _require_data(annex: Annex, rules: TrackInfo, path: Path) -> None:
    """Raise `ProblemError` (`E_RECORD_DATA`) for a run on other data than the track's, whose token isn't spent yet."""
    if rules.data_sha256 not in ("", annex.data_sha256):
        raise ProblemError.of(
            ErrorCode.RECORD_DATA,
            str(path),
            f"the data of {rules.slug}",
            "other documents, words or questions",
        )


def _require_record(path: Path, rules: TrackInfo) -> None:
    """Raise `ProblemError` (`E_ARTIFACT_MISSING`) for a run without a training record, which the track requires."""
    record = path / FILES[ArtifactKind.TRAINING_RECORD]
    if not record.is_file():
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING,
            message=f"The run has no training record, which {rules.slug} requires: it was trained without privacy.",
            where=str(record),
            expected="the training record",
            found="no such file",
            next_step="Submit it to a track without privacy budgets, such as track-1; or train with a method that "
            "protects providers (`pfl methods`).",
        )


def _planned_run(path: Path, rules: TrackInfo, *, with_code: bool) -> PlannedRun:
    """Return the run in the folder `path` with the track's files, and perhaps those for examinations."""
    folder = RunFolder(path)
    if ArtifactKind.TRAINING_RECORD in rules.run_artifacts:
        _require_record(path, rules)
    # The record first: what the annex holds follows from it.
    kinds = sorted(rules.run_artifacts, key=lambda kind: kind is not ArtifactKind.TRAINING_RECORD)
    files = {kind: folder.file(kind) for kind in kinds}
    present = folder.files()
    if (opened := path / OPENED_MESSAGES).is_file():
        # The run may not have the others any more.
        present.setdefault(ArtifactKind.MESSAGES, opened)
    files |= {
        kind: present[kind]
        for kind in rules.optional_artifacts
        if kind in OPTIONAL_ARTIFACTS & present.keys()
    }
    if with_code:
        examined = folder.examined_files()
        files |= {kind: examined[kind] for kind in rules.optional_artifacts if kind in examined}
    if ArtifactKind.TRAINING_RECORD not in files:
        return PlannedRun(None, files, drawn_rounds=rules.drawn_rounds)
    record = folder.record(max_rounds=rules.max_rounds)
    if with_code and record.run.round_keys_root and ArtifactKind.ROUND_OPENING in rules.optional_artifacts:
        files[ArtifactKind.ROUND_OPENING] = path / OPENING
    if missing_token := list(token_problems(record.run, rules, str(path))):
        raise ProblemError(*missing_token)
    _require_data(require_answerable(path), rules, path)
    budgets = [budget for budget in rules.budgets if budget is not None]
    return PlannedRun(
        budget_of(record, budgets), files, record.end.public_key, rules.drawn_rounds, record.run
    )
