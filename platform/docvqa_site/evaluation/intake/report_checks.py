"""What the site can check of a passed step's report by itself.

A report is signed, so what is wrong with it is a fault of the worker: another file than the run's, another test set
than the other workers', numbers that no step computes.
"""

from collections.abc import Iterator
from typing import Final, Literal

from docvqa_site.evaluation.intake.facts import Facts
from docvqa_site.evaluation.models import TestSet
from evaluator.messages.jobs import (
    AccountingResult,
    CommunicationResult,
    FirstDownload,
    ScoringDetail,
    ScoringResult,
    TrackRules,
    ValidationResult,
    WorkerReport,
)
from evaluator.messages.leakage import LeakageResult
from evaluator.messages.rankings import COUNTED

PARTS: Final[tuple[Literal["public"], Literal["private"]]] = ("public", "private")


def faults(report: WorkerReport, facts: Facts) -> list[str]:
    """Return what of a passed step's result can't be true of the run, in sentences for the organizers."""
    rules, checkpoint = facts.rules, facts.checkpoint_sha256
    match report.result:
        case ValidationResult() as result:
            return [*_of_validation(result), *_of_checkpoint(checkpoint, result.sha256)]
        case CommunicationResult() as result:
            return list(_of_communication(result, rules))
        case AccountingResult() as result:
            return list(_of_accounting(result, rules))
        case ScoringResult() as result:
            return [
                *_of_scores(result),
                *_of_checkpoint(checkpoint, result.checkpoint_sha256),
                *_of_test_set(facts.test_set, result),
                *_of_parts(result, report.scoring_detail),
            ]
        case LeakageResult() as result:
            return list(_of_checkpoint(checkpoint, result.checkpoint_sha256))
        case _:
            return []


def _of_validation(result: ValidationResult) -> Iterator[str]:
    if not 0 < result.tensors <= result.parameters:
        yield f"{result.tensors} tensors with {result.parameters} parameters"
    if len(result.changed) > result.tensors:
        yield f"{len(result.changed)} of {result.tensors} tensors changed"


def _of_checkpoint(expected: str | None, found: str) -> Iterator[str]:
    if expected is None:
        yield "the run has no checkpoint"
    elif expected != found:
        yield f"the worker read a checkpoint of SHA-256 {found}, the run's is {expected}"


def _of_communication(result: CommunicationResult, rules: TrackRules) -> Iterator[str]:
    sent = result.bytes_total if result.bytes_sent is None else result.bytes_sent
    if sent != result.bytes_down + result.bytes_up:
        yield f"{result.bytes_down} + {result.bytes_up} bytes are not {sent}"
    least, most = _ranked_bytes(result, sent, rules)
    if not least <= result.bytes_total <= most:
        yield f"{result.bytes_total} bytes; from {least} to {most} follow from {sent} sent ones"
    if not 0 <= result.rounds_folded <= result.rounds or (
        result.counting != COUNTED and result.rounds_folded
    ):
        yield f"{result.rounds_folded} of {result.rounds} rounds folded, the bytes {result.counting}"
    # A log without messages is that of a model that was not trained, and a round without clients has no message.
    is_empty = result.rounds == 0
    if (
        (result.messages == 0) != is_empty
        or (is_empty and sent)
        or not 0 <= result.rounds <= rules.max_rounds
    ):
        yield f"{result.rounds} rounds with {result.messages} messages; {rules.max_rounds} rounds are allowed"


def _ranked_bytes(result: CommunicationResult, sent: int, rules: TrackRules) -> tuple[int, int]:
    """Return the fewest and the most bytes that may rank a run that sent so many, by the rule for first downloads."""
    first, decoder = result.first_download_bytes or 0, result.decoder_bytes
    if result.bytes_sent is None:
        return sent, sent
    if rules.first_download is FirstDownload.COUNTED:
        return sent + decoder, sent + first + decoder
    return max(0, sent - first) + decoder, sent + decoder


def _of_accounting(result: AccountingResult, rules: TrackRules) -> Iterator[str]:
    if rules.privacy is None:
        yield "the run has no privacy budget"
        return
    if result.delta != rules.privacy.delta:
        yield f"accounted at δ = {result.delta}, the track's is {rules.privacy.delta}"
    if result.within_budget != (result.epsilon <= rules.privacy.epsilon):
        yield f"ε = {result.epsilon} and a budget of {rules.privacy.epsilon}: within is {result.within_budget}"
    if not 0 <= result.rounds <= rules.max_rounds:
        yield f"{result.rounds} rounds; {rules.max_rounds} are allowed"


def _of_scores(result: ScoringResult) -> Iterator[str]:
    for name, score in (("ANLS", result.anls), ("accuracy", result.accuracy)):
        if not 0 <= score <= 1:
            yield f"{name} = {score}"
    if result.questions <= 0:
        yield f"{result.questions} questions"


def _of_test_set(known: TestSet | None, result: ScoringResult) -> Iterator[str]:
    if known is None:
        return
    split_sha256 = result.split.sha256 if result.split else ""
    since = f"since {known.first_scored_at:%Y-%m-%d} runs are scored on"
    if known.sha256 != result.test_set_sha256:
        yield (
            f"scored on a test set {known} of SHA-256 {result.test_set_sha256}; {since} {known.sha256}. Give a changed "
            "test set a new name, or delete the entry on the admin site to accept it."
        )
    if known.split_sha256 != split_sha256:
        yield (
            f"the split of the test set {known} is {split_sha256 or 'none'}; {since} "
            f"{known.split_sha256 or 'the whole of it'}. Give the worker the others' split.json. Scores on two splits "
            "can't be compared: a test set with another one takes a new name."
        )


def _of_parts(result: ScoringResult, detail: ScoringDetail | None) -> Iterator[str]:
    public, private = (detail and detail.part(name) for name in PARTS)
    if result.split is None:
        if public or private:
            yield "scores on parts of a test set that isn't split"
    elif not (public and private):
        yield "no score on each part of a split test set"
    elif (public.anls, public.questions) != (result.anls, result.questions):
        yield f"ANLS {result.anls} isn't that on the public part, {public.anls}"
