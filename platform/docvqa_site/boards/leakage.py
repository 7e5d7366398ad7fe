"""Measured leakage beside the most that ε allows: a plot, and whether the two contradict each other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from django.utils.safestring import SafeString

from docvqa_site.boards import cells
from docvqa_site.boards.leakage_figures import BELOW, FIGURES, Figure, figures_of, range_text
from docvqa_site.evaluation.display.results import leakage_text
from docvqa_site.submissions.models import Run
from docvqa_site.ui.axes import Axis, Tick, categories, linear
from docvqa_site.ui.budgets import IN_ONE_PIECE, at_budget
from docvqa_site.ui.markup import markup
from docvqa_site.ui.plots import Level, Line, Mark, Plot
from docvqa_site.ui.rounding import epsilon_text, percent_up
from evaluator.messages.leakage import Leakage

GUESSING = 0.5
# Where the axis begins at the latest: guessing has some room below it.
LOWEST = 0.4
AUC_TEXT = "{:.2f}".format


@dataclass(frozen=True)
class Measured:
    """The leakage of one run."""

    run: Run
    epsilon: float
    leakage: Leakage
    figures: Sequence[Figure]

    @property
    def place(self) -> str:
        """Its ε in words."""
        return f"{IN_ONE_PIECE}{epsilon_text(self.epsilon)}"

    @property
    def auc(self) -> SafeString:
        """The AUC with its interval."""
        interval = self.leakage.auc_interval
        below = markup(BELOW, range_text(interval, AUC_TEXT)) if interval else SafeString("")
        return markup("{}{}", cells.leakage(self.leakage), below)


@dataclass(frozen=True)
class LeakageVerdict:
    """What measured leakage says about the recomputed ε.

    Attributes:
        contradictions: The figures whose whole interval is above their bound, each after its ε.
        above: The figures above their bound whose interval isn't, each after its ε.
        unclear: Whether a value without an interval is above its bound.
        is_consistent: Whether intervals were compared with bounds, and nothing is contradicted or unclear.
    """

    contradictions: Sequence[tuple[str, Figure]]
    above: Sequence[tuple[str, Figure]]
    unclear: bool
    is_consistent: bool


def measured(runs: Iterable[Run]) -> list[Measured]:
    """Return the leakage of those of the runs that have some and an ε, by rising ε."""
    return [
        Measured(run, run.results.epsilon, run.results.leakage, figures_of(run.results))
        for run in sorted(runs, key=lambda run: run.results.epsilon or 0)
        if run.results.leakage and run.results.epsilon is not None
    ]


def stated(runs: Iterable[Run]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the budget of each run with a measured leakage, and cells after their heads: what was found, how surely,
    and where ε limits it, the most that it allows.
    """
    return [
        (at_budget(run.budget, "{}") or "Run", _stated_cells(leakage, figures_of(run.results)))
        for run in runs
        if (leakage := run.results.leakage)
    ]


def _stated_cells(leakage: Leakage, figures: Sequence[Figure]) -> list[tuple[str, str]]:
    least = "" if leakage.least_auc is None else f"{leakage.least_auc:.2f}"
    if leakage.auc is None:
        notes = [least and f"AUC below {least}"]
    else:
        interval = leakage.auc_interval and f"95% interval {range_text(leakage.auc_interval, AUC_TEXT)}"
        notes = [interval or "", least and f"significant from {least}"]
    below = [markup(BELOW, note) for note in notes if note]
    return [
        ("AUC of the attack", markup("{}{}", leakage_text(leakage), SafeString("".join(below)))),
        ("Providers tested", str(leakage.providers)),
        *((figure.name, figure.cell) for figure in figures if figure.bound_text),
    ]


def verdict(found: Sequence[Measured]) -> LeakageVerdict:
    """Return whether the measured values fit the ε of their runs."""
    figures = [(one.place, figure) for one in found for figure in one.figures]
    contradictions = [(place, figure) for place, figure in figures if figure.excludes_bound]
    above = [(place, figure) for place, figure in figures if figure.is_above and not figure.excludes_bound]
    unclear = any(figure.interval is None for _, figure in above)
    compared = any(figure.interval and figure.bound is not None for _, figure in figures)
    is_consistent = compared and not contradictions and not unclear
    return LeakageVerdict(contradictions, above, unclear, is_consistent)


def leakage_plot(found: Sequence[Measured]) -> Plot | None:
    """Return the balanced accuracy of the attack on each run, below the most that its ε allows.

    None where no attack succeeded significantly: the table of results says so.
    """
    shown = [(number, one, one.figures[0]) for number, one in enumerate(found)]
    points = [
        (number, one, figure.value, figure) for number, one, figure in shown if figure.value is not None
    ]
    if not points:
        return None
    bounds = [(number, figure.bound) for number, _, figure in shown if figure.bound is not None]
    # The line of a single ε is as wide as its part of the axis: one point would draw nothing.
    ends_of_one = (-0.5, 0.5) if len(bounds) == 1 else (0.0,)
    allowed = [(number + shift, bound) for number, bound in bounds for shift in ends_of_one]
    intervals = [
        Line("interval", [(number, end) for end in figure.interval], "95% interval", is_interval=True)
        for number, *_, figure in points
        if figure.interval
    ]
    ends = [end for line in intervals for _, end in line.points]
    return Plot(
        name="leakage",
        title="Leakage vs. ε",
        x=categories("recomputed ε", [one.place for one in found]),
        y=_in_percent(
            linear(
                "balanced accuracy of an attack", [LOWEST, 1, *ends, *(value for _, _, value, _ in points)]
            )
        ),
        lines=[
            *([Line("front", allowed, "maximum for any attack at this ε")] if allowed else []),
            *intervals,
        ],
        marks=[
            Mark(
                (number, value),
                "measured",
                f"{percent_up(value)} measured at {one.place}"
                + (f", 95% interval {figure.interval_text}" if figure.interval else ""),
                f"#run-{one.run.pk}",
            )
            for number, one, value, figure in points
        ],
        level=Level(GUESSING, "guessing"),
        key=[("measured", "measured (significant values only)")],
        columns=["ε", "AUC", *(name for name, _ in FIGURES.values())],
        rows=[
            (epsilon_text(one.epsilon), one.auc, *(figure.cell for figure in one.figures)) for one in found
        ],
    )


def _in_percent(axis: Axis) -> Axis:
    return replace(axis, ticks=[Tick(percent_up(float(tick.text)), tick.at) for tick in axis.ticks])
