"""The method's side of a rerun: `train_again` runs in a sandbox, with the attached files.

What it writes is from an untrusted process: `starter_kit.examining.rerun` treats it as an upload.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator.errors import ProblemError
from starter_kit.runs.folder import FILES
from starter_kit.runs.progress import Watcher
from starter_kit.runs.training import train
from starter_kit.settings.configuration import load_settings
from starter_kit.site.credentials import Credentials


def train_again(inputs: Any, _: Callable[[object], None]) -> dict[str, object]:
    """Train with the `settings` file on `data` from `base`, and write the run folder `out`.

    Its record, if it has one, is for `track`, has no run token and is signed with a key of its own. `further` is added
    to the seed of the settings.

    Returns:
        The names of the run's `files` by their kind, or the `problems` for which there is none.
    """
    try:
        seed = load_settings(inputs["settings"]).seed + int(inputs["further"])
        # The run can't be recognized by its place, its token or its key.
        train(
            load_settings(inputs["settings"], [f"seed={seed}", "device=cpu"]),
            data=Path(inputs["data"]),
            base=Path(inputs["base"]),
            out=Path(inputs["out"]),
            track=inputs["track"],
            credentials=lambda: Credentials(Ed25519PrivateKey.generate(), None),
            watcher=Watcher(),
        )
    except ProblemError as error:
        return {"files": {}, "problems": [problem.model_dump(mode="json") for problem in error.problems]}
    present = {kind: name for kind, name in FILES.items() if Path(inputs["out"], name).is_file()}
    return {"files": present, "problems": []}
