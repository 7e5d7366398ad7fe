"""Conditions of queries, evaluated in memory: so that a rule that the database applies is written once."""

import operator
from collections.abc import Mapping
from typing import Any

from django.db.models import F, Q
from django.db.models.expressions import CombinedExpression

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
    parts = (_part_holds(part, values) for part in condition.children)
    found = any(parts) if condition.connector == Q.OR else all(parts)
    return found is not condition.negated


def _part_holds(part: Any, values: Mapping[str, Any]) -> bool:
    if isinstance(part, Q):
        return holds(part, values)
    lookup, bound = part
    name, _, comparison = lookup.partition("__")
    return bool(COMPARISONS[comparison or "exact"](values[name], _value(bound, values)))


def _value(bound: Any, values: Mapping[str, Any]) -> Any:
    match bound:
        case F():
            return values[vars(bound)["name"]]
        case CombinedExpression(lhs=lhs, rhs=rhs, connector=connector):
            return OPERATIONS[connector](_value(lhs, values), _value(rhs, values))
        case _:
            return bound
