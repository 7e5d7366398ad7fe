"""The plots of a track, rendered once for each version of its boards, and the page of its progress over time."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from docvqa_site.audit.versions import boards_versions
from docvqa_site.boards.caching import cached, page_unless_unchanged
from docvqa_site.boards.history import histories
from docvqa_site.boards.ordering import withheld_runs
from docvqa_site.boards.plots import (
    PlottedMethod,
    PlottedRun,
    budgets_plot,
    bytes_plot,
    plotted,
    progress_plot,
    rank_plot,
    shown_interval,
    withheld_marks,
)
from docvqa_site.boards.points import (
    POINT,
    best_point,
    first_baselines,
    first_points,
    front_and_nearest_points,
    record_points,
    withheld_points,
)
from docvqa_site.boards.selection import EVERYTHING, Selection
from docvqa_site.boards.uncertainty import difference
from docvqa_site.challenge.models import Track
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import Run, Submission
from docvqa_site.submissions.selectors import address_format, submission_addresses
from docvqa_site.ui.budgets import at_budget
from docvqa_site.ui.plots import Plot, draw
from evaluator.messages.results import MOST_DECIMALS
from evaluator.scoring.metrics import cut

# A row of `docvqa_site.boards.points.POINT`.
Point = Sequence[Any]
# A run that lost its rank, after the budget of its board.
Withheld = tuple[float | None, PlottedRun]

# Runs in the plot of bytes beside those on the front, and methods of each budget in that of ε.
FIRST = 20
NEAREST = 10
MOST_OF_THE_FRONT = 20
METHODS = 8
MOST_WITHHELD = 12
MOST_RECORDS = 30
# Of the changes of a run's rank the last ones.
MOST_CHANGES = 60
LOW = POINT.index("anls_low")
# Between the two parts of what is drawn of a track.
PLOT = "<!--plot-->"
OVERLAP = "At some steps, the 95% intervals overlap: the later run may not be better. "
LOOK_EQUAL = "Of two that look equal, the later one is better in decimals that aren't shown."
DRAWING = re.compile(r'<svg class="plot-(?:wide|narrow)".*?</svg>', re.DOTALL)
MARK = re.compile(r'<(?:circle|path) class="plot-mark [^>]*/>')
OWN_MARK = re.compile(r'<(?:circle|path) class="plot-mark [^>]* data-here[^>]*/>')
KEY = (
    '<li class="plot-key"><svg viewBox="0 0 28 10" aria-hidden="true">'
    '<circle class="plot-mark plot-here" cx="14" cy="5" r="4"/></svg>{}</li>'
)


@dataclass(frozen=True)
class Headline:
    """The first runs of a board, of which the best is written above it, and its first baseline, if it has one."""

    track: Track
    budget: float | None
    points: Sequence[Point]
    first_baseline: Point | None

    @property
    def name(self) -> str:
        """The board's budget, or that it is the only one."""
        return at_budget(self.budget, "{}") or "Best so far"

    @cached_property
    def best(self) -> PlottedRun | None:
        return next(iter(plotted(self.points[:1], _addresses(self.points), "front")), None)

    @property
    def figure(self) -> str:
        return (
            self.track.kind.figure(self.best.value, self.best.anls, self.best.decimals) if self.best else ""
        )

    @property
    def status(self) -> ResultStatus:
        """Whether reviewers have accepted the proof of the best, where they decide."""
        if not self.track.kind.is_reviewed:
            return ResultStatus.SCORED
        return ResultStatus.VERIFIED if self.points[0][-1] else ResultStatus.PROVISIONAL

    @property
    def is_baseline(self) -> bool:
        return bool(self.points[0][2])

    @property
    def comparison(self) -> str:
        """The address of the comparison with the next run where their intervals overlap; empty where they don't."""
        following = self.points[1] if len(self.points) > 1 else None
        if following is None or self.points[0][0] == following[0] or not self._may_equal(following):
            return ""
        picked = urlencode({"method": [self.points[0][0], following[0]]}, doseq=True)
        return f"{reverse('leaderboard:compare', args=[self.track.slug])}?{picked}"

    @property
    def gain(self) -> str:
        """By how much it beats the best baseline, or as a baseline the next run, in what ranks the track."""
        other = self._other
        if other is None or self.best is None:
            return ""
        (run,) = plotted([other], _addresses([other]), "other")
        name = f"the baseline {run.method}" if other[2] else run.method
        gain = self.track.kind.words.gain(self.best.value, run.value, self.best.decimals, name)
        return f"{gain} (intervals overlap)" if gain and self._may_equal(other) else gain

    @property
    def _other(self) -> Point | None:
        """What the best is compared with; None where there is nothing."""
        return next(iter(self.points[1:2]), None) if self.points and self.is_baseline else self.first_baseline

    def _may_equal(self, other: Point) -> bool:
        """Whether scores rank the board, and the interval of the best allows that it is no better than the other."""
        is_by_score = self.track.kind.first == "anls"
        return is_by_score and difference(_interval(self.points[0]), _interval(other))[0] <= 0


@dataclass(frozen=True)
class Glance:
    """A track at a glance: final results, the best result of every board, and a plot, which is empty without any."""

    headlines: SafeString
    plot: SafeString


def at_a_glance(track: Track, tracks: Sequence[Track], versions: dict[int, str]) -> Glance:
    """Return what is above and below the boards of a track."""
    # It may have the best score of a track without privacy.
    drawn = cached(
        str(versions), f"glance {track.pk}", lambda: _draw_glance(track, tracks, versions[track.pk])
    )
    headlines, _, plot = drawn.partition(PLOT)
    return Glance(mark_safe(headlines), mark_safe(plot))  # noqa: S308  (templates made it)


def plot_with_mark(submission: Submission) -> SafeString:
    """Return the plot of the submission's track with its runs marked; empty where it has none in it."""
    tracks = list(Track.objects.all())
    plot = at_a_glance(submission.track, tracks, boards_versions([track.pk for track in tracks])).plot
    marked = with_marks(plot, [submission.get_absolute_url()], "this method")
    return marked if marked != plot else SafeString("")


def methods_in(plot: str) -> list[UUID]:
    """Return the submissions that a plot has marks of."""
    return [UUID(key) for key in re.findall(f'data-of="{address_format().format("([-0-9a-f]{36})")}"', plot)]


def with_marks(plot: str, addresses: Iterable[str], meaning: str, badge: str = "") -> SafeString:
    """Return a plot with the methods at these addresses marked, as its key explains, and a badge in its table."""
    drawn = plot
    for address in addresses:
        mark, row = f'data-of="{address}"', rf'(<th scope="row"><a href="{address}">[^<]*</a>)'
        if mark in plot:
            plot = re.sub(row, lambda found: found[1] + badge, plot.replace(mark, f"{mark} data-here"))
    if plot != drawn:
        plot = DRAWING.sub(lambda found: _own_below(found[0]), plot)
        plot = plot.replace("</ul>", KEY.format(meaning) + "</ul>", 1)
    return mark_safe(plot)  # noqa: S308  (a template made it)


def _own_below(drawing: str) -> str:
    """Return a drawing with the marked marks, which are larger than others, below those that lie on them."""
    first = MARK.search(drawing)
    if first is None:
        return drawing
    before, marks = drawing[: first.start()], drawing[first.start() :]
    return before + "".join(OWN_MARK.findall(marks)) + OWN_MARK.sub("", marks)


@require_safe
def progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how the best results of a track have changed over time."""
    track = get_object_or_404(Track, slug=slug)
    version = boards_versions([track.pk])[track.pk]

    def respond() -> HttpResponse:
        drawn = cached(version, f"progress {track.pk}", lambda: _draw_progress(track))
        note, _, plots = drawn.partition(PLOT)
        context = {"track": track, "note": note, "plots": mark_safe(plots)}  # noqa: S308  (a template made it)
        return render(request, "pages/progress.html", context)

    return page_unless_unchanged(request, version, respond)


def rank_plots(runs: Sequence[Run], today: date) -> SafeString:
    """Return the plots of those runs whose rank has changed since it was first recorded; empty where none has."""
    recorded = histories([run.pk for run in runs])
    changed = [run for run in runs if len(recorded[run.pk]) > 1]
    return draw(*(rank_plot(run, recorded[run.pk][-MOST_CHANGES:], today) for run in changed))


def withheld_of(track: Track, selection: Selection, version: str) -> list[UUID]:
    """Return the selected runs that were taken off the track's boards; all of them are found once for each version."""
    if selection != EVERYTHING:
        return withheld_runs(track, selection, MOST_WITHHELD)
    name = f"withheld {track.pk}"
    found = cached(version, name, lambda: " ".join(map(str, withheld_runs(track, EVERYTHING, MOST_WITHHELD))))
    return list(map(UUID, found.split()))


def _draw_glance(track: Track, tracks: Sequence[Track], version: str) -> str:
    """Return the final results and the best result of every board, and the plot, with a sign between them."""
    baselines = first_baselines(track)
    boards = [
        Headline(track, budget, first_points(track, budget, FIRST), baselines.get(budget))
        for budget in track.run_budgets()
    ]
    rows = withheld_points(track, withheld_of(track, EVERYTHING, version))
    withheld = withheld_marks(rows, submission_addresses({row[2] for row in rows}).__getitem__)
    plot_of = _of_budgets if track.kind.has_budgets else _of_bytes
    plot = plot_of(track, tracks, [board.points for board in boards], withheld)
    headlines = render_to_string("pages/headlines.html", {"track": track, "boards": plot and boards})
    return headlines + PLOT + (draw(plot) if plot else "")


def _of_bytes(
    track: Track, _: Sequence[Track], boards: Sequence[Sequence[Point]], withheld: Sequence[Withheld]
) -> Plot | None:
    front, nearest = front_and_nearest_points(track, MOST_OF_THE_FRONT, NEAREST)
    known = {row[0] for row in front}
    others = [*boards[0], *nearest]
    address = _addresses([*front, *others])
    runs = [
        *plotted(front, address, "front"),
        *plotted((row for row in others if row[0] not in known), address, "other"),
        *(run for _, run in withheld),
    ]
    threshold = track.anls_threshold if "anls_threshold" in track.kind.thresholds else None
    return bytes_plot(runs, threshold) if runs else None


def _of_budgets(
    track: Track, tracks: Sequence[Track], boards: Sequence[Sequence[Point]], withheld: Sequence[Withheld]
) -> Plot | None:
    first = [points[:METHODS] for points in boards]
    scores: dict[UUID, list[float | None]] = {}
    intervals: dict[UUID, list[tuple[float, float] | None]] = {}
    known: dict[UUID, tuple[str, bool, bool, int]] = {}
    for number, rows in enumerate(first):
        for submission, title, is_baseline, _, _, anls, decimals, low, high, _, is_verified in rows:
            known[submission] = title, is_verified, is_baseline, decimals or MOST_DECIMALS
            shown = float(cut(anls, decimals or MOST_DECIMALS))
            scores.setdefault(submission, [None] * len(first))[number] = shown
            interval = shown_interval(low, high, decimals)
            intervals.setdefault(submission, [None] * len(first))[number] = interval
    if not scores:
        return None
    address = submission_addresses(scores)
    methods = [
        PlottedMethod(title, address[key], scores[key], intervals[key], is_verified, is_baseline, decimals)
        for key, (title, is_verified, is_baseline, decimals) in known.items()
    ]
    best = [address[rows[0][0]] if rows else "" for rows in first]
    budgets = list(map(float, track.budgets))
    return budgets_plot(methods, best, budgets, _without_privacy(track, tracks), withheld)


def _without_privacy(track: Track, tracks: Sequence[Track]) -> PlottedRun | None:
    """Return the run with the best score on the same test set, from the same base weights, where ε plays no part."""
    same = (track.test_set, track.reference)
    points = [
        point
        for one in tracks
        if not one.kind.is_accounted
        and (one.test_set, one.reference) == same
        and (point := best_point(one)) is not None
    ]
    return max(plotted(points, _addresses(points), "other"), key=lambda run: run.anls, default=None)


def _draw_progress(track: Track) -> str:
    """Return what explains runs that look equal, if there are any, and the plots, with a sign between them."""
    points = [(budget, record_points(track, budget, MOST_RECORDS)) for budget in track.run_budgets()]
    runs = [(budget, plotted(rows, _addresses(rows), "front")) for budget, rows in points]
    steps = [step for _, better in runs for step in pairwise(better)]
    look_equal = not track.kind.words.in_bytes and any(run.score == later.score for run, later in steps)
    uncertain = not track.kind.words.in_bytes and any(
        _overlap(row, later) for _, rows in points for row, later in pairwise(rows)
    )
    plots = draw(*(progress_plot(track, budget, better) for budget, better in runs if better))
    return (OVERLAP if uncertain else "") + (LOOK_EQUAL if look_equal else "") + PLOT + plots


def _overlap(point: Point, better: Point) -> bool:
    """Whether the interval of a better run begins within that of an earlier one."""
    high, low = point[LOW + 1], better[LOW]
    return high is not None and low is not None and low <= high


def _interval(point: Point) -> tuple[float | None, float | None]:
    low, high = point[LOW : LOW + 2]
    return low, high


def _addresses(rows: Sequence[Point]) -> Callable[[UUID], str]:
    return submission_addresses({row[0] for row in rows}).__getitem__
