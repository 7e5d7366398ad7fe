"""Answering the site's challenge: the annex of a finished run, with the blocks that the challenge asks for."""

from dataclasses import replace
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from evaluator.mechanisms.values import MAX_ROUNDS
from evaluator.messages.jobs import ArtifactKind
from evaluator.records.annex import Annex, read_annex, write_annex
from evaluator.records.certificate import drawn_blocks
from evaluator.records.lines import TrainingRecord
from starter_kit.reporting.files import replacing
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.vectors import UPDATE, WEIGHTS, VectorFolder

RESTORE = (
    "Restore the folder `vectors` of the run, or the annex that answers the challenge; without them, train again with "
    "another run token."
)


def answer_challenge(run: Path, challenge: str) -> bool:
    """Make the run's annex answer `challenge`, and return whether it had to be written; it is replaced as a whole.

    Raises:
        ProblemError: The record or its annex is missing or can't be read, the annex is another run's, or
            (`E_RECORD_CHALLENGE`) the run's vectors were removed.
    """
    record, annex = read_both(run)
    if annex.challenge == challenge:
        return False
    vectors, rounds = VectorFolder.of(run, record.run.numel), len(record.rounds)
    vectors.require(rounds, next_step=RESTORE)
    drawn = drawn_blocks(challenge, rounds, record.run.numels)
    answered = replace(
        annex,
        challenge=challenge,
        openings=vectors.openings(UPDATE, drawn.updates),
        weights=vectors.openings(WEIGHTS, drawn.weights),
    )
    with replacing(RunFolder(run).file(ArtifactKind.TRAINING_ANNEX), mode=0o600) as new:
        write_annex(new, answered)
    return True


def require_answerable(run: Path) -> Annex:
    """Return the run's annex. Raise `ProblemError` where no challenge that the site may draw could be answered.

    An annex that answers a challenge already may be the answer to the site's.
    """
    record, annex = read_both(run)
    if annex.challenge == record.own_challenge:
        VectorFolder.of(run, record.run.numel).require(len(record.rounds), next_step=RESTORE)
    return annex


def read_both(run: Path) -> tuple[TrainingRecord, Annex]:
    """Read the record of a run and the annex whose body it names. Raises `ProblemError`."""
    folder = RunFolder(run)
    record = folder.record(max_rounds=MAX_ROUNDS)
    path = folder.file(ArtifactKind.TRAINING_ANNEX)
    annex = read_annex(path, clients=record.run.clients, max_rounds=MAX_ROUNDS)
    if annex.body_sha256 != record.end.annex_body_sha256:
        raise ProblemError.of(
            ErrorCode.RECORD_ANNEX,
            where=str(path),
            expected=f"a body with SHA-256 {record.end.annex_body_sha256}, as in the record",
            found=annex.body_sha256,
        )
    return record, annex


def remove_vectors(run: Path) -> int:
    """Delete the vectors that a run kept for its challenge, and return how many bytes they took."""
    return VectorFolder.of(run, 0).remove()
