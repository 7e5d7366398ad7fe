"""The code that a count is of, so that a count by other code is known as such."""

from collections.abc import Sequence

from starter_kit.settings.configuration import load_settings

METHODS = "starter_kit.methods."


def method_files(config: str, changes: Sequence[str] = ()) -> list[str]:
    """Return the kit's files that define the method of a config."""
    known = [kind.__module__ for kind in type(load_settings(config, changes)).__mro__]
    return sorted({f"{name.replace('.', '/')}.py" for name in known if name.startswith(METHODS)})


def settings_text(config: str, changes: Sequence[str] = ()) -> str:
    """Return the settings of a config with `changes`."""
    return load_settings(config, changes).model_dump_json()
