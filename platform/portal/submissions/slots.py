"""The places of a draft that files are uploaded into, as its page shows them."""

from dataclasses import dataclass
from uuid import UUID

from evaluator.contracts import ArtifactKind
from portal.submissions.models import Artifact, PendingArtifact, Run, Submission
from portal.submissions.required import SUFFIXES, max_bytes, submission_artifacts
from portal.uploads.models import Upload, UploadState

EXPLANATIONS = {
    ArtifactKind.CHECKPOINT: "The trained model: every tensor of the reference architecture. In shards, it is joined "
    "here: choose its index and all shards together.",
    ArtifactKind.COMMUNICATION_LOG: "Every message of the training: round, sender, receiver, bytes.",
    ArtifactKind.TRAINING_RECORD: "What each round did, from which ε is computed again.",
    ArtifactKind.TRAINING_ANNEX: "For the organizers only: what the record is checked against.",
    ArtifactKind.PRIVACY_PROOF: "Why the method is differentially private. Reviewers read it.",
}


@dataclass(frozen=True)
class Slot:
    """One place: what belongs there, what lies there, and what is on its way."""

    kind: ArtifactKind
    run: Run | None
    max_bytes: int
    held: Upload | None
    unfinished: Upload | None

    @property
    def id(self) -> str:
        return f"{self.run.pk if self.run else 'submission'}-{self.kind}"

    @property
    def name(self) -> str:
        return self.kind.replace("_", " ").capitalize()

    @property
    def explanation(self) -> str:
        return EXPLANATIONS[self.kind]

    @property
    def suffixes(self) -> str:
        return ",".join(SUFFIXES[self.kind])

    @property
    def accept(self) -> str:
        """What a browser offers to choose."""
        return f"{self.suffixes},.json" if self.in_shards else self.suffixes

    @property
    def in_shards(self) -> bool:
        """Whether several files may be chosen, which the browser joins."""
        return self.kind is ArtifactKind.CHECKPOINT


@dataclass(frozen=True)
class RunSlots:
    """A board of the track: the draft's run there, if it has one, with its places."""

    budget: float | None
    run: Run | None
    slots: list[Slot]


def slots_of(submission: Submission) -> tuple[list[RunSlots], list[Slot]]:
    """The places of every run that the submission may hold, and those of the submission as a whole."""
    track = submission.track
    held = {
        (artifact.run_id, artifact.kind): artifact.upload
        for artifact in Artifact.objects.filter(submission=submission).select_related("upload")
    }
    unfinished = {
        (pending.run_id, pending.kind): pending.upload
        for pending in PendingArtifact.objects.filter(
            submission=submission, upload__state=UploadState.OPEN
        ).select_related("upload")
    }

    def slot(kind: ArtifactKind, run: Run | None) -> Slot:
        place: tuple[UUID | None, str] = (run.pk if run else None, kind)
        return Slot(kind, run, max_bytes(track, kind), held.get(place), unfinished.get(place))

    runs = {run.budget: run for run in submission.runs.all()}
    boards = [
        RunSlots(budget, run, [slot(kind, run) for kind in track.run_artifacts()] if run else [])
        for budget in track.run_budgets()
        for run in [runs.get(budget)]
    ]
    return boards, [slot(kind, None) for kind in submission_artifacts(track)]
