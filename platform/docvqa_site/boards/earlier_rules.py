"""Which ranked runs were judged under rules that their track has changed since.

Each run keeps the rules of its track as they were when it was submitted; a change concerns later submissions alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from docvqa_site.boards.boards import StoredBoard, stored_boards
from docvqa_site.boards.published import of_phase
from docvqa_site.boards.ranking import Row
from docvqa_site.challenge.models import Track
from docvqa_site.submissions.models import Run
from evaluator.messages.jobs import TrackRules

# What isn't public, and what no result follows from.
UNSTATED = {"data_sha256", "leakage_set"}


@dataclass(frozen=True)
class EarlierRules:
    """A ranked run with the rules that differ from those of its track now: by field, its own and the track's."""

    row: Row
    budget: float | None
    differences: Mapping[str, tuple[Any, Any]]

    def __str__(self) -> str:
        return "; ".join(
            f"{_name(field)}: {_text(own)}, now {_text(now)}"
            for field, (own, now) in self.differences.items()
        )

    @property
    def published(self) -> dict[str, Any]:
        """The run and its own rules, as snapshots have them."""
        return {
            "budget": self.budget,
            "rank": self.row.rank,
            "method": self.row.entry.method,
            "run": str(self.row.entry.run),
            "rules": {field: own for field, (own, _) in self.differences.items()},
        }


def earlier_rules(track: Track, phase: str = "") -> list[EarlierRules]:
    """Return the ranked runs of the track, or of one phase, that were judged under other rules than it has now."""
    return [one for board in stored_boards(track) for one in _of_board(board, phase)]


def _of_board(board: StoredBoard, phase: str) -> Iterator[EarlierRules]:
    now = _stated(board.track.rules(board.budget).model_dump(mode="json"))
    runs = Run.objects.filter(submission__track=board.track, budget=board.budget).exclude(rules={})
    changed: dict[UUID, dict[str, tuple[Any, Any]]] = {}
    for key, stored in runs.values_list("pk", "rules").iterator():
        own = _stated(TrackRules.model_validate(stored).model_dump(mode="json"))
        if own != now:
            fields = dict.fromkeys([*own, *now])
            pairs = {field: (own.get(field), now.get(field)) for field in fields}
            changed[key] = {field: pair for field, pair in pairs.items() if pair[0] != pair[1]}
    if changed:
        for row in of_phase(board, phase):
            if row.rank is not None and row.entry.run in changed:
                yield EarlierRules(row, board.budget, changed[row.entry.run])


def _stated(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public rules by the names of the track's fields."""
    stated = {**rules, **(rules["privacy"] or {})}
    # The budget is that of the board.
    return {field: value for field, value in stated.items() if field not in {*UNSTATED, "privacy", "epsilon"}}


def _name(field: str) -> str:
    return field.replace("_", " ")


def _text(value: object) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
