"""The code that a count covers. Once that changes, the count is one by earlier code."""

from collections.abc import Iterable, Sequence

from starter_kit.runs.executed_code import code_sha256
from starter_kit.settings.configuration import load_settings

METHODS = "starter_kit.methods."


def covered_sha256(patterns: Iterable[str], config: str, changes: Sequence[str] = ()) -> str:
    """Return the hash of the files that match, the method of a config, and its settings with `changes`.

    The seed is left out, as noise, coins and data are new in every trial, and so is what a step computes in, which is
    float32 on a CPU.
    """
    settings = load_settings(config, changes)
    modules = [kind.__module__ for kind in type(settings).__mro__]
    files = [f"{name.replace('.', '/')}.py" for name in modules if name.startswith(METHODS)]
    return code_sha256([*patterns, *files], settings.model_dump_json(exclude={"seed", "compute"}))
