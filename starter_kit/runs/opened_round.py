"""Opening a round of a finished run for the organizers."""

import re
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.certificate import MAX_ROUNDS
from evaluator.records.lines import TrainingRecord
from evaluator.records.round_keys import drawn_round, key_path, round_key
from evaluator.records.round_opening import OpeningLine, check_opening, read_opening, write_opening
from starter_kit.reporting.files import replacing
from starter_kit.runs.folder import OPENING, RunFolder
from starter_kit.runs.round_secret import read_secret
from starter_kit.runs.vectors import UPDATE, WEIGHTS, VectorFolder


def open_round(run: Path, challenge: str) -> int:
    """Write the opening of the round that `challenge` draws into the folder `run`, and return the round's number.

    An opening of this round that is there stays, so that a run can be submitted again when its secret is gone.

    Args:
        challenge: What the site drew after the record was uploaded, 64 hexadecimal digits.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The challenge has another form; (`E_REPLAY_UNSUPPORTED`) the run isn't
            replayable; (`E_RUN_FOLDER`) its secret or vectors are gone, or another round was opened before.
    """
    record = RunFolder(run).record(max_rounds=MAX_ROUNDS)
    number = _drawn(record, challenge)
    path = run / OPENING
    if path.exists():
        _check_same_round(path, record, number)
        return number
    try:
        line = _line(run, record, number)
        stored = VectorFolder.of(run, record.run.numel)
        vectors = [
            stored.read(WEIGHTS, number - 1),
            stored.read(UPDATE, number),
            stored.read(WEIGHTS, number),
        ]
    except (OSError, ValueError) as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            where=str(run),
            expected="the secret and the vectors of a replayable run, as `pfl train` left them",
            found=" ".join(str(error).split()),
        ) from error
    with replacing(path, mode=0o600) as new:
        write_opening(new, line, vectors)
        check_opening(record, read_opening(new, record.run.numel), challenge)
    return number


def _drawn(record: TrainingRecord, challenge: str) -> int:
    if not re.fullmatch(r"[0-9a-f]{64}", challenge):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="--challenge",
            expected="the site's challenge, 64 hexadecimal digits",
            found=challenge,
        )
    if record.run.round_keys_root is None or not record.rounds:
        raise ProblemError.of(
            ErrorCode.REPLAY_UNSUPPORTED,
            where="training record, round_keys_root",
            expected="a run that was trained with replayable: true",
            found="one whose coins and noise nobody can draw again",
        )
    return drawn_round(challenge, len(record.rounds))


def _check_same_round(path: Path, record: TrainingRecord, number: int) -> None:
    """Reject opening a second round: each costs the guarantee of that round towards whoever sees it."""
    if (opened := read_opening(path, record.run.numel).line.round) != number:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            where=str(path),
            expected=f"the opening of round {number}",
            found=f"the opening of round {opened}",
            next_step="A site draws one round of a run, once. Remove the file only if nobody has seen it.",
        )


def _line(run: Path, record: TrainingRecord, number: int) -> OpeningLine:
    secret = read_secret(run)
    return OpeningLine(
        run_token=record.run.run_token,
        round=number,
        key=round_key(secret, number).hex(),
        path=key_path(secret, record.run.rounds, number),
    )
