"""What is wrong with settings, one problem for each, in words that name the setting and what it may be."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from evaluator.errors import ErrorCode, Problem
from starter_kit.settings.words import dotted_names, group_of, kind

NUMBER_WANTED = ("int_type", "float_type", "int_parsing", "float_parsing")


def problems_of(
    error: ValidationError, settings: type[BaseModel], file: str, origins: Mapping[str, str]
) -> list[Problem]:
    """The problems in `error`, which the class `settings` raised.

    Args:
        file: Where the settings stand.
        origins: Where else some of them stand, by their dotted names.
    """
    return [_problem(detail, settings, file, origins) for detail in error.errors(include_url=False)]


def _problem(
    detail: ErrorDetails, settings: type[BaseModel], file: str, origins: Mapping[str, str]
) -> Problem:
    name = ".".join(str(part) for part in detail["loc"] if isinstance(part, str))
    problem = Problem.of(
        ErrorCode.CONFIGURATION,
        where=_where(name, file, origins),
        found=_found(detail),
        next_step=_next_step(detail, settings),
    )
    return problem.model_copy(update={"expected": _expected(detail, settings)})  # in full: it is no input


def _expected(detail: ErrorDetails, settings: type[BaseModel]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return f"one of {', '.join(sorted(_fields_at(settings, detail['loc'][:-1])))}"
        case "value_error":
            return detail["msg"].removeprefix("Value error, ")
    field = _field_at(settings, detail["loc"])
    return detail["msg"] if field is None else kind(field)


def _where(name: str, file: str, origins: Mapping[str, str]) -> str:
    """Where a setting stands, or one of the group that it is."""
    for said, where in origins.items():
        if said == name or said.startswith(f"{name}."):
            return where
    return f"{file}, {name}" if name else file


def _found(detail: ErrorDetails) -> str:
    value = detail["input"]
    if detail["type"] == "missing":
        return "nothing"
    if isinstance(value, dict):
        return ""
    text = json.dumps(value, ensure_ascii=False)
    return f"{text}, which is text" if detail["type"] in NUMBER_WANTED and isinstance(value, str) else text


def _next_step(detail: ErrorDetails, settings: type[BaseModel]) -> str:
    value = detail["input"]
    if detail["type"] == "extra_forbidden":
        last_parts = {name.rpartition(".")[2]: name for name in dotted_names(settings)}
        if alike := get_close_matches(str(detail["loc"][-1]), last_parts, n=1, cutoff=0.7):
            return f"Is {last_parts[alike[0]]} meant?"
    if detail["type"] == "list_type" and isinstance(value, str):
        return f"Put a list into brackets: [{value}]"
    return "Correct the setting; docs/settings.md lists all of them."


def _fields_at(settings: type[BaseModel], place: Sequence[int | str]) -> Mapping[str, FieldInfo]:
    """The settings of the group at `place`."""
    for name in place:
        field = settings.model_fields.get(str(name))
        group = group_of(field.annotation) if field else None
        if group is None:
            return {}
        settings = group
    return settings.model_fields


def _field_at(settings: type[BaseModel], place: Sequence[int | str]) -> FieldInfo | None:
    names = [part for part in place if isinstance(part, str)]
    return _fields_at(settings, names[:-1]).get(names[-1]) if names else None
