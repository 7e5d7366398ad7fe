"""Settings of a training run: a YAML file, read safely, with single settings changed on the command line.

The file's `method` names the module that has the settings' class. Unknown and impossible settings are refused by name,
so that a misspelt one is never ignored.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from evaluator.errors import ErrorCode, Problem, ProblemError, refuse
from starter_kit.settings import RunSettings

CONFIGS = Path(__file__).parent / "configs"
METHODS = Path(__file__).parent / "methods"


def load_settings(config: str, changes: Sequence[str] = ()) -> RunSettings:
    """The settings of `config`, a YAML file or the name of one in starter_kit/configs, with `changes` applied.

    A change is `name=value`, with the value in YAML and dots for nested names: `local.learning_rate=0.001`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) One problem for each setting that is wrong.
    """
    path = find_config(config)
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise refuse(
            ErrorCode.CONFIGURATION,
            where=str(path),
            expected="a YAML file",
            found=" ".join(str(error).split()),
        ) from error
    if not isinstance(values, dict):
        raise refuse(ErrorCode.CONFIGURATION, where=str(path), expected="settings, one a line", found=values)
    for change in changes:
        _apply(values, change)
    settings = settings_class(values.get("method"), path)
    try:
        return settings.model_validate(values)
    except ValidationError as error:
        raise ProblemError(*_problems(error, settings, path.name)) from error


def find_config(config: str) -> Path:
    """The file that `config` names: a path, or a name among starter_kit/configs."""
    for path in (Path(config), CONFIGS / f"{config}.yaml"):
        if path.is_file():
            return path
    raise refuse(
        ErrorCode.CONFIGURATION,
        where=config,
        expected=f"a YAML file, or one of {', '.join(config_names())}",
        found="no such file",
    )


def config_names() -> list[str]:
    """Of the kit's own configs."""
    return sorted(path.stem for path in CONFIGS.glob("*.yaml"))


def method_names() -> list[str]:
    """Of the kit's own methods."""
    return sorted(path.stem.replace("_", "-") for path in METHODS.glob("[a-z]*.py"))


def settings_class(method: object, config: Path) -> type[RunSettings]:
    """The settings of a method: one of the kit's by its name, or of a Python file by its path.

    A path is looked for beside the config, then from the current folder.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There is no such method, or its file has no class `Settings`.
    """
    if method in method_names():
        module = importlib.import_module(f"starter_kit.methods.{str(method).replace('-', '_')}")
    else:
        module = _module_of_file(method, config)
    settings = getattr(module, "Settings", None)
    if not (isinstance(settings, type) and issubclass(settings, RunSettings)):
        raise refuse(
            ErrorCode.CONFIGURATION,
            where=f"{config.name}, method",
            expected="a file with a class Settings, derived from starter_kit.settings.RunSettings",
            found=method,
        )
    return settings


def snapshot(settings: RunSettings) -> str:
    """`settings` as YAML that `load_settings` reads again."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False)


def _module_of_file(method: object, config: Path) -> ModuleType:
    for path in (config.parent / str(method), Path(str(method))):
        if path.suffix == ".py" and path.is_file():
            name = f"pfl_method_{path.stem}"
            spec = importlib.util.spec_from_file_location(name, path.resolve())
            if spec and spec.loader:
                module = importlib.util.module_from_spec(spec)
                sys.modules[name] = module  # dataclasses and pydantic look their module up
                spec.loader.exec_module(module)
                return module
    raise refuse(
        ErrorCode.CONFIGURATION,
        where=f"{config.name}, method",
        expected=f"one of {', '.join(method_names())}, or the path of a Python file",
        found=method,
    )


def _apply(values: dict[str, Any], change: str) -> None:
    name, equals, text = change.partition("=")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        equals = ""
    if not (name and equals):
        raise refuse(ErrorCode.CONFIGURATION, where=f"--set {change}", expected="name=value", found=change)
    *parents, last = name.split(".")
    for parent in parents:
        values = values.setdefault(parent, {})
        if not isinstance(values, dict):
            raise refuse(
                ErrorCode.CONFIGURATION, where=f"--set {change}", expected="a group of settings", found=parent
            )
    values[last] = value


def _problems(error: ValidationError, settings: type[RunSettings], file: str) -> list[Problem]:
    problems = []
    for detail in error.errors(include_url=False):
        name = ".".join(str(part) for part in detail["loc"])
        problems.append(
            refuse(
                ErrorCode.CONFIGURATION,
                where=f"{file}, {name}" if name else file,
                expected=_expected(detail, settings),
                found="" if isinstance(detail["input"], dict) else detail["input"],
            ).problem
        )
    return problems


def _expected(detail: ErrorDetails, settings: type[BaseModel]) -> str:
    if detail["type"] != "extra_forbidden":
        return detail["msg"].removeprefix("Value error, ")
    group = settings
    for part in detail["loc"][:-1]:
        annotation = group.model_fields[str(part)].annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        group = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return f"one of {', '.join(sorted(group.model_fields))}"
