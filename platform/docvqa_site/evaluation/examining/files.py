"""A run's files as local copies, for its examination."""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.db.models import QuerySet

from docvqa_site.submissions.models import Artifact, Run
from docvqa_site.uploads.models import UploadState
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind

SETTINGS_NAME = "settings.yaml"
PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True)
class RunFiles:
    """Verified copies of a run's files.

    Attributes:
        paths: The file of each kind. The method file is beside the settings, under its own name, for `pfl` looks for it
            there; all others are in folders of their own.
        sha256: The SHA-256 of each kind.
    """

    paths: dict[ArtifactKind, Path]
    sha256: dict[ArtifactKind, str]


def require(run: Run, kinds: Sequence[ArtifactKind]) -> None:
    """Raise `ProblemError` (`E_ARTIFACT_MISSING`) if a file was never attached, or was removed."""
    for kind in missing(run, kinds):
        raise ProblemError.of(ErrorCode.ARTIFACT_MISSING, where=str(run), expected=f"the {in_words(kind)}")


def missing(run: Run, kinds: Sequence[ArtifactKind]) -> list[ArtifactKind]:
    """Return which of these files the run doesn't have."""
    attached = set(_completed(run).filter(kind__in=kinds).values_list("kind", flat=True))
    return [kind for kind in kinds if kind not in attached]


def in_words(kind: ArtifactKind) -> str:
    return kind.replace("_", " ")


@contextmanager
def fetched(
    run: Run,
    *,
    required: Sequence[ArtifactKind],
    optional: Sequence[ArtifactKind] = (),
    on_piece: Callable[[], None] = lambda: None,
) -> Iterator[RunFiles]:
    """Copy files of the run into a temporary folder for as long as the block lasts.

    Args:
        on_piece: Called after each piece that was copied: files may be large.

    Raises:
        ProblemError: (`E_ARTIFACT_MISSING`) A required one is missing; (`E_ARTIFACT_HASH`) the store holds something
            else than was announced.
    """
    require(run, required)
    artifacts = list(_completed(run).filter(kind__in=[*required, *optional]).select_related("upload"))
    with tempfile.TemporaryDirectory(prefix="run-") as temporary:
        paths = {
            ArtifactKind(artifact.kind): _copy(artifact, Path(temporary), on_piece) for artifact in artifacts
        }
        yield RunFiles(paths, {ArtifactKind(artifact.kind): artifact.upload.sha256 for artifact in artifacts})


def _completed(run: Run) -> QuerySet[Artifact]:
    return run.artifacts.filter(upload__state=UploadState.COMPLETED)


def _copy(artifact: Artifact, folder: Path, on_piece: Callable[[], None]) -> Path:
    kind, upload = ArtifactKind(artifact.kind), artifact.upload
    beside_settings = kind in (ArtifactKind.SETTINGS, ArtifactKind.METHOD_FILE)
    name = SETTINGS_NAME if kind is ArtifactKind.SETTINGS else upload.filename
    path = folder / ("method" if beside_settings else kind) / name
    path.parent.mkdir(exist_ok=True)
    digest = hashlib.sha256()
    with current_store().open(upload.store_key) as source, path.open("wb") as target:
        while piece := source.read(PIECE_BYTES):
            digest.update(piece)
            target.write(piece)
            on_piece()
    if (found := digest.hexdigest()) != upload.sha256:
        raise ProblemError.of(ErrorCode.ARTIFACT_HASH, where=kind, expected=upload.sha256, found=found)
    return path
