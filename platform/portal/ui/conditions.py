"""Conditions of queries, evaluated in memory: so that a rule that the database applies is written once."""

import operator
from collections.abc import Mapping
from typing import Any

from django.db.models import F, Q
from django.db.models.expressions import CombinedExpression, Value

COMPARISONS = {
    "exact": operator.eq,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
OPERATIONS = {CombinedExpression.ADD: operator.add, CombinedExpression.SUB: operator.sub}


def holds(condition: Q, values: Mapping[str, Any]) -> bool:
    """Return whether a condition holds for a row with these values, none of which is null.

    Raises `KeyError` for a column that isn't among them, and for a lookup that isn't a comparison.
    """
    parts = (
        holds(part, values) if isinstance(part, Q) else _compare(*part, values) for part in condition.children
    )
    found = any(parts) if condition.connector == Q.OR else all(parts)
    return found is not condition.negated


def _compare(lookup: str, bound: Any, values: Mapping[str, Any]) -> bool:
    name, _, comparison = lookup.partition("__")
    return bool(COMPARISONS[comparison or "exact"](values[name], _value(bound, values)))


def _value(bound: Any, values: Mapping[str, Any]) -> Any:
    match bound:
        case F():
            return values[bound.name]
        case CombinedExpression():
            sides = (_value(side, values) for side in (bound.lhs, bound.rhs))
            return OPERATIONS[bound.connector](*sides)
        case Value():
            return bound.value
        case _:
            return bound
