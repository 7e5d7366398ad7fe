"""Settings of a training run: a YAML file, read safely, with single settings changed on the command line.

The file's `method` names the module that defines the class of the settings. Unknown and impossible settings are
rejected by name, so that a misspelled one is never ignored; nothing is converted. A file of the competition's kit is
translated first.
"""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from pydantic import ValidationError

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.own_files import OwnFile, run_own_file
from starter_kit.plugin import CONFIG, ORIGINS, find_python_file
from starter_kit.settings.config_files import find_config, method_names
from starter_kit.settings.files import parse, read_settings_file, with_setting
from starter_kit.settings.official_keys import is_official, translate, translate_flags
from starter_kit.settings.own_methods import own_file, own_files
from starter_kit.settings.problems import problems_of
from starter_kit.settings.run_settings import RunSettings

# The key of the SHA-256 of the method's file, in the settings that a run stores.
METHOD_SHA256 = "method_sha256"


def load_settings(
    config: str,
    changes: Sequence[str] = (),
    *,
    flags: Mapping[str, object] = {},
    on_note: Callable[[str], None] | None = None,
) -> RunSettings:
    """Load the settings of `config`, a YAML file or the name of one in starter_kit/configs, with `changes` applied.

    A change is `name=value`, with the value in YAML and dots for nested names: `local.learning_rate=0.001`.

    Args:
        flags: Flags of the competition's kit, see `starter_kit.settings.official_keys.FLAGS`; `changes` override them.
        on_note: Called with a line on each flag, and on each key of a file of the competition's kit.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Some settings are wrong; there is one problem for each.
    """
    path = find_config(config)
    values = read_settings_file(path)
    translation = (translate if is_official(values) else translate_flags)(path, values, flags)
    if on_note:
        for note in translation.notes:
            on_note(note)
    values, origins = translation.values, translation.origins
    for change in changes:
        name, value = _read_change(change)
        values = with_setting(values, name, value)
        origins[name] = f"--set {name}"
    settings = settings_class(values.get("method"), path)
    if file := own_file(settings):
        values = _with_known_file(values, file, path)
    try:
        loaded = settings.model_validate_json(
            json.dumps(values, default=str), strict=True, context={CONFIG: path, ORIGINS: origins}
        )
    except ValidationError as error:
        raise ProblemError(*problems_of(error, settings, path.name, origins)) from error
    # Two files of one name are rejected here.
    own_files(loaded)
    return loaded


def method_module(method: str) -> ModuleType:
    """Import the module of one of the kit's own methods."""
    return importlib.import_module(f"starter_kit.methods.{method.replace('-', '_')}")


def settings_class(method: object, config: Path) -> type[RunSettings]:
    """Return the class of a method's settings: of one of the kit's methods by its name, of a Python file by its path.

    A path is first resolved from the config's folder, then from the current one.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There is no such method, its file fails or has no class `Settings` of its own.
    """
    kits = method in method_names()
    module = method_module(str(method)) if kits else run_own_file(_find_method_file(method, config))
    settings = getattr(module, "Settings", None)
    if (
        not (isinstance(settings, type) and issubclass(settings, RunSettings))
        or settings.__module__ != module.__name__
    ):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=f"{config.name}, method",
            expected="a file with its own class Settings, derived from starter_kit.settings.run_settings.RunSettings",
            found=method,
        )
    return settings


def snapshot(settings: RunSettings) -> str:
    """Return `settings` as YAML that `load_settings` reads again, with the SHA-256 of a custom method's file."""
    values = settings.model_dump(mode="json")
    if file := own_file(type(settings)):
        values = {"method": settings.method, METHOD_SHA256: file.sha256} | values
    return yaml.safe_dump(values, sort_keys=False)


def _with_known_file(values: Mapping[str, Any], file: OwnFile, config: Path) -> dict[str, Any]:
    """Return `values` with the name of the method's file, unless they were stored with the SHA-256 of another one."""
    stored = values.get(METHOD_SHA256, file.sha256)
    if stored != file.sha256:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=f"{config.name}, {METHOD_SHA256}",
            expected=f"{stored}, the SHA-256 of the method's file",
            found=f"{file.sha256}, of {file.path}",
            next_step=f"The method has changed. To train with it as it is now, remove {METHOD_SHA256}.",
        )
    return {name: value for name, value in values.items() if name != METHOD_SHA256} | {
        "method": file.path.name
    }


def _read_change(change: str) -> tuple[str, object]:
    """Return the name and the value of `name=value`."""
    name, equals, text = change.partition("=")
    found = change
    try:
        value = parse(text)
    except yaml.YAMLError as error:
        equals, found = "", getattr(error, "problem", None) or change
    if name and equals:
        return name, value
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where=f"--set {change}",
        expected="name=value, such as rounds=5 or local.batch_size=8",
        found=found,
    )


def _find_method_file(method: object, config: Path) -> Path:
    if path := find_python_file(str(method), config):
        return path
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        where=f"{config.name}, method",
        expected="one of the kit's methods, or the path of a Python file",
        found="nothing" if method is None else method,
        next_step=f"The kit's methods are {', '.join(method_names())}; `pfl new` creates your own.",
    )
