"""Responses made of rows, and lists of them in parts."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet

from evaluator.messages.api import Response

ResponseT = TypeVar("ResponseT", bound=Response)
ModelT = TypeVar("ModelT", bound=Model)


def response_of(kind: type[ResponseT], row: object, /, **others: Any) -> ResponseT:
    """Return a response with the row's attributes of the fields' names, except for the fields in `others`."""
    fields = {name: getattr(row, name) for name in kind.model_fields if name not in others}
    return kind.model_validate({**fields, **others})


def part_of(
    rows: QuerySet[ModelT], item: Callable[[ModelT], Response], *, limit: int, offset: int
) -> dict[str, Any]:
    """Return the fields of a page: `limit` rows from `offset` on, each as `item` shows it, and the count of all."""
    return {"items": [item(row) for row in rows[offset : offset + limit]], "count": rows.count()}
