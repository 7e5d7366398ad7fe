"""The secret of a replayable run, from which its coins and noise follow: random bytes in `replay/secret` of its folder.

Only the owner can read it. Nobody else may ever have it, as with it the noise of all rounds can be drawn again.
"""

import shutil
from pathlib import Path
from secrets import token_bytes

from evaluator.records.round_keys import SECRET_BYTES
from starter_kit.reporting.files import fsync_path, replacing

REPLAY = "replay"
SECRET = "secret"  # noqa: S105  (the name of a file)


def new_secret(folder: Path) -> bytes:
    """Draw the secret of a new run, and store it in the run's `folder`. Raises OSError where that fails."""
    secret = token_bytes(SECRET_BYTES)
    (folder / REPLAY).mkdir(mode=0o700)
    with replacing(folder / REPLAY / SECRET, mode=0o600) as new:
        new.write_text(secret.hex(), encoding="utf-8")
    fsync_path(folder)
    return secret


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
