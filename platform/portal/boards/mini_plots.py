"""The small plots of the tracks' cards and of the boards' tabs. The words beside or within them say the same.

They have no links and no table: the plots of `portal.boards.plots` on the track's page have both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from evaluator.scoring.metrics import cut
from portal.boards.plots import BytesAxis, line
from portal.boards.ranking import Row
from portal.challenge.rankings import threshold_text
from portal.ui.axes import LinearAxis, Point
from portal.ui.budgets import budget_text
from portal.ui.markup import markup
from portal.ui.templatetags.ui import readable_bytes

WIDTH, HEIGHT = 320, 104
LEFT, RIGHT, TOP, BOTTOM = 12, 12, 20, 24
# Between a run that sent nothing and the others.
GAP = 40
# In a tab.
TAB_WIDTH, TAB_HEIGHT, TAB_MARGIN = 64, 14, 5
TAB = (
    '<svg class="mini-tab" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
    '<line class="plot-grid" x1="{}" x2="{}" y1="{}" y2="{}"/>{}{}</svg>'
)
TAB_DOT = '<circle class="plot-mark plot-{}" cx="{}" cy="{}" r="{}"/>'


@dataclass(frozen=True)
class Label:
    """A short text in a small plot; `anchor` is SVG's."""

    text: str
    x: float
    y: float
    anchor: str = "middle"


@dataclass(frozen=True)
class MiniPlot:
    """A small plot as its template draws it.

    Attributes:
        words: What it shows, for those who don't see it.
        caption: What its axes are.
        dots: The kind of each mark with its place.
        level: Where a line across lies, if there is one.
    """

    words: str
    caption: str
    dots: Sequence[tuple[str, Point]]
    labels: Sequence[Label]
    line: str = ""
    level: float | None = None

    width, height = WIDTH, HEIGHT
    left, right, base = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM


def bytes_plot(rows: Sequence[Row], threshold: float) -> SafeString:
    """Return the plot of bytes against ANLS of the first rows of a board; empty without any."""
    runs = [
        (row, sent, float(cut(anls)))
        for row in rows
        if (sent := row.entry.results.bytes_total) is not None
        and (anls := row.entry.results.anls) is not None
    ]
    if not runs:
        return SafeString("")
    sizes = [sent for _, sent, _ in runs]
    x = BytesAxis(sizes, LEFT, WIDTH - RIGHT, GAP)
    y = LinearAxis([threshold, *(anls for _, _, anls in runs)], HEIGHT - BOTTOM, TOP)
    reached = sum(anls >= threshold for _, _, anls in runs)
    level = y.at(threshold)
    first, last = x.ticks[0], x.ticks[-1]
    words = (
        f"ANLS against bytes of {_runs(len(runs))}, from {readable_bytes(min(sizes))} to {readable_bytes(max(sizes))}: "
        f"{reached} at or above the threshold {threshold_text(threshold)}."
    )
    return _drawn(
        MiniPlot(
            words,
            f"ANLS against bytes (logarithmic); the dotted line is the threshold {threshold_text(threshold)}.",
            [(_kind(row), (x.at(sent), y.at(anls))) for row, sent, anls in reversed(runs)],
            [
                Label(first.text, LEFT, HEIGHT - 6, "start"),
                Label(last.text, WIDTH - RIGHT, HEIGHT - 6, "end"),
            ],
            level=level,
        )
    )


def budgets_plot(best: Sequence[tuple[float, float | None]]) -> SafeString:
    """Return the plot of the best ANLS at each budget, None where no run has a rank; empty without any."""
    known = [(budget, float(cut(score))) for budget, score in best if score is not None]
    if not known:
        return SafeString("")
    y = LinearAxis([score for _, score in known], HEIGHT - BOTTOM - 8, TOP + 6)
    room = (WIDTH - RIGHT - LEFT) / len(best)
    x = {budget: round(LEFT + room * (number + 0.5), 1) for number, (budget, _) in enumerate(best)}
    places = [(x[budget], y.at(score)) for budget, score in known]
    words = ", ".join(f"{cut(score)} at {budget_text(budget)}" for budget, score in known)
    return _drawn(
        MiniPlot(
            f"Best ANLS: {words}.",
            "Best ANLS at each privacy budget.",
            [("front", place) for place in places],
            [
                *(Label(budget_text(budget), x[budget], HEIGHT - 6) for budget, _ in best),
                *(Label(cut(score), at, up - 9) for (_, score), (at, up) in zip(known, places, strict=True)),
            ],
            line(places),
        )
    )


def tab_plots(boards: Mapping[str, Sequence[float]]) -> dict[str, SafeString]:
    """Return the plot of the first scores of each board, best first, on one axis for all; none of a board without."""
    shown = {name: [float(cut(score)) for score in scores] for name, scores in boards.items() if scores}
    every = [score for scores in shown.values() for score in scores]
    return {name: _tab(scores, min(every), max(every)) for name, scores in shown.items()}


def _tab(scores: Sequence[float], low: float, high: float) -> SafeString:
    scale = (TAB_WIDTH - 2 * TAB_MARGIN) / ((high - low) or 1)
    middle = TAB_HEIGHT / 2
    x = [round(TAB_MARGIN + (score - low) * scale, 1) for score in scores]
    others = SafeString("".join(markup(TAB_DOT, "other", at, middle, 2.5) for at in x[1:]))
    words = f"best ANLS {cut(scores[0])}"
    if len(scores) > 1:
        words += f", the first {len(scores)} from {cut(scores[-1])}"
    sizes = (TAB_WIDTH, TAB_HEIGHT)
    best = markup(TAB_DOT, "front", x[0], middle, 4)
    return markup(
        TAB, *sizes, *sizes, words, TAB_MARGIN, TAB_WIDTH - TAB_MARGIN, middle, middle, others, best
    )


def _drawn(plot: MiniPlot) -> SafeString:
    return render_to_string("boards/mini_plot.html", {"plot": plot})


def _kind(row: Row) -> str:
    """Return the kind of a run's mark: those with a rank are in color."""
    if row.entry.is_baseline:
        return "baseline"
    return "front" if row.rank else "other"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"
