"""The files that a submission must or may have, and how large each may be."""

from docvqa_site.challenge.models import Track
from evaluator.errors import ErrorCode, ProblemError
from evaluator.folding import reading
from evaluator.folding.lines import MAX_CODEC_BYTES
from evaluator.messages.jobs import ArtifactKind
from evaluator.records import annex

MEGABYTE = 10**6
MAX_BYTES = {
    ArtifactKind.COMMUNICATION_LOG: 200 * MEGABYTE,
    ArtifactKind.TRAINING_RECORD: 500 * MEGABYTE,
    ArtifactKind.TRAINING_ANNEX: annex.MAX_BYTES,
    ArtifactKind.SETTINGS: MEGABYTE,
    ArtifactKind.METHOD_FILE: MEGABYTE,
    # Four rounds of a model of 250 million parameters, three vectors of each, and a line.
    ArtifactKind.ROUND_OPENING: 12_001 * MEGABYTE,
    ArtifactKind.PRIVACY_PROOF: 20 * MEGABYTE,
    ArtifactKind.TRANSCRIPT: reading.MAX_BYTES,
    ArtifactKind.MESSAGES: reading.MAX_MESSAGES_BYTES,
    ArtifactKind.CODEC_FILE: MAX_CODEC_BYTES,
}
SUFFIXES = {
    ArtifactKind.CHECKPOINT: [".safetensors"],
    ArtifactKind.COMMUNICATION_LOG: [".csv"],
    ArtifactKind.TRAINING_RECORD: [".jsonl"],
    ArtifactKind.TRAINING_ANNEX: [".jsonl"],
    ArtifactKind.SETTINGS: [".yaml", ".yml"],
    ArtifactKind.METHOD_FILE: [".py"],
    ArtifactKind.ROUND_OPENING: [".bin"],
    ArtifactKind.PRIVACY_PROOF: [".pdf", ".md", ".ipynb"],
    ArtifactKind.TRANSCRIPT: [".jsonl"],
    ArtifactKind.MESSAGES: [".bin"],
    ArtifactKind.CODEC_FILE: [".py"],
}
# Of a file with such a name; PyTorch's are archives of pickles.
ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".7z", ".pt", ".pth", ".pkl", ".pickle")
NOT_ARCHIVED = "Select the file itself: archives and pickles are never opened."


def max_bytes(track: Track, kind: ArtifactKind) -> int:
    """Return the size in bytes that an artifact of this kind may have."""
    return track.max_checkpoint_bytes if kind is ArtifactKind.CHECKPOINT else MAX_BYTES[kind]


def validate_artifact(
    track: Track, kind: str, *, of_run: bool, filename: str, size_bytes: int
) -> ArtifactKind:
    """Return the kind of an artifact that is about to be uploaded.

    Raises `ProblemError`: `E_ARTIFACT_KIND` when the track doesn't take it there or the file's name doesn't end
    as that kind's do, `E_ARTIFACT_SIZE` when it is too large.
    """
    of_a_run = [*track.kind.run_artifacts, *track.kind.optional_artifacts]
    allowed = of_a_run if of_run else track.kind.submission_artifacts
    if kind not in allowed:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_KIND,
            where="a run" if of_run else "the submission as a whole",
            expected=" or ".join(allowed) or "no file",
            found=kind,
        )
    known = ArtifactKind(kind)
    if not filename.lower().endswith(tuple(SUFFIXES[known])):
        words = known.replace("_", " ").removesuffix(" file")
        raise ProblemError.of(
            ErrorCode.ARTIFACT_KIND,
            message=f"This file type isn't accepted as the {words} file.",
            where=filename,
            expected=" or ".join(SUFFIXES[known]),
            next_step=NOT_ARCHIVED if filename.lower().endswith(ARCHIVES) else "Select a file of this type.",
        )
    if size_bytes > max_bytes(track, known):
        raise ProblemError.of(
            ErrorCode.ARTIFACT_SIZE,
            message=f"The {known.replace('_', ' ')} is larger than the track allows.",
            where=filename,
            expected=f"{max_bytes(track, known)} bytes or fewer",
            found=f"{size_bytes} bytes",
        )
    return known
