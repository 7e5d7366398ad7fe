"""`manage.py leaderboard [slug]`: the leaderboards as text."""

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from django.core.management.base import BaseCommand, CommandError

from docvqa_site.boards.boards import Board, boards_of
from docvqa_site.boards.column import Shown
from docvqa_site.boards.columns import DECIDES, catalog, columns_of
from docvqa_site.challenge.models import Track
from docvqa_site.ui.budgets import at_budget, plain


class Command(BaseCommand):
    help = "Print the leaderboards of all tracks or of one track."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", nargs="?", help="a track's slug; by default all tracks")
        parser.add_argument(
            "--columns", action="store_true", help="describe the columns of CSV and JSON files instead"
        )

    def handle(self, *_: object, slug: str | None = None, columns: bool = False, **__: object) -> None:
        if columns:
            self.stdout.write(catalog(), ending="")
            return
        tracks = Track.objects.filter(slug=slug) if slug else Track.objects.all()
        if slug and not tracks:
            raise CommandError(f"There is no track {slug!r}.")
        for track in tracks:
            for board in boards_of(track):
                self.stdout.write("\n".join([*_lines(track, board), "", ""]))


def _lines(track: Track, board: Board) -> Iterator[str]:
    title = f"{track}{at_budget(board.budget, ', ε = {}', plain)}"
    yield title
    yield "=" * len(title)
    if not board.rows:
        yield "No scored runs yet."
        return
    if any(one.decides for row in board.rows for one in row.entry.results.epsilons):
        yield f"{DECIDES} used for ranking; every ε is at δ = {track.delta:g}, recomputed and rounded up"
    columns = columns_of(track, Shown.TEXT)
    table = [[column.title for column in columns]]
    table += [[column.plain(row) for column in columns] for row in board.rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    notes = ["", *(f"  no rank: {row.reason}" if row.reason else "" for row in board.rows)]
    for cells, note in zip(table, notes, strict=True):
        yield _aligned(cells, widths) + note


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
