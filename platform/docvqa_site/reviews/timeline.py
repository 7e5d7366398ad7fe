"""What happened to a proof, version by version: what was sent, decided, asked, answered, and what came of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from docvqa_site.accounts.models import User
from docvqa_site.reviews.checklist import Answer
from docvqa_site.reviews.history import PastDecision, history_of
from docvqa_site.reviews.models import Appeal, Decision, ReviewMessage
from docvqa_site.reviews.selectors import reviewer_numbers
from docvqa_site.reviews.threads import QUESTIONS
from docvqa_site.reviews.verdict import Verdict, verdict
from docvqa_site.submissions.models import Artifact, Submission
from evaluator.messages.jobs import ArtifactKind

WORDS = {
    Decision.ACCEPTED: "accepted the proof",
    Decision.CHANGES_REQUESTED: "asked for changes",
    Decision.REJECTED: "rejected the proof",
}


@dataclass(frozen=True)
class Event:
    """One thing that happened. `outcome` is the status that a decision led to, in words.

    A message `is_message`, about the `item` of the checklist, or in general.
    """

    at: datetime
    who: str
    words: str
    text: str = ""
    by_team: bool = False
    change_reason: str = ""
    changes_due: date | None = None
    remarks: list[tuple[str, str, str]] = field(default_factory=list)
    outcome: str = ""
    is_message: bool = False
    item: str = ""

    @property
    def names_faults(self) -> bool:
        """Whether the notes say what to fix."""
        return any(answer == Answer.NO for _, answer, _ in self.remarks)


@dataclass(frozen=True)
class VersionEvents:
    """A version of the proof with what happened while it was the newest, oldest first."""

    artifact: Artifact
    events: list[Event]

    @property
    def sent_at(self) -> datetime:
        """When reviewers got it: the first version with its submission, others once their team sent them."""
        return max(filter(None, (self.artifact.created_at, self.artifact.submission.submitted_at)))

    @property
    def before(self) -> int:
        """The number of the version before it; 0 for the first."""
        return self.artifact.version - 1


def timeline(submission: Submission, reader: User | None = None) -> list[VersionEvents]:
    """Return what happened to the proof, the newest version first.

    Reviewers have numbers; a `reader` who reviews or organizes also reads their names.
    """
    versions = list(
        submission.artifacts.filter(kind=ArtifactKind.PRIVACY_PROOF)
        .select_related("upload")
        .order_by("-version")
    )
    names = _names(submission, reader)
    decided, stood = _decided(submission, names)
    messages = (_message(one, names) for one in submission.review_messages.all())
    events = sorted([*decided, *stood, *messages, *_appeals(submission)], key=lambda event: event.at)
    found = []
    for artifact in versions:
        # What came before the first version was attached belongs to it nevertheless.
        since = (
            artifact.created_at
            if artifact.version > 1
            else datetime.min.replace(tzinfo=artifact.created_at.tzinfo)
        )
        found.append(VersionEvents(artifact, [event for event in events if event.at >= since]))
        events = [event for event in events if event.at < since]
    return found


def _names(submission: Submission, reader: User | None) -> dict[int, str]:
    """Return what each reviewer is called, by their key."""
    names = {key: f"Reviewer {number}" for key, number in reviewer_numbers(submission).items()}
    if reader is None:
        return names
    for person in User.objects.filter(pk__in=names):
        names[person.pk] += " (you)" if person == reader else f" ({person})"
    return names


def _decided(submission: Submission, names: Mapping[int, str]) -> tuple[list[Event], list[Event]]:
    """Return the decisions, each with the status that it led to, and the ends of waits for a second opinion."""
    history = history_of(list(submission.reviews.all()))
    made, required = history.decisions, submission.track.reviews_needed
    decided = [
        Event(
            one.at,
            names[one.review.reviewer_id],
            WORDS[one.decision] + (" (decision withdrawn)" if one.withdrawn_at else ""),
            one.written.reason,
            change_reason=one.written.change_reason,
            changes_due=one.written.changes_due if one.decision is Decision.CHANGES_REQUESTED else None,
            remarks=one.written.remarks,
            outcome=_verdict_at(one.at, one.version, made, required).sentence,
        )
        for one in made
    ]
    withdrawn = [
        Event(
            one.withdrawn_at,
            names[one.review.reviewer_id],
            "declared a conflict of interest and withdrew the decision",
            outcome=_verdict_at(one.withdrawn_at, one.version, made, required).sentence,
        )
        for one in made
        if one.withdrawn_at
    ]
    readmitted = [
        Event(
            one.readmitted_at,
            "The organizers",
            f"let {names[one.review.reviewer_id]} review the proof again",
        )
        for one in made
        if one.readmitted_at
    ]
    stood = [
        Event(at, "", "Nobody contradicted the rejection in time.", outcome="Proof rejected.")
        for at in history.stood
    ]
    return [*decided, *withdrawn, *readmitted], stood


def _verdict_at(
    at: datetime, version: int | None, decisions: Iterable[PastDecision], required: int | None
) -> Verdict:
    """Return the verdict on a version at a time: the newest decision of each reviewer counts, unless withdrawn."""
    newest = {one.review.pk: one for one in decisions if one.at <= at and one.version == version}
    counting = (one for one in newest.values() if not one.withdrawn_at or one.withdrawn_at > at)
    return verdict([(one.decision, one.written.reason) for one in counting], required)


def _message(message: ReviewMessage, names: Mapping[int, str]) -> Event:
    who = "The team" if message.by_team else names.get(message.author_id, "Reviewer")
    about = f"wrote about “{QUESTIONS[message.item]}”" if message.item in QUESTIONS else "wrote"
    return Event(
        message.created_at,
        who,
        about,
        message.text,
        by_team=message.by_team,
        is_message=True,
        item=message.item,
    )


def _appeals(submission: Submission) -> list[Event]:
    made = Appeal.objects.filter(submission=submission)
    return [
        Event(one.created_at, "The team", "appealed the rejection", one.text, by_team=True) for one in made
    ]
