"""Messages as workers send them."""

from datetime import UTC, datetime

from django.utils import timezone

from docvqa_site.evaluation.queue.step_secrets import step_secret
from docvqa_site.submissions.models import RunToken
from evaluator.accounting.accountant import Accountant
from evaluator.mechanisms.events import Gaussian
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.messages.jobs import (
    AccountingResult,
    ArtifactKind,
    Check,
    CheckStatus,
    CommunicationResult,
    Epsilon,
    GroupScore,
    Outcome,
    Progress,
    Provenance,
    ScoringDetail,
    ScoringResult,
    SplitIdentity,
    Step,
    TrackRules,
    ValidationResult,
    WorkerReport,
)
from evaluator.messages.leakage import Leakage, LeakageResult
from evaluator.messages.signed import sign
from tests.docvqa_site.factories import make_artifact, make_key, make_token, numbers

SHA256 = "0" * 64
RESULTS = {
    Step.VALIDATE: ValidationResult(tensors=2, parameters=10, sha256=SHA256, changed=[]),
    Step.COMMUNICATION: CommunicationResult(
        rounds=3,
        messages=6,
        bytes_total=6000,
        bytes_down=3000,
        bytes_up=3000,
        bytes_needed=500,
        counting="counted",
        rounds_folded=3,
        checks=[
            Check(id="log.directions", status=CheckStatus.PASSED),
            Check(id="log.message_sizes", status=CheckStatus.FLAGGED, found="0.1 bits", where="round 2"),
        ],
    ),
    Step.SCORING: ScoringResult(
        anls=0.5, accuracy=0.25, questions=8, test_set_sha256=SHA256, checkpoint_sha256=SHA256
    ),
}


def make_group(**fields):
    defaults = {"by": "key", "group": "total_amount", "questions": 1234, "accuracy": 0.25}
    return GroupScore(**{**defaults, "anls": 0.5, "anls_low": 0.4321, "anls_high": 0.5678, **fields})


SPLIT = SplitIdentity(sha256="5" * 64, private_fraction=0.4)


def on_both_parts(evaluation, public, private, split=SPLIT):
    """The fields of the report of a scoring on a split test set with these ANLS."""
    scores = {"public": public, "private": private}
    groups = [
        make_group(by="part", group=name, questions=8, anls=anls, anls_low=anls - 0.05, anls_high=anls + 0.05)
        for name, anls in scores.items()
    ]
    changes = {"anls": public, "split": split}
    result = make_result(evaluation, Step.SCORING).model_copy(update=changes)
    return {"result": result, "detail": make_detail(*groups)}


def make_detail(*groups, pages_without_image=7):
    return ScoringDetail(groups=list(groups or [make_group()]), pages_without_image=pages_without_image)


EPSILONS = {
    (SamplingRule.TWO_STAGE, Accountant.PLD): 3.9,
    (SamplingRule.PRODUCT, Accountant.PLD): 3.1,
    (SamplingRule.TWO_STAGE, Accountant.RDP): 4.2,
    (SamplingRule.PRODUCT, Accountant.RDP): None,
}


def make_accounting(run, record=None, **changes):
    """What a worker finds in the run's training record, which the team's own key signed; `record` is its content."""
    team = run.submission.team
    if not run.artifacts.filter(kind=ArtifactKind.TRAINING_RECORD).exists():
        make_artifact(run, ArtifactKind.TRAINING_RECORD, record or f"record {next(numbers)}".encode())
    if "run_token" not in changes:
        changes["run_token"] = make_token(team, run.submission.track).token
    take_up(run, changes["run_token"])
    if "public_key" not in changes:
        changes["public_key"] = (team.keys.first() or make_key(team)).public_key
    privacy = TrackRules.model_validate(run.rules).privacy
    decides = (privacy.sampling_rule, privacy.accountant)
    epsilons = [
        Epsilon(
            sampling_rule=rule,
            accountant=accountant,
            epsilon=epsilon,
            within_budget=epsilon is not None and epsilon <= 4,
            margin=None if epsilon is None else 4 - epsilon,
            decides=(rule, accountant) == decides,
        )
        for (rule, accountant), epsilon in EPSILONS.items()
    ]
    result = {
        "epsilon": 3.9,
        "epsilons": epsilons,
        "epsilon_claimed": 4,
        "delta": 1e-5,
        "rounds": 3,
        "accountant": "PLD, evaluator 1, grid 1e-4",
        "within_budget": True,
        "events": [Gaussian(effective_noise_multiplier=4, rounds=3)],
        "checks": [
            Check(id="record.budget", status=CheckStatus.PASSED, expected="at most 4", found="3.9"),
            Check(id="record.linkage", status=CheckStatus.PASSED),
            Check(id="record.whole_change", status=CheckStatus.PASSED),
            Check(
                id="record.providers",
                status=CheckStatus.PASSED,
                expected="17 providers",
                found="18 providers",
            ),
        ],
    }
    return AccountingResult(**{**result, **changes})


def take_up(run, text):
    """What the site does with the run's record when it is uploaded, except that it rejects nothing."""
    token = RunToken.objects.filter(token=text or "").first()
    sha256 = run.artifacts.get(kind=ArtifactKind.TRAINING_RECORD).upload.sha256
    if token and not token.record_sha256:
        token.record_sha256, token.challenge = sha256, run.challenge
        token.challenged_at = timezone.now()
        token.save()
    elif token and token.record_sha256 == sha256:
        run.challenge = token.challenge
        run.save(update_fields=["challenge"])


def make_result(evaluation, step):
    if step is Step.ACCOUNTING:
        return make_accounting(evaluation.run)
    if step is Step.VALIDATE:
        return RESULTS[step].model_copy(update={"sha256": checkpoint_sha256(evaluation.run)})
    if step is Step.LEAKAGE:
        return make_leakage(evaluation)
    if step is Step.SCORING:
        return RESULTS[step].model_copy(update={"checkpoint_sha256": checkpoint_sha256(evaluation.run)})
    return RESULTS[step]


FIGURES = {"auc": 0.65, "balanced_accuracy": 0.6, "tpr_at_1_percent": 0.05, "tpr_at_10_percent": 0.2}


def make_leakage(evaluation, **figures):
    return LeakageResult(
        leakage=Leakage(providers=40, **(figures or FIGURES)),
        leakage_set_sha256=SHA256,
        checkpoint_sha256=checkpoint_sha256(evaluation.run),
    )


def checkpoint_sha256(run):
    """That of the run's checkpoint, which is made if there is none."""
    checkpoint = run.artifacts.filter(kind=ArtifactKind.CHECKPOINT).first()
    checkpoint = checkpoint or make_artifact(run, ArtifactKind.CHECKPOINT, f"weights {run.pk}".encode())
    return checkpoint.upload.sha256


def signed(message):
    """The message as its job's worker sends it."""
    secret = step_secret(message.evaluation, message.attempt, message.step)
    return sign(message, secret).model_dump(mode="json")


def make_report(evaluation, step, outcome=Outcome.PASSED, **fields):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    defaults = {
        "evaluation": evaluation.pk,
        "attempt": evaluation.attempt,
        "step": step,
        "outcome": outcome,
        "provenance": Provenance(
            worker="gpu-1", evaluator_version="1", started_at=moment, finished_at=moment
        ),
    }
    if outcome is Outcome.PASSED and "result" not in fields:
        fields["result"] = make_result(evaluation, step)
    return WorkerReport(**{**defaults, **fields})


def make_progress(evaluation, **fields):
    defaults = {"evaluation": evaluation.pk, "attempt": evaluation.attempt, "step": evaluation.step}
    return Progress(**{**defaults, **fields})


def fresh(row):
    """Return the row as the database has it now."""
    return type(row).objects.get(pk=row.pk)
