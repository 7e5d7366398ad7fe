"""A run's files as local copies, for the organizers' commands."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from portal.submissions.models import Artifact, Run
from portal.uploads.models import UploadState
from portal.uploads.stores import current_store

SETTINGS_NAME = "settings.yaml"


@dataclass(frozen=True)
class RunFiles:
    """Verified copies of a run's files.

    Attributes:
        folder: Has the settings and, beside them under its own name, the method file: `pfl` takes the settings there.
        paths: The file of each kind; all but these two are in folders of their own.
        sha256: The SHA-256 of each kind.
    """

    folder: Path
    paths: dict[ArtifactKind, Path]
    sha256: dict[ArtifactKind, str]

    @property
    def settings(self) -> Path:
        """The settings file."""
        return self.paths[ArtifactKind.SETTINGS]


@contextmanager
def fetched(
    run: Run, *, required: Sequence[ArtifactKind], optional: Sequence[ArtifactKind] = ()
) -> Iterator[RunFiles]:
    """Copy files of the run into a temporary folder for as long as the block lasts.

    Raises:
        ProblemError: (`E_ARTIFACT_MISSING`) A required one was never attached, or was removed; (`E_ARTIFACT_HASH`) the
            store holds something else than was announced.
    """
    artifacts = {
        ArtifactKind(artifact.kind): artifact
        for artifact in run.artifacts.filter(
            kind__in=[*required, *optional], upload__state=UploadState.COMPLETED
        ).select_related("upload")
    }
    for kind in required:
        if kind not in artifacts:
            raise ProblemError.of(
                ErrorCode.ARTIFACT_MISSING, where=str(run), expected=f"the {kind.replace('_', ' ')}"
            )
    with tempfile.TemporaryDirectory(prefix="run-") as temporary:
        paths = {kind: _copy(artifact, Path(temporary)) for kind, artifact in artifacts.items()}
        sha256 = {kind: artifact.upload.sha256 for kind, artifact in artifacts.items()}
        yield RunFiles(Path(temporary, "method"), paths, sha256)


def _copy(artifact: Artifact, folder: Path) -> Path:
    kind, upload = ArtifactKind(artifact.kind), artifact.upload
    beside_settings = kind in (ArtifactKind.SETTINGS, ArtifactKind.METHOD_FILE)
    name = SETTINGS_NAME if kind is ArtifactKind.SETTINGS else upload.filename
    path = folder / ("method" if beside_settings else kind) / name
    path.parent.mkdir(exist_ok=True)
    with current_store().open(upload.store_key) as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != upload.sha256:
        raise ProblemError.of(ErrorCode.ARTIFACT_HASH, where=kind, expected=upload.sha256, found=found)
    return path
