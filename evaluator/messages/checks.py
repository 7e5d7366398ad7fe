"""What a named check is: its id, its texts and how it states its outcome.

A check is a value beside the function that makes it. Its outcome travels as `evaluator.messages.jobs.Check`;
`evaluator.records.check_table` lists all of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from evaluator.errors import ErrorCode
from evaluator.messages.jobs import Check, CheckStatus


class Findings(Enum):
    """Who reads what a check found in a track with privacy budgets.

    Findings may come from the annex or name the clients of a round: the public reads only those that the published
    numbers disclose anyway, the team and the organizers all.
    """

    TEAM = auto()
    # Where nothing was found, what would have been found follows from the record's numbers alone.
    PUBLIC_POWER = auto()
    PUBLIC = auto()

    def are_public(self, status: CheckStatus) -> bool:
        """Return whether the public reads what a check with this status found."""
        nothing_found = status in (CheckStatus.PASSED, CheckStatus.NO_POWER)
        return self is Findings.PUBLIC or (self is Findings.PUBLIC_POWER and nothing_found)


@dataclass(frozen=True)
class Difference:
    """Something that isn't as it should be.

    Attributes:
        rejects: Whether the run is rejected for it, because no honest run has it; otherwise it is only flagged.
    """

    expected: object
    found: object
    where: str = ""
    rejects: bool = True


@dataclass(frozen=True)
class NamedCheck:
    """A check: what it means, and what it can't detect.

    Attributes:
        id: What it compares, and what it checks of that; it never changes, since stored results name it.
        name: The check in a few words.
        meaning: What is true when it passes, in one sentence.
        limit: What it can't detect, in one sentence.
        code: The error code of a run that is rejected because it fails; None where it only ever flags.
    """

    id: str
    name: str
    meaning: str
    limit: str
    code: ErrorCode | None = None
    findings: Findings = Findings.TEAM

    def judge(self, differences: Iterable[Difference], *, otherwise: str) -> Check:
        """Return the outcome, with the first of its worst differences, or with `otherwise` where there is none."""
        worst = min(differences, key=lambda difference: not difference.rejects, default=None)
        if worst is None:
            return self.passed(otherwise)
        return Check(
            id=self.id,
            status=CheckStatus.FAILED if worst.rejects else CheckStatus.FLAGGED,
            expected=str(worst.expected),
            found=str(worst.found),
            where=worst.where,
        )

    def compare(self, expected: str, found: str, where: str) -> Check:
        """Return the outcome of comparing two texts, which no honest run has otherwise than equal."""
        differences = [] if expected == found else [Difference(expected, found, where)]
        return self.judge(differences, otherwise=expected)

    def passed(self, found: str, expected: str = "") -> Check:
        """Return the outcome of a check that found nothing wrong."""
        return Check(id=self.id, status=CheckStatus.PASSED, expected=expected, found=found)

    def flagged(self, found: str, expected: str = "", where: str = "") -> Check:
        """Return the outcome of a check that found something that people should look at."""
        return Check(id=self.id, status=CheckStatus.FLAGGED, expected=expected, found=found, where=where)

    def not_applicable(self, reason: str) -> Check:
        """Return the outcome of a check that can't be made, with the reason."""
        return Check(id=self.id, status=CheckStatus.NOT_APPLICABLE, found=reason)

    def no_power(self, reason: str) -> Check:
        """Return the outcome of a check that found nothing and could have found nothing that matters."""
        return Check(id=self.id, status=CheckStatus.NO_POWER, found=reason)
