"""Training runs on pocket data, for the tests of what comes after training."""

from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from starter_kit.runs.folder import RunFolder
from starter_kit.runs.training import train
from starter_kit.runs.watching import Watcher
from starter_kit.settings.configuration import load_settings
from starter_kit.site.credentials import Credentials

KEY = Ed25519PrivateKey.generate()
RUN_TOKEN = "a-token-of-the-site"
FEW_STEPS = ["rounds=2", "local.max_steps=1", "max_input_tokens=32"]


def trained(
    config: str,
    base: Path,
    data: Path,
    out: Path,
    changes: Sequence[str] = (),
    run_token: str | None = RUN_TOKEN,
    *,
    watcher: Watcher | None = None,
    resume: bool = False,
) -> RunFolder:
    """A finished run of two quick rounds."""
    train(
        load_settings(config, [*FEW_STEPS, *changes]),
        data=data,
        base=base,
        out=out,
        track="track-2",
        credentials=lambda: Credentials(KEY, run_token),
        watcher=watcher or Watcher(),
        resume=resume,
    )
    return RunFolder(out)
