"""The trust level of a run: derived from its examinations, never set by hand.

A scored run has the lowest level, which the evaluation earned it. It has a further level if the newest examination of
that level has passed; an older one of the same level says nothing any more. The highest of these is the run's.

A replay or a rerun compares what was submitted with what really happens. So a run whose newest one failed has no rank
until another one passes.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from docvqa_site.evaluation.models import Examination
from evaluator.messages.jobs import TrustLevel
from evaluator.messages.results import RunResults

EVALUATOR = "the evaluator"


@dataclass(frozen=True)
class Trust:
    """A level that a run has earned, by whose examination and when; `rounds` says of which part of the run."""

    level: TrustLevel
    by: str
    at: datetime
    rounds: str = ""


@dataclass(frozen=True)
class Failure:
    """The level of the examination that takes a run's rank, and what it found."""

    level: TrustLevel
    because: str


def earned(scored_at: datetime, examinations: Iterable[Examination]) -> Trust:
    """Return the highest level of a run that was scored at `scored_at`."""
    newest: dict[int, Examination] = {}
    for examination in in_order(examinations):
        newest[examination.level] = examination
    passed = [one for one in newest.values() if one.passed]
    if not passed:
        return Trust(TrustLevel.RECOMPUTED, EVALUATOR, scored_at)
    highest = max(passed, key=lambda one: one.level)
    return Trust(
        TrustLevel(highest.level), highest.examiner, highest.ended_at, highest.found.findings.coverage
    )


def failure(examinations: Iterable[Examination]) -> Failure | None:
    """Return the newest replay or rerun of a run if it failed."""
    compared = [one for one in in_order(examinations) if one.trust_level >= TrustLevel.REPLAYED]
    if not compared or compared[-1].passed:
        return None
    return Failure(compared[-1].trust_level, compared[-1].found.in_words)


def in_order(examinations: Iterable[Examination]) -> list[Examination]:
    """Return those that have ended with a report, in the order of their ends."""
    reported = [one for one in examinations if one.report is not None]
    return sorted(reported, key=lambda one: (one.ended_at, one.pk))


def with_trust(results: RunResults, trust: Trust, failed: Failure | None) -> RunResults:
    """Return the results with this trust level, and with the examination that takes the rank."""
    return results.model_copy(
        update={
            "trust_level": trust.level,
            "trust_rounds": trust.rounds,
            "trust_by": trust.by,
            "trust_at": trust.at,
            "failed_level": failed and failed.level,
            "failed_because": failed.because if failed else "",
        }
    )
