"""Plots of a run over its rounds: scores, bytes, ε and training loss, each where there are such numbers.

Series differ in line and mark as well as in color (Okabe and Ito 2008), and every plot says in words what it shows.
Drawn with Matplotlib's defaults, whatever the user's own settings are; from one thread, as those are global.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from PIL import Image

from evaluator.scoring.metrics import cut
from starter_kit.reporting.files import replace_file
from starter_kit.reporting.metrics import RoundMetrics, RunSummary, check_private
from starter_kit.reporting.rounding import decimal_unit, epsilon_text, significant, size_text

FOLDER = "plots"
SIZE = (4.8, 3.3)  # inches; small, so that the text stays readable on a phone
DPI = 200
COLORS = 64
MOST_POINTS = 60  # of a series that is drawn with marks
LEAST_SCORE_SPAN = 0.1  # of the axis: noise is not to look like progress

Point = tuple[int, float]  # round, value


@dataclass(frozen=True)
class Theme:
    """The colors of a plot; `first` and `second` are those of the series."""

    ground: str
    text: str
    grid: str
    first: str
    second: str


LIGHT = Theme(ground="#ffffff", text="#18212b", grid="#dbe1e7", first="#0072b2", second="#d55e00")
DARK = Theme(ground="#181f26", text="#e5eaef", grid="#2d3843", first="#56b4e9", second="#e69f00")


@dataclass(frozen=True)
class Plot:
    """One plot, ready to be drawn.

    Attributes:
        name: The name of its file, without suffix.
        in_words: A description of what it shows, for those who don't see it.
        last_round: The last round of the run. All plots of a run have the same rounds, from 0.
    """

    name: str
    title: str
    in_words: str
    last_round: int
    draw: Callable[[Axes, Theme], None]


@dataclass(frozen=True)
class Drawn:
    """A plot as two PNG files, for light and for dark surroundings."""

    plot: Plot
    light: bytes
    dark: bytes


def draw_plots(metrics: Sequence[RoundMetrics], summary: RunSummary) -> list[Drawn]:
    """Return the plots for which there are numbers.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) A private run reports what it must not.
    """
    return [Drawn(plot, png(plot, LIGHT), png(plot, DARK)) for plot in plots_of(metrics, summary)]


def write_plots(folder: Path, plots: Iterable[Drawn]) -> None:
    """Write the plots for light surroundings into `plots/` of the run folder.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The folder can't be written into.
    """
    (folder / FOLDER).mkdir(exist_ok=True)
    for drawn in plots:
        replace_file(folder / FOLDER / f"{drawn.plot.name}.png", drawn.light)


def plots_of(metrics: Sequence[RoundMetrics], summary: RunSummary) -> list[Plot]:
    """Return the plots for which there are numbers.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) A private run reports what it must not.
    """
    check_private(metrics, summary)
    candidates = (_scores(metrics), _bytes(metrics), _epsilon(metrics, summary), _loss(metrics))
    return [plot for plot in candidates if plot]


def png(plot: Plot, theme: Theme = LIGHT) -> bytes:
    """Return the plot as a PNG file, the same for the same numbers."""
    with style.context(["default", theme_style(theme)]):
        figure = Figure(figsize=SIZE, dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
        axes = figure.add_subplot()
        plot.draw(axes, theme)
        axes.set_xlabel("round")
        axes.set_xlim(-0.02 * plot.last_round, max(1, 1.02 * plot.last_round))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10], integer=True))
        series = axes.get_legend_handles_labels()[1]
        if len(series) > 1:
            axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(series), borderaxespad=0.2)
        axes.set_title(plot.title, loc="left", pad=30 if len(series) > 1 else 10)
        pixels, small = BytesIO(), BytesIO()
        figure.savefig(pixels, format="rgba")
    width, height = (round(inches * DPI) for inches in SIZE)
    drawn = Image.frombytes("RGBA", (width, height), pixels.getvalue()).convert("RGB")
    # Few colors take a third of the bytes.
    drawn.quantize(COLORS).save(small, format="png")
    return small.getvalue()


def _scores(metrics: Sequence[RoundMetrics]) -> Plot | None:
    sample = next((line.sample_questions for line in metrics if line.sample_questions), None)
    prefix = "sample_" if sample else ""
    anls, accuracy = (
        [(line.round, value) for line in metrics if (value := getattr(line, prefix + name)) is not None]
        for name in ("anls", "accuracy")
    )
    if not anls and not accuracy:
        return None
    series = [(name, points) for name, points in (("ANLS", anls), ("accuracy", accuracy)) if points]

    def draw(axes: Axes, theme: Theme) -> None:
        looks = (("-", "o", theme.first), ("--", "s", theme.second))
        for (name, points), (line, mark, color) in zip(series, looks, strict=False):
            _line(axes, points, line, mark, color, name)
        axes.set_ylabel("score, 0 to 1")
        axes.set_ylim(*_score_limits([value for _, points in series for _, value in points]))

    names = " and ".join(name for name, _ in series)
    split = f"{sample:,} questions of the validation split" if sample else "the validation split"
    words = " ".join(_course(name, points, cut) for name, points in series)
    return Plot("scores", f"{names[0].upper()}{names[1:]} on {split}", words, metrics[-1].round, draw)


def _bytes(metrics: Sequence[RoundMetrics]) -> Plot | None:
    down = list(accumulate(line.bytes_down for line in metrics))
    total = list(accumulate(line.bytes_down + line.bytes_up for line in metrics))
    if not total or not total[-1]:
        return None
    rounds = [line.round for line in metrics]
    if rounds[0] > 0:
        rounds, down, total = [rounds[0] - 1, *rounds], [0, *down], [0, *total]
    number, unit = decimal_unit(total[-1])

    def draw(axes: Axes, theme: Theme) -> None:
        lower, upper = ([size / number for size in sizes] for sizes in (down, total))
        axes.fill_between(rounds, lower, color=theme.first, alpha=0.35, label="to the clients")
        axes.fill_between(
            rounds, lower, upper, color=theme.second, alpha=0.35, hatch="//", label="to the server"
        )
        _line(axes, list(zip(rounds, upper, strict=True)), "-", "o", theme.text, "both")
        axes.set_ylabel(f"sent since the start, {unit}")
        axes.set_ylim(bottom=0)

    words = (
        f"Sent after round {rounds[-1]}: {size_text(down[-1])} from the server to clients and "
        f"{size_text(total[-1] - down[-1])} from clients to the server, {size_text(total[-1])} in all."
    )
    return Plot("bytes", "Bytes sent", words, metrics[-1].round, draw)


def _epsilon(metrics: Sequence[RoundMetrics], summary: RunSummary) -> Plot | None:
    points = [(line.round, line.epsilon) for line in metrics if line.epsilon is not None]
    if not points or summary.delta is None:
        return None
    delta = summary.delta

    def draw(axes: Axes, theme: Theme) -> None:
        _line(axes, points, "-", "o", theme.first, "ε spent")
        if summary.budget is not None:
            label = f"budget {summary.budget:g}"
            axes.axhline(summary.budget, linestyle="--", color=theme.second, label=label, zorder=1)
        axes.set_ylabel(f"ε at δ = {delta:g}")
        axes.set_ylim(bottom=0)

    words = _course("ε", points, epsilon_text)
    if summary.budget is not None:
        words += f" The budget is {summary.budget:g}."
    return Plot("epsilon", f"ε spent, for each {summary.unit}", words, metrics[-1].round, draw)


def _loss(metrics: Sequence[RoundMetrics]) -> Plot | None:
    points = [(line.round, line.loss) for line in metrics if line.loss is not None]
    if not points:
        return None

    def draw(axes: Axes, theme: Theme) -> None:
        _line(axes, points, "-", "o", theme.first, "loss")
        axes.set_ylabel("mean loss, nats a token")

    return Plot(
        "loss", "Training loss", _course("Training loss", points, significant), metrics[-1].round, draw
    )


def _line(axes: Axes, points: Sequence[Point], line: str, mark: str, color: str, label: str) -> None:
    axes.plot(
        [number for number, _ in points],
        [value for _, value in points],
        linestyle=line,
        marker=mark if len(points) <= MOST_POINTS else None,
        color=color,
        label=label,
        clip_on=False,
    )


def _score_limits(scores: Iterable[float]) -> tuple[float, float]:
    """Of an axis, within 0 and 1, around all scores and not too narrow."""
    scores = list(scores)
    middle = (min(scores) + max(scores)) / 2
    half = max(LEAST_SCORE_SPAN, 1.2 * (max(scores) - min(scores))) / 2
    return max(0.0, middle - half), min(1.0, middle + half)


def _course(name: str, points: Sequence[Point], text: Callable[[float], str]) -> str:
    """A series in words: its first and last values, and the extremes between."""
    (first, start), (last, end) = points[0], points[-1]
    if len(points) == 1:
        return f"{name}: {text(start)} after round {first}."
    values = [value for _, value in points]
    return (
        f"{name}: from {text(start)} after round {first} to {text(end)} after round {last}; "
        f"lowest {text(min(values))}, highest {text(max(values))}."
    )


def theme_style(theme: Theme) -> dict[str, object]:
    """Return Matplotlib's settings for a theme."""
    return {
        "font.size": 11,
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "figure.facecolor": theme.ground,
        "axes.facecolor": theme.ground,
        "savefig.facecolor": theme.ground,
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "axes.edgecolor": theme.text,
        "xtick.color": theme.text,
        "ytick.color": theme.text,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": theme.grid,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "lines.linewidth": 2,
        "lines.markersize": 5,
        "hatch.linewidth": 0.5,
        "legend.frameon": False,
        "legend.fontsize": 10,
        "legend.handlelength": 1.6,
        "legend.columnspacing": 1.2,
    }
