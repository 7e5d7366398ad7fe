"""What a reviewer writes at the desk, before and when they decide: answers, notes, and the text for the team."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from docvqa_site.reviews.checklist import CHECKLIST, Answer
from docvqa_site.reviews.models import Decision, ProofReview

MAX_NOTE = 2_000
MAX_REASON = 5_000

Note = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_NOTE)]


class Draft(BaseModel):
    """One reviewer's work on one proof, as the database stores it. Answers and notes are by an item's key.

    Attributes:
        reason: The text that the team reads with the decision.
        change_reason: Why an earlier decision is replaced; the team reads it, and the public never does.
        changes_due: Until when the team would be asked to revise the proof.
        declares_no_conflict: Whether the reviewer has ticked that they have no conflict of interest.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: Mapping[str, Answer] = {}
    notes: Mapping[str, Note] = {}
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_REASON)] = ""
    change_reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_REASON)] = ""
    changes_due: date | None = None
    declares_no_conflict: bool = False

    @property
    def answered(self) -> int:
        """How many questions have an answer."""
        return sum(item.key in self.answers for item in CHECKLIST)

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

    @property
    def is_full_support(self) -> bool:
        """Whether every question has an answer, and none of them is no."""
        return self.answered == len(CHECKLIST) and not self.doubted

    def contradicts(self, decision: Decision) -> str:
        """Return how the answers contradict the decision, as a question; empty if they don't."""
        if decision == Decision.ACCEPTED and (doubted := self.doubted):
            count = f"{len(doubted)} question{'' if len(doubted) == 1 else 's'}"
            return f"You answered “no” to {count}: {' '.join(doubted)} Accept the proof anyway?"
        if decision == Decision.REJECTED and self.is_full_support:
            return "You answered “no” to no question. Reject the proof anyway?"
        return ""

    @property
    def remarks(self) -> list[tuple[str, str, str]]:
        """The notes that the team reads, each as question, answer and note, in the order of the checklist."""
        return [
            (item.question, self.answers.get(item.key, ""), self.notes[item.key])
            for item in CHECKLIST
            if self.notes.get(item.key)
        ]


def draft_of(review: ProofReview | None) -> Draft:
    """Return what the reviewer has written since the decision, otherwise their answers and notes in it.

    The explanation, the date and the declaration belong to one decision: the next one needs its own.
    """
    if review is None:
        return Draft()
    if review.draft is not None:
        return Draft.model_validate(review.draft)
    return Draft(
        answers={key: Answer(answer) for key, answer in review.checklist.items()}, notes=review.notes
    )
