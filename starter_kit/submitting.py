"""What `pfl submit` uploads and where: a plan by the track's rules, the uploads and the submission."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluator.contracts import ArtifactKind
from evaluator.errors import ErrorCode, ProblemError
from evaluator.progress import OnProgress
from evaluator.records.lines import TrainingRecord
from starter_kit.runs.folder import RunFolder, budget_of
from starter_kit.site.api import SiteClient


@dataclass(frozen=True)
class PlannedRun:
    """One run with its place.

    Attributes:
        budget: ε of its board; None for the only board of a track where ε plays no part.
        public_key: The key that signed its record, where it has one.
    """

    budget: float | None
    files: dict[ArtifactKind, Path]
    public_key: str | None = None


@dataclass(frozen=True)
class Plan:
    track: str
    runs: list[PlannedRun]
    proof: Path | None

    @property
    def size_bytes(self) -> int:
        files = [path for run in self.runs for path in run.files.values()]
        return sum(path.stat().st_size for path in [*files, *([self.proof] if self.proof else [])])


def prepare(client: SiteClient, track: str, folders: Sequence[Path], proof: Path | None) -> Plan:
    """What to upload, by the track's own rules, checked before anything is sent.

    Raises:
        ProblemError: The track doesn't exist, a file is missing, a record is no good or carries no run token, or two
            runs are for the same board.
    """
    rules = _rules_of(client, track)
    kinds = [ArtifactKind(kind) for kind in rules["run_artifacts"]]
    private = ArtifactKind.TRAINING_RECORD in kinds
    runs: dict[float | None, PlannedRun] = {}
    for path in folders:
        folder = RunFolder(path)
        files = {kind: folder.file(kind) for kind in kinds}
        if private:
            record = submittable(folder.record(max_rounds=rules["max_rounds"]), path)
            run = PlannedRun(budget_of(record, rules["budgets"]), files, record.end.public_key)
        else:
            run = PlannedRun(None, files)
        if run.budget in runs:
            raise ProblemError.of(
                ErrorCode.SUBMISSION_BUDGET,
                where=str(path),
                expected=f"one run for {f'ε = {run.budget:g}' if run.budget else 'this track'}",
                found="another one",
            )
        runs[run.budget] = run
    if ArtifactKind.PRIVACY_PROOF in rules["submission_artifacts"] and not (proof and proof.is_file()):
        raise ProblemError.of(
            ErrorCode.ARTIFACT_MISSING, where=f"--proof {proof or ''}", expected="the privacy proof"
        )
    return Plan(track, list(runs.values()), proof)


def submittable(record: TrainingRecord, folder: Path) -> TrainingRecord:
    """`record`; raises `ProblemError` (`E_RECORD_TOKEN`) if it carries no run token."""
    if record.run.run_token is None:
        raise ProblemError.of(
            ErrorCode.RECORD_TOKEN,
            where=str(folder),
            expected="a run token, asked for before training",
            found="null",
        )
    return record


def register_keys(client: SiteClient, plan: Plan) -> list[str]:
    """Register the keys that signed the runs' records, where the site doesn't know them yet; those keys."""
    used = {run.public_key for run in plan.runs if run.public_key}
    new = sorted(used - {key["public_key"] for key in client.signing_keys()}) if used else []
    for public_key in new:
        client.register_key(public_key, "starter kit")
    return new


def send(
    client: SiteClient, plan: Plan, title: str, description: str, on_progress: OnProgress
) -> dict[str, Any]:
    """Upload everything and submit; goes on with a draft of the same title that an earlier call left."""
    drafts = client.drafts(plan.track, title)
    draft = drafts[0] if drafts else client.create_submission(plan.track, title, description)
    total, done = plan.size_bytes, 0

    def count(stored_bytes: int) -> None:
        nonlocal done
        done += stored_bytes
        on_progress(done, total)

    for run in plan.runs:
        run_id = client.add_run(draft["id"], run.budget)
        for kind, path in run.files.items():
            client.upload(draft["id"], run_id, kind, path, count)
    if plan.proof:
        client.upload(draft["id"], None, ArtifactKind.PRIVACY_PROOF, plan.proof, count)
    return client.submit(draft["id"])


def _rules_of(client: SiteClient, track: str) -> dict[str, Any]:
    tracks = client.tracks()
    for rules in tracks:
        if rules["slug"] == track:
            return rules
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where="--track",
        expected=f"one of {', '.join(rules['slug'] for rules in tracks)}",
        found=track,
    )
