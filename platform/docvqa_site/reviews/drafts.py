"""What a reviewer writes at the desk, before and when they decide: answers, notes, and the text for the team."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints

from docvqa_site.reviews.checklist import CHECKLIST, Answer
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import Artifact

MAX_NOTE = 2_000
MAX_REASON = 5_000
MAX_WINDOW = 50
# The decisions that ask the team for another proof, as questions.
OBJECTIONS = {
    Decision.CHANGES_REQUESTED: "Request changes",
    Decision.REJECTED: "Reject the proof",
}

Note = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_NOTE)]


class EarlierAnswer(BaseModel):
    """What a reviewer answered and noted about an earlier version of the proof; `answer` is None for a note alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int
    answer: Answer | None = None
    note: Note = ""


def note_name(key: str) -> str:
    """Return the name of the field of an item's note."""
    return f"{key}_note"


class Draft(BaseModel):
    """One reviewer's work on one proof, as the database stores it. Answers and notes are by an item's key.

    Attributes:
        version: The version of the proof that the answers and notes are about.
        window: The page on which it was written last, by a name that is drawn for each.
        earlier: The last answers and notes about earlier versions. They count for nothing until they are given again.
        reason: The text that the team reads with the decision.
        change_reason: Why an earlier decision is replaced; the team reads it, and the public never does.
        decision: The one that was chosen and not recorded yet; `PENDING` for none.
        changes_due: Until when the team would be asked to revise the proof.
        declares_no_conflict: Whether the reviewer has ticked that they have no conflict of interest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = 1
    window: Annotated[str, StringConstraints(max_length=MAX_WINDOW)] = ""
    answers: Mapping[str, Answer] = {}
    notes: Mapping[str, Note] = {}
    earlier: Mapping[str, EarlierAnswer] = {}
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_REASON)] = ""
    change_reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_REASON)] = ""
    decision: Decision = Decision.PENDING
    changes_due: date | None = None
    declares_no_conflict: bool = False

    @property
    def answered(self) -> int:
        """How many questions have an answer."""
        return sum(item.key in self.answers for item in CHECKLIST)

    def texts(self) -> dict[str, Any]:
        """Return what a record of the decision has beside the answers and the version, as values of JSON."""
        return self.model_dump(mode="json", exclude={"answers", "version", "window", "earlier", "decision"})

    @property
    def unconfirmed(self) -> int:
        """How many questions have an answer about an earlier version, and none about this one."""
        return sum(one.answer is not None and key not in self.answers for key, one in self.earlier.items())

    def about(self, version: int) -> "Draft":
        """Return the draft as it is about a version of the proof: answers about an older one are earlier answers."""
        if self.version >= version:
            return self
        found = {
            key: EarlierAnswer(
                version=self.version, answer=self.answers.get(key), note=self.notes.get(key, "")
            )
            for key in {**self.answers, **self.notes}
        }
        earlier = {**self.earlier, **found}
        revised = {"version": version, "answers": {}, "notes": {}, "earlier": earlier}
        # Nor is the choice about the newer one.
        return self.model_copy(update={**revised, "decision": Decision.PENDING})

    @property
    def unexplained(self) -> list[str]:
        """The keys of the items that are answered with no, and have no note."""
        return [
            key for key, answer in self.answers.items() if answer is Answer.NO and not self.notes.get(key)
        ]

    @property
    def doubted(self) -> list[str]:
        """The questions that are answered with no."""
        return [item.question for item in CHECKLIST if self.answers.get(item.key) is Answer.NO]

    def contradicts(self, decision: Decision) -> str:
        """Return how the answers contradict the decision, as a question; empty if they don't.

        An objection without a "no" leaves the team without a question to work on.
        """
        if decision == Decision.ACCEPTED and (doubted := self.doubted):
            count = f"{len(doubted)} question{'' if len(doubted) == 1 else 's'}"
            return f"You answered “no” to {count}: {' '.join(doubted)} Accept the proof anyway?"
        if decision in OBJECTIONS and not self.doubted:
            return f"You answered “no” to no question, so none names what is wrong. {OBJECTIONS[decision]} anyway?"
        return ""

    @property
    def remarks(self) -> list[tuple[str, str, str]]:
        """The notes that the team reads, each as question, answer and note, in the order of the checklist."""
        return [
            (item.question, self.answers.get(item.key, ""), self.notes[item.key])
            for item in CHECKLIST
            if self.notes.get(item.key)
        ]


def version_of(proof: Artifact | None) -> int:
    """Return the version of a proof; without a proof, the first one."""
    return proof.version if proof else 1


def draft_of(review: ProofReview | None, version: int) -> Draft:
    """Return what the reviewer has written, as it is about this version, the newest one of the proof."""
    return stored_draft(review, version).about(version)


def stored_draft(review: ProofReview | None, newest: int) -> Draft:
    """Return what the reviewer has written since the decision, otherwise their answers and notes in it.

    The explanation, the date and the declaration belong to one decision: the next one needs its own.

    Args:
        newest: The version of the proof that a decision is about, since a revision takes all of them back.
    """
    if review is None:
        return Draft()
    if review.draft is not None:
        return Draft.model_validate(review.draft)
    if not review.is_decided:
        return Draft()
    answers = {key: Answer(answer) for key, answer in review.checklist.items()}
    return Draft(version=newest, answers=answers, notes=review.notes)
