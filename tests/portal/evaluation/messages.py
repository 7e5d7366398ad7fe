"""What workers would send."""

from datetime import UTC, datetime

from evaluator.contracts import (
    AccountingResult,
    CommunicationResult,
    Outcome,
    Progress,
    Provenance,
    ScoringResult,
    Step,
    StepReport,
    ValidationResult,
)

SHA256 = "0" * 64
RESULTS = {
    Step.VALIDATE: ValidationResult(tensors=2, parameters=10, sha256=SHA256),
    Step.COMMUNICATION: CommunicationResult(
        rounds=3, messages=6, bytes_total=6000, bytes_down=3000, bytes_up=3000
    ),
    Step.ACCOUNTING: AccountingResult(
        epsilon=3.9,
        epsilon_rdp=4.2,
        epsilon_claimed=4,
        delta=1e-5,
        rounds=3,
        accountant="pld",
        within_budget=True,
    ),
    Step.SCORING: ScoringResult(
        anls=0.5, accuracy=0.25, questions=8, test_set_sha256=SHA256, checkpoint_sha256=SHA256
    ),
}


def make_report(evaluation, step, outcome=Outcome.PASSED, **fields):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    defaults = {
        "evaluation": evaluation.pk,
        "attempt": evaluation.attempt,
        "step": step,
        "outcome": outcome,
        "result": RESULTS[step] if outcome is Outcome.PASSED else None,
        "provenance": Provenance(
            worker="gpu-1", evaluator_version="1", started_at=moment, finished_at=moment
        ),
    }
    return StepReport(**{**defaults, **fields})


def make_progress(evaluation, **fields):
    defaults = {"evaluation": evaluation.pk, "attempt": evaluation.attempt, "step": evaluation.step}
    return Progress(**{**defaults, **fields})
