"""`manage.py leaderboard [slug]`: the leaderboards as text."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from django.core.management.base import BaseCommand, CommandError

from evaluator.messages.jobs import Epsilon
from evaluator.scoring.metrics import cut
from portal.boards.boards import Board, boards_of
from portal.boards.ranking import Row
from portal.challenge.models import Track
from portal.evaluation.display.results import EPSILON_COLUMNS, leakage_text
from portal.ui.rounding import rounded_up
from portal.ui.templatetags.ui import MISSING, readable_bytes

BYTES_COLUMNS = ("rank", "method", "team", "sent", "ANLS", "accuracy", "leakage", "trust", "status", "flags")
ANLS_COLUMNS = (
    "rank",
    "method",
    "team",
    "ANLS",
    "accuracy",
    *(column.title for column in EPSILON_COLUMNS),
    "accountant",
    "leakage",
    "trust",
    "sent",
    "status",
    "flags",
)
# Marks the ε that is compared with the budget.
DECIDES = "*"


class Command(BaseCommand):
    help = "Print the leaderboards of all tracks, or of one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", nargs="?", help="a track; all of them if none is named")

    def handle(self, *_: object, slug: str | None = None, **__: object) -> None:
        tracks = Track.objects.filter(slug=slug) if slug else Track.objects.all()
        if slug and not tracks:
            raise CommandError(f"There is no track {slug!r}.")
        for track in tracks:
            for board in boards_of(track):
                self.stdout.write("\n".join([*_lines(track, board), "", ""]))


def _lines(track: Track, board: Board) -> Iterator[str]:
    title = str(track) if board.budget is None else f"{track}, ε = {board.budget:g}"
    yield title
    yield "=" * len(title)
    if not board.rows:
        yield "No run has been scored."
        return
    if board.budget is not None:
        yield f"{DECIDES} decides; all are at δ = {track.delta:g}, recomputed and rounded up"
    columns = ANLS_COLUMNS if track.is_private else BYTES_COLUMNS
    table = [columns, *([_cells(row)[column] for column in columns] for row in board.rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    notes = ["", *(f"  no rank: {row.reason}" if row.reason else "" for row in board.rows)]
    for cells, note in zip(table, notes, strict=True):
        yield _aligned(cells, widths) + note


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _cells(row: Row) -> dict[str, str]:
    entry = row.entry
    results = entry.results
    return {
        "rank": MISSING if row.rank is None else str(row.rank),
        "method": entry.method + (" (baseline)" if entry.is_baseline else ""),
        "team": entry.team,
        "ANLS": MISSING if results.anls is None else cut(results.anls),
        "accuracy": MISSING if results.accuracy is None else cut(results.accuracy),
        **{column.title: _epsilon(epsilon) for column, epsilon in entry.epsilons},
        "accountant": entry.accountant_name or MISSING,
        "leakage": leakage_text(results.leakage) or MISSING,
        "trust": MISSING if results.trust_level is None else f"L{results.trust_level}",
        "sent": MISSING if results.bytes_total is None else readable_bytes(results.bytes_total),
        "status": entry.status,
        "flags": str(entry.flagged_checks),
    }


def _epsilon(row: Epsilon | None) -> str:
    if row is None or row.epsilon is None:
        return MISSING
    return rounded_up(row.epsilon) + (DECIDES if row.decides else "")
