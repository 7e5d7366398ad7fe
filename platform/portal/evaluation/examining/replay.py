"""L2: one round of a replayable run, drawn after its record, trained again by the attached code in the sandbox."""

from dataclasses import dataclass
from pathlib import Path

from evaluator.messages.examinations import ReplayReport
from evaluator.messages.jobs import ArtifactKind, TrustLevel
from portal.accounts.models import User
from portal.evaluation.examining.examinations import conclude, reject_unscored
from portal.evaluation.examining.kit_sandbox import KitSandbox
from portal.evaluation.examining.run_files import RunFiles, fetched
from portal.evaluation.models import Examination
from portal.submissions.models import Run

JUDGE = "starter_kit.replay.confined"
HOUR_S = 3600
# Beside the round itself, which a round that doesn't agree is trained twice for.
OTHER_HOURS = 1


@dataclass(frozen=True)
class ReplayOptions:
    """What a replay is made with.

    Attributes:
        data: The data folder with the training split.
        base: The folder of the base weights.
        hours: How long one training of the round may take.
    """

    data: Path
    base: Path
    hours: float


def replay_round(run: Run, options: ReplayOptions, *, by: User | None) -> Examination:
    """Replay the drawn round, and give the run its trust level if it agrees.

    Raises:
        ProblemError: The run isn't scored, or lacks a file, such as the opening of its round.
        CannotExamineError: Nothing can be examined here.
    """
    reject_unscored(run)
    required = [
        ArtifactKind.SETTINGS,
        ArtifactKind.TRAINING_RECORD,
        ArtifactKind.TRAINING_ANNEX,
        ArtifactKind.ROUND_OPENING,
    ]
    with (
        fetched(run, required=required, optional=[ArtifactKind.METHOD_FILE]) as files,
        KitSandbox() as kit,
    ):
        identity = kit.identify(files)
        report = _report(kit, files, run.challenge, options)
    return conclude(run, TrustLevel.REPLAYED, "replay", report, identity, by=by)


def _report(kit: KitSandbox, files: RunFiles, challenge: str, options: ReplayOptions) -> ReplayReport:
    inputs = {
        "record": str(files.paths[ArtifactKind.TRAINING_RECORD]),
        "annex": str(files.paths[ArtifactKind.TRAINING_ANNEX]),
        "opening": str(files.paths[ArtifactKind.ROUND_OPENING]),
        "settings": str(files.settings),
        "challenge": challenge,
        "data": str(options.data.resolve()),
        "base": str(options.base.resolve()),
    }
    timeout_s = HOUR_S * (2 * options.hours + OTHER_HOURS)
    written = kit.judge(JUDGE, {"inputs": inputs, "hours": options.hours}, timeout_s=timeout_s)
    return ReplayReport.model_validate_json(written)
