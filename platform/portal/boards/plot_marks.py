"""The marks of a plot as SVG, and the rows of its table as HTML: for speed without templates, as `board_rows`."""

from collections.abc import Sequence

from django.utils.safestring import SafeString

from portal.boards.plots import Chart, Mark
from portal.ui.markup import markup

# A plot with the mark of one method picked out finds its links by how they begin: see `plot_pages.plot_with_mark`.
MARK = (
    '<a href="{}" aria-label="{}"><title>{}</title>'
    '<circle class="plot-mark plot-{}{}" cx="{}" cy="{}" r="{}"/></a>'
)
NAME = '<text class="plot-text plot-name plot-mark-name" x="{}" y="{}" dx="{}" dy="-7"{} aria-hidden="true">{}</text>'
AT_THE_END = SafeString(' text-anchor="end"')
NOTHING = SafeString("")


def drawn_marks(chart: Chart) -> SafeString:
    """Return the marks of a plot, each a link, so that a keyboard reaches it."""
    return SafeString("\n".join(map(_drawn, chart.marks)))


def table_rows(chart: Chart) -> SafeString:
    """Return the rows of a plot's table."""
    return SafeString("".join(map(_table_row, chart.table)))


def _drawn(mark: Mark) -> SafeString:
    x, y = mark.at
    radius = 4 if mark.kind == "other" else 6
    hollow = " plot-hollow" if mark.is_hollow else ""
    circle = markup(MARK, mark.url, mark.label, mark.label, mark.kind, hollow, x, y, radius)
    if not mark.name:
        return circle
    offset, anchor = (-9, AT_THE_END) if mark.is_right else (9, NOTHING)
    return circle + markup(NAME, x, y, offset, anchor, mark.name)


def _table_row(cells: Sequence[str]) -> SafeString:
    first, *others = cells
    numbers = [markup('<td class="num">{}</td>', cell) for cell in others]
    head = markup('<th scope="row">{}</th>', first)
    return SafeString(f"<tr>{head}{''.join(numbers)}</tr>")
