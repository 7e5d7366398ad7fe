"""Descriptions of the values that a setting accepts, for messages and for the reference in docs/settings.md."""

import json
from collections.abc import Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from starter_kit.plugin import Plugin

PLAIN: dict[object, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    None: "null",
    NoneType: "null",
}
PATTERNS = {r"^[\w.-]{1,100}$": "up to 100 letters, digits, dots, hyphens and underscores"}


def kind(field: FieldInfo) -> str:
    """Describe the type and the range of a setting: `whole number, at least 1, or null`."""
    words = ", ".join([_type(field.annotation), *_limits(field.metadata)])
    return f"{words}, or null" if NoneType in get_args(field.annotation) else words


def groups_of(annotation: object) -> list[type[BaseModel]]:
    """Return the classes that a group of settings may have; none for a setting that is no group, or a plug-in."""
    return [
        candidate
        for candidate in (annotation, *get_args(annotation))
        if isinstance(candidate, type)
        and issubclass(candidate, BaseModel)
        and not issubclass(candidate, Plugin)
    ]


def tag_of(group: type[BaseModel]) -> str | None:
    """Return the `type` that distinguishes a group from others in its place; None for a group without one."""
    field = group.model_fields.get("type")
    return field.default if field and isinstance(field.default, str) else None


def dotted_names(settings: type[BaseModel]) -> list[str]:
    """Return the names of all settings, those of groups with the group's name before them: `local.learning_rate`."""
    names = []
    for name, field in settings.model_fields.items():
        names.append(name)
        for group in groups_of(field.annotation):
            names += [f"{name}.{below}" for below in dotted_names(group)]
    return list(dict.fromkeys(names))


def choices(values: Sequence[object]) -> str:
    """Join values with commas and `or`: `a, b or c`."""
    *most, last = map(written, values)
    return f"{', '.join(most)} or {last}" if most else last


def written(value: object) -> str:
    """Return a value as a settings file contains it."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return choices(arguments)
    if origin in (Union, UnionType):
        return " or ".join(_type(part) for part in arguments if part is not NoneType)
    if origin is Annotated:
        return ", ".join([_type(arguments[0]), *_limits(arguments[1:])])
    if origin is list:
        return f"list of {_type(arguments[0])}s"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return choices([member.value for member in annotation])
    if isinstance(annotation, type) and issubclass(annotation, Plugin):
        return "a plug-in"
    if groups := groups_of(annotation):
        return f"group of {', '.join(groups[0].model_fields)}"
    return PLAIN.get(annotation, str(annotation))


def _number(bound: object) -> str:
    """Format a bound: a long power of two as such, any other long number by its exponent."""
    if isinstance(bound, int) and bound > 10**9 and bound.bit_count() == 1:
        return f"2^{bound.bit_length() - 1}"
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def _limits(metadata: Sequence[object]) -> list[str]:
    limits = []
    for limit in metadata:
        match limit:
            case Gt(gt=bound):
                limits.append(f"above {_number(bound)}")
            case Ge(ge=bound):
                limits.append(f"at least {_number(bound)}")
            case Lt(lt=bound):
                limits.append(f"below {_number(bound)}")
            case Le(le=bound):
                limits.append(f"at most {_number(bound)}")
            case MinLen(min_length=1):
                limits.append("not empty")
            case _ if pattern := getattr(limit, "pattern", None):
                limits.append(PATTERNS.get(pattern, f"matching {pattern}"))
    return limits
