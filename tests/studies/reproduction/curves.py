"""Figures A.3 to A.5 of the competition's paper: the scores of rows as published after every round.

The rows are trained again, as outcomes of the reproduction have the last round's score only. A private row is scored on
documents of the providers that it protects, which its settings declare.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from statistics import mean

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from pydantic import BaseModel, ConfigDict

from evaluator.docvqa.vt5 import WEIGHTS
from starter_kit.console import log
from starter_kit.data.forms import FormSettings
from starter_kit.reporting.metrics import METRICS, read_metrics
from starter_kit.reporting.plots import LIGHT, theme_style
from starter_kit.weights import tiny_vt5
from tests.studies.markdown import table_row
from tests.studies.reproduction.claims import BY_NAME
from tests.studies.reproduction.experiment import (
    TASK,
    Experiment,
    TrainedRow,
    made_here,
    made_with,
    score_of,
)
from tests.studies.reproduction.rows import EPSILONS, Row
from tests.studies.study import completed
from tests.studies.tiny_vt5.origin import Origin, read_origin

ANLS, ACCURACY = "anls", "accuracy"
TITLES = {ANLS: "ANLS", ACCURACY: "accuracy"}
HEIGHT, WIDTH = 3.2, 4.2  # of a panel, in inches
MARKS = (("-", "o"), ("--", "s"))


@dataclass(frozen=True)
class Panel:
    """A plot of a figure: two rows, of which the paper says that the second is higher, over their rounds."""

    title: str
    rows: tuple[str, str]
    metric: str = ANLS


TRACK_1 = ("fedavg-published", "fedshampoo")
MOMENTUM = ("dp-clgecl-1", "dp-clgecl-momentum-1")
FIGURES: Mapping[str, Sequence[Panel]] = {
    "A.3": [Panel("accuracy", TRACK_1, ACCURACY), Panel("ANLS", TRACK_1)],
    "A.4": [
        Panel(f"ANLS at ε = {epsilon}", (f"fl-provider-dp-competition-{epsilon}", f"dp-clgecl-{epsilon}"))
        for epsilon in EPSILONS
    ],
    "A.5": [Panel("accuracy at ε = 1", MOMENTUM, ACCURACY), Panel("ANLS at ε = 1", MOMENTUM)],
}
ROWS = list(dict.fromkeys(row for panels in FIGURES.values() for panel in panels for row in panel.rows))


class Frozen(BaseModel):
    """Immutable base of the outcomes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Point(Frozen):
    """Scores on the validation split after a round; 0 is before the first."""

    round: int
    anls: float
    accuracy: float


class Curve(Frozen):
    """The points of one row with one seed."""

    row: str
    seed: int
    points: list[Point]
    settings_sha256: str
    made_with: str


class Curves(Frozen):
    """All curves, and what they were found with."""

    base: Origin
    task: FormSettings
    curves: list[Curve]

    def of(self, row: str) -> list[Curve]:
        """Return a row's curves."""
        return [curve for curve in self.curves if curve.row == row]


def scored(row: Row) -> Row:
    """Return a row whose rounds are scored."""
    private = ("validation_on_private_data=true",) if "target_epsilon" in "".join(row.changes) else ()
    return replace(row, changes=(*row.changes, "evaluate_every=1", *private))


class Convergence:
    """The curves of `rows` with all seeds, trained in the folder of an experiment.

    Args:
        say: Receives what came out, a line each.
    """

    def __init__(
        self,
        folder: Path,
        seeds: int,
        *,
        rows: Sequence[str] = ROWS,
        task: FormSettings = TASK,
        say: Callable[[str], None] = log,
    ) -> None:
        trained = [scored(BY_NAME[row]) for row in rows]
        self._experiment = Experiment(folder, seeds, parts=[TrainedRow(row) for row in trained], task=task)
        self._folder = folder
        self._wanted = [(row, seed) for seed in range(1, seeds + 1) for row in trained]
        self._task = task
        self._say = say

    def run(self, earlier: Curves | None = None) -> Iterator[Curves]:
        """Yield all curves: the `earlier` ones of the same task, base and settings, and new ones of the rest."""
        self._folder.mkdir(parents=True, exist_ok=True)
        base = read_origin()
        same = earlier is not None and (earlier.base, earlier.task) == (base, self._task)
        known = {
            (curve.row, curve.seed, curve.settings_sha256): curve
            for curve in (earlier.curves if earlier and same else [])
        }
        kept = {
            (row, seed): known[key]
            for row, seed in self._wanted
            if (key := (row.name, seed, row.settings_sha256)) in known
        }
        for found in completed(self._wanted, kept, self._measured):
            yield Curves(base=base, task=self._task, curves=found)

    def forget(self, earlier: Curves | None) -> Curves | None:
        """Keep the curves that were made as they would be now."""
        return earlier.model_copy(update={"curves": made_here(earlier.curves)}) if earlier else None

    def _measured(self, wanted: tuple[Row, int]) -> Curve:
        row, seed = wanted
        start = score_of(tiny_vt5.FOLDER / WEIGHTS, self._experiment.data(seed), "valid")
        points = [Point(round=0, anls=start.anls, accuracy=start.accuracy)]
        points += [
            Point(round=line.round, anls=line.anls or 0.0, accuracy=line.accuracy or 0.0)
            for line in read_metrics(self._experiment.run_folder(row, seed) / METRICS)
        ]
        self._say(f"seed {seed}, {row.title}: ANLS {', '.join(f'{point.anls:.3f}' for point in points)}")
        return Curve(
            row=row.name,
            seed=seed,
            points=points,
            settings_sha256=row.settings_sha256,
            made_with=made_with(),
        )


def comparisons(curves: Curves) -> list[str]:
    """Return a table row for each panel: in how many seeds its second row is above the first, and by how much."""
    return [
        table_row(
            figure,
            f"{BY_NAME[panel.rows[0]].title} < {BY_NAME[panel.rows[1]].title} in {TITLES[panel.metric]}",
            *(_compared(pairs, panel.metric, is_last) for is_last in (False, True)),
        )
        for figure, panels in FIGURES.items()
        for panel in panels
        if (pairs := _pairs(curves, panel))
    ]


def _pairs(curves: Curves, panel: Panel) -> list[tuple[Curve, Curve]]:
    lower, upper = (curves.of(row) for row in panel.rows)
    return [(one, other) for one in lower for other in upper if one.seed == other.seed]


def _compared(pairs: Sequence[tuple[Curve, Curve]], metric: str, is_last: bool) -> str:
    """Return how the pairs compare after the last round of each, or after the last round that both have."""
    both = min(len(curve.points) for pair in pairs for curve in pair) - 1
    margins = [
        getattr(upper.points[-1 if is_last else both], metric)
        - getattr(lower.points[-1 if is_last else both], metric)
        for lower, upper in pairs
    ]
    count = f"{mean(margins):+.4f}, {sum(margin > 0 for margin in margins)} of {len(margins)} seeds"
    return count if is_last else f"round {both}: {count}"


def file_of(figure: str) -> str:
    """Return the name of a figure's picture."""
    return f"convergence-{figure.lower().replace('.', '')}.svg"


def pictures(curves: Curves) -> list[str]:
    """Return the figures all of whose rows have curves."""
    return [
        figure
        for figure, panels in FIGURES.items()
        if all(curves.of(row) for panel in panels for row in panel.rows)
    ]


def in_words(curves: Curves, figure: str) -> str:
    """Return what the picture of a figure shows."""
    said = []
    for panel in FIGURES[figure]:
        ends = [
            f"{BY_NAME[row].title} from {means[0]:.3f} to {means[-1]:.3f} in {len(means) - 1} rounds"
            for row in panel.rows
            if (means := _means(curves.of(row), panel.metric))
        ]
        said.append(f"{panel.title}: {' and '.join(ends)}.")
    return f"Scores on the validation split over the rounds, as means over the seeds. {' '.join(said)}"


def _means(found: Sequence[Curve], metric: str) -> list[float]:
    return [
        mean(getattr(point, metric) for point in points)
        for points in zip(*(curve.points for curve in found), strict=True)
    ]


def picture(curves: Curves, figure: str) -> str:
    """Return the picture of a figure as SVG, the same for the same numbers: a thin line for each seed, and means."""
    panels = FIGURES[figure]
    fixed = {"svg.hashsalt": figure, "svg.fonttype": "none", "font.family": "sans-serif"}
    written = StringIO()
    with style.context(["default", theme_style(LIGHT), fixed]):
        drawn = Figure(
            figsize=(WIDTH * len(panels), HEIGHT), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)
        )
        for axes, panel in zip(drawn.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            _draw(axes, panel, curves)
        drawn.savefig(written, format="svg", metadata={"Date": None, "Title": in_words(curves, figure)})
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _draw(axes: Axes, panel: Panel, curves: Curves) -> None:
    for row, color, (line, mark) in zip(panel.rows, (LIGHT.first, LIGHT.second), MARKS, strict=True):
        found = curves.of(row)
        for curve in found:
            axes.plot(
                [point.round for point in curve.points],
                [getattr(point, panel.metric) for point in curve.points],
                line,
                color=color,
                alpha=0.35,
                linewidth=0.8,
            )
        means = _means(found, panel.metric)
        axes.plot(range(len(means)), means, line, marker=mark, color=color, label=BY_NAME[row].title)
    axes.set_title(panel.title, loc="left")
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.legend(loc="best", fontsize="small")
