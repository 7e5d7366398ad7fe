"""Settings files: YAML of plain values, read without surprises.

Beyond YAML 1.1, `2e-4` is a number as well. A duplicate setting is rejected, and so are infinity and NaN.
"""

import math
import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from evaluator.errors import ErrorCode, ProblemError

PLAIN_EXPONENT = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$")
MAX_VALUES = 100_000
MERGE_TAG = "tag:yaml.org,2002:merge"
PYTHON_TAG = "tag:yaml.org,2002:python/"


class _Loader(yaml.SafeLoader):
    """A YAML loader that makes plain values and nothing else."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag == MERGE_TAG:
                continue
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str) or name in names:
                problem = f"{name} twice" if isinstance(name, str) else f"{name} in place of a name"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
            names.add(name)
        return super().construct_mapping(node, deep)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        value: float = super().construct_yaml_float(node)
        if not math.isfinite(value):
            raise yaml.constructor.ConstructorError(
                problem=f"{node.value}, which is no number", problem_mark=node.start_mark
            )
        return value


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", PLAIN_EXPONENT, list("-+0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read the settings in `path`, as plain values.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The file can't be read or contains no settings.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION, where=str(path), expected="a YAML file", found=error
        ) from error
    try:
        values = parse(text)
    except yaml.YAMLError as error:
        raise _rejection(path, error) from error
    if not isinstance(values, dict):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=str(path),
            expected="settings, one per line, such as rounds: 5",
            found="an empty file" if values is None else values,
        )
    return values


def parse(text: str) -> Any:
    """Parse `text` as the value of a setting. Raises yaml.YAMLError for text that isn't one."""
    loader = _Loader(text)
    try:
        value = loader.get_single_data()
        if _size(value, {}) > MAX_VALUES:
            raise yaml.YAMLError(f"more than {MAX_VALUES} values, or values that contain themselves")
    except RecursionError as error:
        raise yaml.YAMLError("values that contain each other, or are nested too deeply") from error
    except (ValueError, LookupError) as error:
        # For example, an impossible date, or text that is tagged as a number.
        raise yaml.YAMLError(f"a value that can't be read: {error}") from error
    finally:
        loader.dispose()
    return value


def _size(value: object, known: dict[int, float]) -> float:
    """Count the values in `value`, each as often as it occurs; infinitely many if it contains itself.

    Args:
        known: The counts of the lists and groups that were visited before, by identity, since an alias repeats one of
            them cheaply.
    """
    if not isinstance(value, list | set | tuple | dict):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in inside)
    return known[id(value)]


def with_setting(values: Mapping[str, Any], name: str, value: object) -> dict[str, Any]:
    """Return `values` with the setting of that dotted name set to `value`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Part of the name is a plain value, not a group.
    """
    first, dot, rest = name.partition(".")
    if not dot:
        return {**values, first: value}
    group = values.get(first)
    if not isinstance(group, Mapping | None):
        raise ProblemError.of(
            ErrorCode.CONFIGURATION, where=name, expected=f"a group of settings in {first}", found=group
        )
    return {**values, first: with_setting(group or {}, rest, value)}


def _rejection(path: Path, error: yaml.YAMLError) -> ProblemError:
    where, found = str(path), str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f"{path}, line {mark.line + 1}" if mark else where
        found = error.problem or found
    if PYTHON_TAG in found:
        return ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=where,
            expected="plain values",
            found=f"the Python object {found.split(PYTHON_TAG)[1].rstrip(chr(39))}",
            next_step="Name a file in configs/models of the competition's kit, not an experiment_config.yml that it "
            "wrote.",
        )
    return ProblemError.of(
        ErrorCode.CONFIGURATION, where=where, expected="a YAML file", found=" ".join(found.split())
    )
