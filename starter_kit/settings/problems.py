"""Problems of settings, one for each setting that is wrong, with its name and the values that it accepts."""

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from evaluator.errors import ErrorCode, Problem
from starter_kit.settings.words import choices, dotted_names, groups_of, kind, tag_of

NUMBER_WANTED = ("int_type", "float_type", "int_parsing", "float_parsing")


def problems_of(
    error: ValidationError, settings: type[BaseModel], file: str, origins: Mapping[str, str]
) -> list[Problem]:
    """Return the problems in `error`, which the class `settings` raised.

    Args:
        file: The file that contains the settings.
        origins: Where some of them come from instead, by their dotted names.
    """
    return [_problem(detail, settings, file, origins) for detail in error.errors(include_url=False)]


def _problem(
    detail: ErrorDetails, settings: type[BaseModel], file: str, origins: Mapping[str, str]
) -> Problem:
    name = ".".join(_walk(settings, detail["loc"])[0])
    together = detail["type"] == "value_error" and not name
    problem = Problem.of(
        ErrorCode.CONFIGURATION,
        message="Some settings don't go together." if together else "",
        where=_where(name, file, origins),
        found=_found(detail),
        next_step=_next_step(detail, settings),
    )
    # Set afterwards, so that it isn't truncated as input would be.
    return problem.model_copy(update={"expected": _expected(detail, settings)})


def _expected(detail: ErrorDetails, settings: type[BaseModel]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return f"one of {', '.join(sorted(_fields_at(settings, detail['loc'][:-1])))}"
        case "union_tag_invalid" | "union_tag_not_found":
            tags = [tag_of(group) for group in _walk(settings, detail["loc"])[1]]
            return f"a group with the type {choices(tags)}"
        case "value_error":
            return detail["msg"].removeprefix("Value error, ")
    field = _field_at(settings, detail["loc"])
    return detail["msg"] if field is None else kind(field)


def _where(name: str, file: str, origins: Mapping[str, str]) -> str:
    """Return where a setting comes from, or for a group where one of its settings does."""
    for said, where in origins.items():
        if said == name or said.startswith(f"{name}."):
            return where
    if name:
        return f"{file}, {name}"
    return ", ".join([file, *dict.fromkeys(origins.values())])


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
        return f"Write a list in brackets: [{value}]"
    return "Correct the setting; docs/settings.md lists all of them."


def _walk(settings: type[BaseModel], place: Sequence[int | str]) -> tuple[list[str], list[type[BaseModel]]]:
    """Return the names on the way to `place`, without the indexes in lists and the types of groups, and the groups that
    may be there; of several, the one whose type is given there."""
    names: list[str] = []
    groups = [settings]
    for part in place:
        if len(groups) > 1 and part in [tag_of(group) for group in groups]:
            groups = [group for group in groups if tag_of(group) == part]
        elif isinstance(part, str):
            names.append(part)
            groups = _groups_in(groups, part)
    return names, groups


def _groups_in(groups: Sequence[type[BaseModel]], name: str) -> list[type[BaseModel]]:
    """Return the groups that the setting `name` of any of `groups` may be."""
    fields = [group.model_fields[name] for group in groups if name in group.model_fields]
    return [below for field in fields for below in groups_of(field.annotation)]


def _fields_at(settings: type[BaseModel], place: Sequence[int | str]) -> Mapping[str, FieldInfo]:
    """Return the settings of the group at `place`."""
    return {name: field for group in _walk(settings, place)[1] for name, field in group.model_fields.items()}


def _field_at(settings: type[BaseModel], place: Sequence[int | str]) -> FieldInfo | None:
    parts = [part for part in place if isinstance(part, str)]
    return _fields_at(settings, parts[:-1]).get(parts[-1]) if parts else None
