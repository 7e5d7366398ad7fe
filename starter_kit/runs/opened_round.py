"""Opening rounds of a finished run for the organizers."""

import re
from collections.abc import Sequence
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import DRAWN_ROUNDS
from evaluator.records.certificate import MAX_ROUNDS
from evaluator.records.lines import TrainingRecord
from evaluator.records.round_keys import key_path, replayed_rounds, round_key
from evaluator.records.round_opening import (
    OpenedKey,
    OpeningLine,
    check_opening,
    numbers_of,
    read_opening,
    write_opening,
)
from starter_kit.reporting.files import replacing
from starter_kit.runs.folder import OPENING, RunFolder
from starter_kit.runs.round_secret import read_secret
from starter_kit.runs.vectors import UPDATE, WEIGHTS, VectorFolder


def open_rounds(run: Path, challenge: str, drawn: int = DRAWN_ROUNDS) -> list[int]:
    """Write the opening of the rounds to replay into the folder `run`, and return their numbers.

    An opening of these rounds that is there stays, so that a run can be submitted again when its secret is gone.

    Args:
        challenge: What the site drew after the record was uploaded, 64 hexadecimal digits.
        drawn: How many rounds it draws, beside the last one.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The challenge has another form; (`E_REPLAY_UNSUPPORTED`) the run isn't
            replayable; (`E_RUN_FOLDER`) its secret or vectors are gone, or other rounds were opened before.
    """
    record = RunFolder(run).record(max_rounds=MAX_ROUNDS)
    numbers = _drawn(record, challenge, drawn)
    path = run / OPENING
    if path.exists():
        _check_same_rounds(path, record, numbers)
        return numbers
    try:
        line = _line(run, record, numbers)
        stored = VectorFolder.of(run, record.run.numel)
        vectors = [
            stored.read(kind, number - before)
            for number in numbers
            for kind, before in ((WEIGHTS, 1), (UPDATE, 0), (WEIGHTS, 0))
        ]
    except (OSError, ValueError) as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The rounds of this run can't be opened.",
            where=str(run),
            expected="the secret and the vectors of a replayable run, as `pfl train` left them",
            found=" ".join(str(error).split()),
        ) from error
    with replacing(path, mode=0o600) as new:
        write_opening(new, line, vectors)
        check_opening(record, read_opening(new, record.run.numel), challenge, drawn)
    return numbers


def require_challenge(challenge: str) -> None:
    """Raise `ProblemError` (`E_CONFIGURATION`) unless this has the form of a site's challenge."""
    if not re.fullmatch(r"[0-9a-f]{64}", challenge):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where="--challenge",
            expected="the site's challenge, 64 hexadecimal digits",
            found=challenge,
        )


def _drawn(record: TrainingRecord, challenge: str, drawn: int) -> list[int]:
    require_challenge(challenge)
    if record.run.round_keys_root is None or not record.rounds:
        raise ProblemError.of(
            ErrorCode.REPLAY_UNSUPPORTED,
            where="training record, round_keys_root",
            expected="a run that was trained with replayable: true",
            found="one whose coins and noise nobody can draw again",
        )
    return replayed_rounds(challenge, len(record.rounds), drawn)


def _check_same_rounds(path: Path, record: TrainingRecord, numbers: list[int]) -> None:
    """Reject opening further rounds: each costs the guarantee of that round towards whoever sees it."""
    if (opened := numbers_of(read_opening(path, record.run.numel).line)) != numbers:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="The file opens other rounds than the site has drawn.",
            where=str(path),
            expected=f"the opening of {rounds_in_words(numbers)}",
            found=f"the opening of {rounds_in_words(opened)}",
            next_step="A site draws rounds of a run once. Remove the file only if nobody has seen it.",
        )


def rounds_in_words(numbers: Sequence[int]) -> str:
    """Return numbers of rounds in words, such as `rounds 2, 7`."""
    return f"round{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _line(run: Path, record: TrainingRecord, numbers: Sequence[int]) -> OpeningLine:
    secret = read_secret(run)
    keys = [
        OpenedKey(
            round=number,
            key=round_key(secret, number).hex(),
            path=key_path(secret, record.run.rounds, number),
        )
        for number in numbers
    ]
    return OpeningLine(run_token=record.run.run_token, rounds=keys)
