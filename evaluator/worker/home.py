"""Where a worker's files are by default: under `PFL_HOME`, as those of a site on the same machine."""

import os
from pathlib import Path


def home() -> Path:
    """Return the folder that `PFL_HOME` names, else `var` in the working folder."""
    return Path(os.environ.get("PFL_HOME") or "var").resolve()


def broker_url() -> str:
    """Return the address of the broker: `PFL_BROKER_URL`, else the file that a site of the same home uses."""
    return os.environ.get("PFL_BROKER_URL") or f"sqlite:///{home()}/broker.sqlite3"


def evaluator_home() -> Path:
    """Return the worker's own folder: `PFL_EVALUATOR_HOME`, else `evaluator` in the home."""
    return Path(os.environ.get("PFL_EVALUATOR_HOME") or home() / "evaluator")
