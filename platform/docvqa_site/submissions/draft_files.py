"""The files that a draft needs or may have, as its page shows them: which are uploaded, and which are still missing."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from docvqa_site.submissions.code import CODE_KINDS, names_commit
from docvqa_site.submissions.models import Artifact, Run, Submission
from docvqa_site.submissions.proof_versions import proof_problems
from docvqa_site.submissions.removal import removal_notes_of_runs
from docvqa_site.submissions.required import SUFFIXES, max_bytes
from docvqa_site.ui.budgets import at_budget, plain
from docvqa_site.uploads.models import Upload, UploadState
from evaluator.communication.log import COLUMNS
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.run_files import ANSWER_FILES, ANSWERED, RUN_FILES

# The key of a run, None for the submission as a whole, and the kind of file.
Place = tuple[UUID | None, str]

EXPLANATIONS = {
    ArtifactKind.CHECKPOINT: "The trained model: every tensor of the reference architecture. Sharded "
    "checkpoints: select the index and all shards; they are merged in your browser.",
    ArtifactKind.COMMUNICATION_LOG: f"Every message of the training. The first line is `{','.join(COLUMNS)}`; each "
    "other line has four integers, and party -1 is the server.",
    ArtifactKind.TRAINING_RECORD: "The training rounds, from which ε is recomputed. Uploading it spends its run "
    "token: if you don't submit it then, every later run of your team shows an unresolved challenge.",
    ArtifactKind.TRAINING_ANNEX: "Evidence to check the record, for organizers only. Create it after "
    "uploading the record. Once you have submitted, you can delete the run's `vectors` folder.",
    ArtifactKind.SETTINGS: "settings.yaml from the run folder: for a higher trust level, and as the code in "
    "tracks that require it. Visible to your team, the organizers and reviewers only.",
    ArtifactKind.METHOD_FILE: "For a higher trust level: the Python file of your own method. The "
    "organizers run it in a sandbox; besides them, only your team and reviewers can see it.",
    ArtifactKind.ROUND_OPENING: "For a higher trust level: the output of `pfl replay open` for a "
    "replayable run and the annex's challenge. For organizers only: it allows "
    "the noise of these rounds to be subtracted.",
    ArtifactKind.TRANSCRIPT: "transcript.jsonl from the run folder, the hashes of all messages. Public once the run is "
    "scored and your team is named.",
    ArtifactKind.MESSAGES: "messages.bin from the run folder, the messages as sent. The evaluator computes the "
    "checkpoint from them. If they are too large, upload transcript.jsonl first: the site then draws the rounds to "
    "open. Visible to your team and the organizers only.",
    ArtifactKind.CODEC_FILE: "Only if your messages use a codec of your own: transcript_codec.py from the run folder. "
    "It runs in a sandbox, and its size counts.",
    ArtifactKind.PRIVACY_PROOF: "Explains why the method is differentially private. Read by the reviewers. "
    "`pfl describe` drafts it from the run folders.",
}
# What bytes are counted from.
COUNTED_FROM = (ArtifactKind.TRANSCRIPT, ArtifactKind.MESSAGES)
COUNTING = "To have the bytes counted: "
COUNTED_ALONE = "Required for a rank, because this phase ranks only runs with counted bytes: "


@dataclass(frozen=True)
class Answer:
    """The file that answers a challenge: what the draft's page says before and after the draw, and how it is made."""

    before: str
    challenged: str
    command: str


ANSWERS = {
    ArtifactKind.TRAINING_ANNEX: Answer(
        "Upload the training record first. The site then draws the challenge you need to create the annex.",
        "The record has arrived, and this is its challenge. Run this command in the run folder to create the annex, "
        "then select it here:",
        "pfl privacy annex . --challenge {challenge}",
    ),
    ArtifactKind.MESSAGES: Answer(
        "",
        "The messages of this run are too large to attach all of them, so the site has drawn the rounds to open. "
        "Run this command in the run folder to create `opened_messages.bin`, then select it here:",
        "pfl replay open . --challenge {challenge} --drawn {drawn}",
    ),
}


@dataclass(frozen=True)
class DraftFile:
    """One file that the draft needs or may have: `stored` once uploaded, `unfinished` while an upload has begun.

    Attributes:
        gives_rank: Whether the run gets no rank without it, though it can be submitted.
        artifact: The key of what is `stored`, for a file of a draft.
        may_be_code: Whether it can be the code that the track requires.
        is_code: Whether the code that the track requires may have to be this file, because there is no other.
        staged_version: The number of a revised proof that is `stored` and isn't sent yet; 0 for any other file.
        removal_note: What stays behind when it is removed; empty if nothing does.
        is_unfit: Whether it is a proof with gaps or that reviewers couldn't see, so that another file must replace it.
        number: Its turn among the needed files of a run, where their order matters; 0 elsewhere.
    """

    kind: ArtifactKind
    run: Run | None
    max_bytes: int
    stored: Upload | None
    unfinished: Upload | None
    is_required: bool = True
    gives_rank: bool = False
    may_be_code: bool = False
    is_code: bool = False
    artifact: UUID | None = None
    staged_version: int = 0
    removal_note: str = ""
    is_unfit: bool = False
    number: int = 0

    @property
    def is_needed(self) -> bool:
        """Whether the run can't be submitted, or gets no rank, without it."""
        return self.is_required or self.gives_rank

    @property
    def is_ready(self) -> bool:
        """Whether it is uploaded, and needn't be replaced."""
        return self.stored is not None and not self.is_unfit

    @property
    def is_optional(self) -> bool:
        """Whether nothing asks for it; a track that requires code takes some files in place of a link."""
        return not self.is_needed and not self.is_code

    @property
    def id(self) -> str:
        return _file_id(self.run, self.kind)

    @property
    def place(self) -> str:
        """The id of the heading of this part of the draft's page."""
        return place_of_file(self.run, self.kind)

    @property
    def removal_warning(self) -> str:
        """What a team loses by removing it."""
        is_record = self.kind is ArtifactKind.TRAINING_RECORD
        what = "The record and its annex" if is_record else "The file"
        return f"{what} will be deleted. This can't be undone. {self.removal_note}".strip()

    @property
    def version_query(self) -> str:
        """What follows the address of the proof's page to show this version."""
        return f"?version={self.staged_version}" if self.staged_version else ""

    @property
    def name(self) -> str:
        return self.kind.replace("_", " ").capitalize()

    @property
    def of_run(self) -> str:
        """What tells its name from those of other runs, such as " at ε = 8"; empty if there is only one run."""
        return at_budget(self.run.budget) if self.run else ""

    @property
    def explanation(self) -> str:
        purpose = COUNTED_ALONE if self.gives_rank else COUNTING if self.kind in COUNTED_FROM else ""
        return purpose + EXPLANATIONS[self.kind]

    @property
    def suffixes(self) -> str:
        """The endings that the file's name may have, as the page lists them."""
        return ", ".join(SUFFIXES[self.kind])

    @property
    def accept(self) -> str:
        """The endings that the browser's file dialog shows."""
        return ",".join([*SUFFIXES[self.kind], *([".json"] if self.in_shards else [])])

    @property
    def answers_challenge(self) -> bool:
        """Whether the file is made from the challenge that the site draws when it has another file of the run."""
        return self.kind in ANSWERS

    @property
    def before_challenge(self) -> str:
        """What to upload so that the site draws the challenge, in words; empty where it may draw none."""
        return ANSWERS[self.kind].before

    @property
    def challenged(self) -> str:
        """What follows from the challenge, in words."""
        return ANSWERS[self.kind].challenged

    @property
    def answer(self) -> str:
        """The command that makes the file from the challenge."""
        assert self.run is not None  # noqa: S101 - only files of runs answer
        return ANSWERS[self.kind].command.format(challenge=self.run.challenge, drawn=self.run.rounds_to_draw)

    @property
    def folder_name(self) -> str:
        """Its name in a run folder, as far as no challenge was drawn that it must answer; empty if it has none."""
        return RUN_FILES.get(self.kind, "")

    @property
    def answer_name(self) -> str:
        """Its name in a run folder once it answers the run's challenge; empty if it answers none."""
        return ANSWER_FILES.get(self.kind, "")

    @property
    def answered(self) -> str:
        """The kind of file whose challenge it answers; empty if it answers none."""
        return ANSWERED.get(self.kind, "")

    @property
    def in_shards(self) -> bool:
        """Whether several files may be chosen, which the browser joins."""
        return self.kind is ArtifactKind.CHECKPOINT


@dataclass(frozen=True)
class RunFiles:
    """A board of the track: the draft's run there, if it has one, with its files."""

    budget: float | None
    run: Run | None
    files: list[DraftFile]
    removal_note: str = ""

    @property
    def place(self) -> str:
        """The id of the heading of this part of the draft's page."""
        return place_of_run(self.budget)

    @property
    def removal_warning(self) -> str:
        """What a team loses by removing the run."""
        return f"The run's files will be deleted. This can't be undone. {self.removal_note}".strip()

    @property
    def lacks_rank(self) -> bool:
        """Whether the run would be listed without a rank, for want of a file."""
        return any(file.gives_rank and not file.stored for file in self.files)


def place_of_run(budget: float | None) -> str:
    """Return the id of the heading under which the draft's page has the run at this budget."""
    return f"run{at_budget(budget, '-{}', plain)}"


def place_of_file(run: Run | None, kind: str) -> str:
    """Return the id of the heading under which the draft's page has a file of a run, or of the submission."""
    return f"name-{_file_id(run, kind)}"


def _file_id(run: Run | None, kind: str) -> str:
    return f"{run.pk if run else 'submission'}-{kind}"


def files_of(submission: Submission, now: datetime) -> tuple[list[RunFiles], list[DraftFile]]:
    """Return the files of every run that the submission may have, and those of the submission as a whole."""
    track = submission.track
    ranks_counted_alone = track.ranks_counted_alone(now) and not submission.practice
    newest = submission.artifacts.filter(superseded_at__isnull=True)
    stored = _by_place(newest.filter(upload__state=UploadState.COMPLETED))
    pending = Artifact.pending.filter(submission=submission)
    unfinished = _by_place(pending.filter(upload__state=UploadState.OPEN))
    has_link = names_commit(submission.code_url)
    with_code = {run for run, kind in stored if kind in CODE_KINDS}

    def draft_file(kind: ArtifactKind, run: Run | None) -> DraftFile:
        run_id = run.pk if run else None
        may_be_code = kind in CODE_KINDS and track.requires_code and not submission.practice
        place: Place = (run_id, kind)
        attached, begun = stored.get(place), unfinished.get(place)
        return DraftFile(
            kind,
            run,
            max_bytes(track, kind),
            attached.upload if attached else None,
            begun.upload if begun else None,
            kind in required,
            ranks_counted_alone and kind in COUNTED_FROM,
            may_be_code,
            may_be_code and (attached is not None or not (has_link or run_id in with_code)),
            attached.pk if attached else None,
            removal_note=notes.get(run.pk, "") if run and kind is ArtifactKind.TRAINING_RECORD else "",
            is_unfit=kind is ArtifactKind.PRIVACY_PROOF
            and attached is not None
            and not submission.practice
            and bool(proof_problems(attached.upload)),
        )

    runs = {run.budget: run for run in submission.runs.all()}
    notes = removal_notes_of_runs(runs.values())
    kinds = [*track.kind.run_artifacts, *track.kind.optional_artifacts]
    required = {*track.kind.run_artifacts, *submission.required_proofs}
    boards = [
        RunFiles(budget, run, _needed_first(draft_file(kind, run) for kind in kinds), notes[run.pk])
        if run
        else RunFiles(budget, None, [])
        for budget in track.run_budgets()
        for run in [runs.get(budget)]
    ]
    return boards, [draft_file(kind, None) for kind in track.kind.submission_artifacts]


def _needed_first(files: Iterable[DraftFile]) -> list[DraftFile]:
    ordered = sorted(files, key=lambda file: not file.is_needed)
    # The site draws the challenge when it has the file before.
    if not any(file.is_required and file.answers_challenge for file in ordered):
        return ordered
    return [replace(file, number=turn if file.is_needed else 0) for turn, file in enumerate(ordered, 1)]


def _by_place(artifacts: QuerySet[Artifact]) -> dict[Place, Artifact]:
    return {(artifact.run_id, artifact.kind): artifact for artifact in artifacts.select_related("upload")}


def proof_of(submission: Submission) -> DraftFile:
    """Return the place of the proof of what was submitted, which takes a revised one and shows what is staged."""
    _, files = files_of(submission, timezone.now())
    place = next(file for file in files if file.kind is ArtifactKind.PRIVACY_PROOF)
    staged = Artifact.staged.filter(submission=submission).select_related("upload").first()
    if staged is None:
        return place
    is_unfit = bool(proof_problems(staged.upload))
    return replace(place, stored=staged.upload, staged_version=staged.version, is_unfit=is_unfit)
