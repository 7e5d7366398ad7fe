"""L1: the harness of `pfl conformance` on a run's attached method, in the sandbox."""

import secrets

from pydantic import BaseModel, ConfigDict

from evaluator.errors import Problem
from evaluator.messages.examinations import ConformanceReport, ConformanceTest
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from portal.accounts.models import User
from portal.evaluation.examining.examinations import conclude, reject_unscored
from portal.evaluation.examining.kit_sandbox import KitSandbox
from portal.evaluation.examining.run_files import RunFiles, fetched
from portal.evaluation.models import Examination
from portal.submissions.models import Run

JUDGE = "starter_kit.conformance.confined"
# An examination asks the method's processes so many questions at most; each has ten times its computing time to wait.
QUESTIONS = 40
WAITING = 10


class HarnessResult(BaseModel):
    """What the harness writes, as far as a report has it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    unit: str
    seed: int
    seconds: float
    tests: list[ConformanceTest]
    problems: list[Problem]


def examine_method(run: Run, *, by: User | None, timeout_s: int, seed: int | None = None) -> Examination:
    """Examine the run's method, and give the run its trust level if it conforms.

    Args:
        timeout_s: Seconds of computing for each of the method's processes.
        seed: Of the synthetic data; by default a new one, which nobody can know in advance.

    Raises:
        ProblemError: The run isn't scored, or has no settings attached.
        CannotExamineError: Nothing can be examined here.
    """
    reject_unscored(run)
    optional = [ArtifactKind.METHOD_FILE, ArtifactKind.TRAINING_RECORD]
    with fetched(run, required=[ArtifactKind.SETTINGS], optional=optional) as files, KitSandbox() as kit:
        identity = kit.identify(files)
        report = _report(kit, files, secrets.randbits(32) if seed is None else seed, timeout_s)
    return conclude(run, TrustLevel.CONFORMING, "conformance", report, identity, by=by)


def _report(kit: KitSandbox, files: RunFiles, seed: int, timeout_s: int) -> ConformanceReport:
    inputs = {
        "inputs": {"method": str(files.settings), "seed": seed},
        "method_sha256": files.sha256.get(ArtifactKind.METHOD_FILE, ""),
        "timeout_s": timeout_s,
    }
    result = HarnessResult.model_validate_json(
        kit.judge(JUDGE, inputs, timeout_s=QUESTIONS * WAITING * timeout_s)
    )
    return ConformanceReport(**dict(result))
