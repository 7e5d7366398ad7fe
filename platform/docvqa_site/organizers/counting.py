"""Many counts in one query: the desk shows twenty, and to ask for each would take longer than to count."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, QuerySet, Value


def counted(
    parts: Mapping[str, QuerySet[Any]], kinds: "QuerySet[Any, Any]"
) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """Return how many rows each of the parts has, by its name, and what a query of `part` and `count` yields."""
    queries = [
        rows.order_by().values(part=Value(name)).annotate(count=Count("pk")) for name, rows in parts.items()
    ]
    found = [(row["part"], row["count"]) for row in kinds.union(*queries, all=True)]
    counts = dict.fromkeys(parts, 0) | {part: count for part, count in found if part in parts}
    return counts, [(part, count) for part, count in found if part not in parts]
