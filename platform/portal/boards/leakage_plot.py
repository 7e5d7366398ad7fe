"""The plot of measured leakage against ε, with what ε allows any attack at most."""

from collections.abc import Sequence

from django.template.loader import render_to_string

from evaluator.accounting.bounds import MembershipBounds
from evaluator.messages.leakage import Leakage
from portal.boards.plot_marks import drawn_marks, table_rows
from portal.boards.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Mark
from portal.evaluation.display.results import leakage_text
from portal.submissions.models import Run
from portal.ui.axes import LinearAxis, Point, Tick
from portal.ui.budgets import IN_ONE_PIECE
from portal.ui.rounding import epsilon_text

GUESSING = 0.5
# Where the axis begins at the latest: guessing has some room below it.
LOWEST = 0.4


def leakage_plot(runs: Sequence[Run]) -> str:
    """Return the plot of the private runs that were measured; empty where there is none."""
    chart = leakage_chart(runs)
    if chart is None:
        return ""
    context = {"plot": chart, "marks": drawn_marks(chart), "rows": table_rows(chart)}
    return render_to_string("boards/plot.html", context)


def leakage_chart(runs: Sequence[Run]) -> Chart | None:
    """Return the balanced accuracy of the attack on each measured run, below what its ε allows; None without any."""
    measured = [
        (run, run.results.leakage, run.results.membership)
        for run in sorted(runs, key=lambda run: run.results.epsilon or 0)
        if run.results.leakage and run.results.epsilon is not None
    ]
    if not measured:
        return None
    shown = [found.balanced_accuracy for _, found, _ in measured if found.balanced_accuracy is not None]
    y = LinearAxis([LOWEST, 1, *shown], HEIGHT - BOTTOM, TOP)
    room = (WIDTH - RIGHT - LEFT) / len(measured)
    places = [round(LEFT + room * (number + 0.5), 1) for number in range(len(measured))]
    allowed: list[Point] = [
        (x, y.at(bounds.balanced_accuracy))
        for x, (_, _, bounds) in zip(places, measured, strict=True)
        if bounds
    ]
    return Chart(
        name="leakage",
        title="Leakage against ε",
        x_title="recomputed ε",
        y_title="balanced accuracy of an attack",
        x_ticks=[
            Tick(f"{IN_ONE_PIECE}{epsilon_text(run.results.epsilon or 0)}", x)
            for x, (run, _, _) in zip(places, measured, strict=True)
        ],
        y_ticks=y.ticks,
        lines=[("front", " ".join(f"{x},{at}" for x, at in allowed))] if allowed else [],
        marks=[
            Mark(
                (x, y.at(found.balanced_accuracy)),
                "measured",
                f"{found.balanced_accuracy:.2f} measured at {IN_ONE_PIECE}{epsilon_text(run.results.epsilon or 0)}",
                f"#run-{run.pk}",
            )
            for x, (run, found, _) in zip(places, measured, strict=True)
            if found.balanced_accuracy is not None
        ],
        level=(y.at(GUESSING), "guessing"),
        key=[
            ("front", "the most that ε allows any attack"),
            ("measured", "measured, where it is significant"),
        ],
        columns=["ε", "AUC", "Balanced accuracy", "TPR at 1 % FPR", "TPR at 10 % FPR"],
        table=[_cells(run, found, bounds) for run, found, bounds in measured],
    )


def _cells(run: Run, found: Leakage, bounds: MembershipBounds | None) -> list[str]:
    rates = {rate.false_positive_rate: rate.at_most for rate in bounds.true_positive_rates} if bounds else {}
    return [
        epsilon_text(run.results.epsilon or 0),
        leakage_text(found),
        _at_most(found.balanced_accuracy, bounds.balanced_accuracy if bounds else None),
        _at_most(found.tpr_at_1_percent, rates.get(0.01)),
        _at_most(found.tpr_at_10_percent, rates.get(0.1)),
    ]


def _at_most(measured: float | None, bound: float | None) -> str:
    """Return a measured figure with what ε allows at most."""
    value = "n.s." if measured is None else f"{measured:.2f}"
    return value if bound is None else f"{value} (at most {bound:.3f})"
