"""What a run on one's own disk leaks, and its audit with canaries."""

from pathlib import Path

from evaluator.accounting.membership import membership_bounds, privacy_profiles
from evaluator.auditing.audit import AuditResult, Claim, audit, provider_scores
from evaluator.auditing.escrow import SPLIT, Escrow
from evaluator.docvqa.dataset import Dataset
from evaluator.leakage.models import losses_of
from evaluator.mechanisms.mechanism import SamplingRule
from evaluator.mechanisms.values import MAX_ROUNDS
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.progress import OnProgress
from evaluator.records.epsilon import releases
from starter_kit.runs.folder import FILES, RunFolder

ESCROW_FILE = "escrow.json"
# Of the Gaussian that bounds the run: the audit uses it on hundreds of canaries at once.
CURVE_DELTA = 1e-9


def audit_run(
    checkpoint: Path, base: Path, escrow_folder: Path, claim: Claim, on_progress: OnProgress
) -> AuditResult:
    """Return what the canaries of `pfl data canaries` show about a checkpoint's claim.

    Raises:
        ProblemError: (`E_AUDIT_ESCROW`) The escrow file can't be read, or the data beside it isn't its own.
    """
    escrow = Escrow.read(escrow_folder / ESCROW_FILE)
    canaries = Dataset(escrow_folder, SPLIT)
    escrow.check_data(canaries)
    before, after = losses_of(checkpoint, base, canaries, on_progress=on_progress)
    owners = [canaries.pages[question.page].provider for question in canaries.questions]
    return audit(escrow, provider_scores(owners, before, after), claim)


def claim_of(run: Path) -> Claim | None:
    """Return what a run folder's training record claims, with the Gaussian that bounds it; None without a record."""
    if not (run / FILES[ArtifactKind.TRAINING_RECORD]).is_file():
        return None
    record = RunFolder(run).record(max_rounds=MAX_ROUNDS)
    events = releases(record, SamplingRule.TWO_STAGE)
    mu = membership_bounds(privacy_profiles(events), CURVE_DELTA).gaussian_mu
    return Claim(record.claimed_epsilon, record.run.delta, mu)
