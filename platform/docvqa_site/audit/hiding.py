"""What the audit trail leaves out for a reader who may not read it, or not yet, by the word of the apps above."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q
from django.dispatch import Signal

# Sent by `hidden_from` with the `reader`; received by `docvqa_site.reviews.history.hidden_decisions`. A receiver
# returns the condition of the entries that the reader may not read; None if there are none.
entries_asked = Signal()


def hidden_from(reader: object) -> Q | None:
    """Return the condition of the entries that `reader` may not read; None if they may read all."""
    asked: Sequence[tuple[object, Any]] = entries_asked.send(sender=None, reader=reader)
    found: list[Q] = [hidden for _, hidden in asked if hidden is not None]
    return reduce(or_, found) if found else None
