"""Where a worker's files are by default: under `PFL_HOME`, as those of a site on the same machine."""

import os
from pathlib import Path


def home() -> Path:
    """Return the folder that `PFL_HOME` names, else `var` in the working folder."""
    return Path(os.environ.get("PFL_HOME") or "var").resolve()


def broker_url() -> str:
    """Return the address of the broker: `PFL_BROKER_URL`, else the file that a site of the same home uses."""
    return os.environ.get("PFL_BROKER_URL") or f"sqlite:///{home()}/broker.sqlite3"


def sandbox_is_required() -> bool:
    """Whether a worker whose kernel confines steps incompletely takes no job: `PFL_SANDBOX`, `required` or `warn`.

    By default it is for every broker that others can reach, as that of a public site. Raises `ValueError` for another
    value.
    """
    wanted = os.environ.get("PFL_SANDBOX") or ("warn" if broker_url().startswith("sqlite:") else "required")
    if wanted not in {"required", "warn"}:
        raise ValueError(f"PFL_SANDBOX is {wanted!r}: set it to `required` or `warn`.")
    return wanted == "required"


def evaluator_home() -> Path:
    """Return the worker's own folder: `PFL_EVALUATOR_HOME`, else `evaluator` in the home."""
    return Path(os.environ.get("PFL_EVALUATOR_HOME") or home() / "evaluator")
