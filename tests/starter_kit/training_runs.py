"""Training runs on pocket data, for the tests of what comes after training."""

from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.training import OpenEngine, in_process, train
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings
from starter_kit.site.credentials import Credentials

KEY = Ed25519PrivateKey.generate()
RUN_TOKEN = "a-token-of-the-site"
FEW_STEPS = ["rounds=2", "max_input_tokens=32", "local.max_steps=1"]


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
    open_engine: OpenEngine = in_process,
) -> RunFolder:
    """A finished run of two quick rounds."""
    trains = isinstance(load_settings(config), LocalTrainingSettings)
    quick = FEW_STEPS if trains else [change for change in FEW_STEPS if not change.startswith("local.")]
    train(
        load_settings(config, [*quick, *changes]),
        data=data,
        base=base,
        out=out,
        track="track-2",
        credentials=lambda: Credentials(KEY, run_token),
        watcher=watcher or Watcher(),
        resume=resume,
        open_engine=open_engine,
    )
    return RunFolder(out)
