"""Lists in pages, by the number that an address has."""

from collections.abc import Sequence
from typing import Any

from django.core.paginator import InvalidPage, Page, Paginator
from django.db.models import QuerySet
from django.http import Http404


def page_of(rows: "QuerySet[Any, Any] | Sequence[Any]", length: int, number: str | None) -> Page[Any]:
    """Return a page of rows; the first one where the address names none, as for an empty list.

    Raises `Http404` for a number that no page has, as for every other parameter that a site doesn't know.
    """
    try:
        return Paginator(rows, length).page(number or 1)
    except InvalidPage as error:
        raise Http404("no such page") from error
