"""`manage.py leaderboard [slug]`: the leaderboards as text."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from django.core.management.base import BaseCommand, CommandError

from evaluator.scoring.metrics import cut
from portal.challenge.models import Track
from portal.leaderboard.boards import Board, boards_of
from portal.leaderboard.ranking import Row
from portal.ui.rounding import rounded_up
from portal.ui.templatetags.ui import MISSING, readable_bytes

BYTES_COLUMNS = ("rank", "method", "team", "sent", "ANLS", "accuracy", "trust", "status", "flags")
ANLS_COLUMNS = (
    *("rank", "method", "team", "ANLS", "accuracy", "ε two-stage", "ε product", "ε (RDP)", "accountant"),
    *("trust", "sent", "status", "flags"),
)
DECIDES = "*"  # marks the ε that is compared with the budget


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
    return {
        "rank": MISSING if row.rank is None else str(row.rank),
        "method": entry.method + (" (baseline)" if entry.is_baseline else ""),
        "team": entry.team,
        "ANLS": MISSING if entry.anls is None else cut(entry.anls),
        "accuracy": MISSING if entry.accuracy is None else cut(entry.accuracy),
        "ε two-stage": _epsilon(entry.epsilon_two_stage, decides=entry.decides == "two_stage"),
        "ε product": _epsilon(entry.epsilon_product, decides=entry.decides == "product"),
        "ε (RDP)": _epsilon(entry.epsilon_rdp, decides=entry.decides == "rdp"),
        "accountant": entry.accountant_name or MISSING,
        "trust": MISSING if entry.trust is None else f"L{entry.trust}",
        "sent": MISSING if entry.bytes_total is None else readable_bytes(entry.bytes_total),
        "status": entry.standing,
        "flags": str(entry.flagged),
    }


def _epsilon(value: float | None, *, decides: bool) -> str:
    return MISSING if value is None else rounded_up(value) + (DECIDES if decides else "")
