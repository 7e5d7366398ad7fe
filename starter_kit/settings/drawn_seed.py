"""The seed of a run whose settings name none.

On a CPU, equal settings, data, base weights and seeds give the same checkpoint to the bit, and a site accepts each
checkpoint only once. So a new run draws its seed, and stores it with its settings.
"""

import secrets
from pathlib import Path
from typing import TypeVar

from starter_kit.settings.files import read_settings_file
from starter_kit.settings.run_settings import RunSettings

SEED_BITS = 32

Settings = TypeVar("Settings", bound=RunSettings)


def with_seed(settings: Settings, interrupted: Path | None = None) -> tuple[Settings, bool]:
    """Return the settings with the seed that they name, else with another one, and whether that was drawn now.

    Args:
        interrupted: The stored settings of the run that is resumed, whose seed is kept; None for a new run.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The stored settings can't be read.
    """
    if "seed" in settings.model_fields_set:
        return settings, False
    stored = read_settings_file(interrupted).get("seed") if interrupted and interrupted.is_file() else None
    seed = stored if isinstance(stored, int) else secrets.randbits(SEED_BITS)
    return settings.model_copy(update={"seed": seed}), stored is None
