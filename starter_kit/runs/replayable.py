"""Runs of which a round can be replayed: which runs can be such, and the secret that they keep.

The secret is random bytes of the operating system in the run's folder, `replay/secret`, which only the owner can read.
Coins and noise of all rounds follow from it (`evaluator.records.round_keys`), so nobody else may ever have it. The
folder also keeps the vectors of all rounds until one of them was opened, with 8·d bytes for each round.
"""

import os
import shutil
from pathlib import Path
from secrets import token_bytes

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.round_keys import SECRET_BYTES
from evaluator.records.server_steps import SumStep
from starter_kit.federation.client_state import Kept
from starter_kit.runs.resuming import RunState, fsync_path, reading_unfinished_run
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.run_settings import PrivateSettings

REPLAY = "replay"
SECRET = "secret"  # noqa: S105  (the name of a file)
_NO_STATE = "the training record doesn't commit to what is kept from round to round"


def is_replayable(setup: RunSetup) -> bool:
    """Return whether the settings ask for a run of which a round can be replayed."""
    return isinstance(setup.settings, PrivateSettings) and setup.settings.replayable


def check_replayable(setup: RunSetup, *, apart: bool) -> None:
    """Reject the setting `replayable` where a replay could show nothing, or would cost what the run promises.

    Args:
        apart: Whether clients run separately from the server.

    Raises:
        ProblemError: (`E_REPLAY_UNSUPPORTED`) With the reason.
    """
    settings = setup.settings
    if not isinstance(settings, PrivateSettings) or not settings.replayable:
        return
    if settings.not_replayable:
        raise _unsupported(settings.method, settings.not_replayable)
    if setup.record_terms is None:
        raise _unsupported(settings.method, "it writes no training record")
    if not isinstance(setup.record_terms.server, SumStep):
        raise _unsupported(f"{settings.method}, server rule {setup.record_terms.server.rule}", _NO_STATE)
    if apart:
        raise _unsupported(
            "clients on machines of their own", "the server would have the keys of their coins and noise"
        )


def check_stateless(setup: RunSetup, state: RunState) -> None:
    """Reject a replayable run whose parties keep something from round to round.

    Raises:
        ProblemError: (`E_REPLAY_UNSUPPORTED`) They do.
    """
    kept = [client for client, kept in state.clients.items() if not isinstance(kept, Kept) or kept.tensors]
    if is_replayable(setup) and (state.server or kept):
        raise _unsupported(setup.settings.method, _NO_STATE)


def new_secret(folder: Path) -> bytes:
    """Draw the secret of a new run, and store it in the run's `folder`. Raises OSError where that fails."""
    secret = token_bytes(SECRET_BYTES)
    (folder / REPLAY).mkdir(mode=0o700)
    path = folder / REPLAY / SECRET
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret.hex())
    for written in (path, folder / REPLAY, folder):
        fsync_path(written)
    return secret


def stored_secret(folder: Path) -> bytes:
    """Read the secret of an interrupted run from its `folder`.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) It isn't there.
    """
    with reading_unfinished_run(folder):
        return read_secret(folder)


def read_secret(folder: Path) -> bytes:
    """Read the secret of a run. Raises OSError or ValueError where it isn't there."""
    secret = bytes.fromhex((folder / REPLAY / SECRET).read_text(encoding="utf-8"))
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"{SECRET} has {len(secret)} bytes, not {SECRET_BYTES}")
    return secret


def remove_secret(folder: Path) -> None:
    """Delete the secret of a run in its `folder`, if it has one: no other round can be opened from then on."""
    if (folder / REPLAY).exists():
        shutil.rmtree(folder / REPLAY)


def _unsupported(found: str, why: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.REPLAY_UNSUPPORTED,
        where="replayable",
        expected="a run that can be replayed",
        found=f"{found}: {why}",
    )
