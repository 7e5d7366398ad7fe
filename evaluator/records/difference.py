"""The outcome of a check, from the differences that it finds."""

from collections.abc import Iterable
from dataclasses import dataclass

from evaluator.messages.jobs import Check, CheckStatus


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


def judge(check: str, differences: Iterable[Difference], *, otherwise: str) -> Check:
    """Return the check's outcome, with the first of its worst differences, or with `otherwise` where there is none."""
    worst = min(differences, key=lambda difference: not difference.rejects, default=None)
    if worst is None:
        return Check(id=check, status=CheckStatus.PASSED, found=otherwise)
    return Check(
        id=check,
        status=CheckStatus.FAILED if worst.rejects else CheckStatus.FLAGGED,
        expected=str(worst.expected),
        found=str(worst.found),
        where=worst.where,
    )


def not_applicable(check: str, reason: str) -> Check:
    """Return the outcome of a check that can't be made, with the reason."""
    return Check(id=check, status=CheckStatus.NOT_APPLICABLE, found=reason)


def no_power(check: str, reason: str) -> Check:
    """Return the outcome of a check that found nothing and could have found nothing that matters, with the reason."""
    return Check(id=check, status=CheckStatus.NO_POWER, found=reason)
