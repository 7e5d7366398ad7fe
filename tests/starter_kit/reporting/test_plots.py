"""Plots: which there are, what they say in words, and what is drawn, read from the axes and from the files."""

from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from evaluator.errors import ProblemError
from starter_kit.reporting.metrics import RoundMetrics
from starter_kit.reporting.plots import DARK, LIGHT, Plot, Theme, draw_plots, plots_of, png, write_plots
from tests.starter_kit.reporting.runs import (
    open_round,
    open_rounds,
    open_summary,
    private_rounds,
    private_summary,
)


def plot_named(name: str, plots: list[Plot]) -> Plot:
    return next(plot for plot in plots if plot.name == name)


def drawn(plot: Plot) -> Axes:
    axes = Figure().add_subplot()
    plot.draw(axes, LIGHT)
    return axes


def line(axes: Axes, label: str) -> list[tuple[float, float]]:
    series = next(line for line in axes.get_lines() if line.get_label() == label)
    return [(float(x), float(y)) for x, y in np.asarray(series.get_xydata())]


def written(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "plots").iterdir())


def test_a_run_that_is_not_private_shows_scores_bytes_and_loss(tmp_path: Path) -> None:
    write_plots(tmp_path, draw_plots(open_rounds(4), open_summary()))
    assert written(tmp_path) == ["bytes.png", "loss.png", "scores.png"]
    for path in (tmp_path / "plots").iterdir():
        with Image.open(path) as image:
            assert image.format == "PNG"
            assert image.size == (960, 660)


def test_a_private_run_shows_epsilon_and_no_loss(tmp_path: Path) -> None:
    write_plots(tmp_path, draw_plots(private_rounds(4), private_summary()))
    assert written(tmp_path) == ["bytes.png", "epsilon.png"]


def test_a_private_run_that_reports_its_loss_is_not_drawn() -> None:
    with pytest.raises(ProblemError):
        draw_plots([*private_rounds(4), open_round(5)], private_summary())


def test_a_run_without_rounds_has_no_plots() -> None:
    assert plots_of([], open_summary()) == []
    assert plots_of([RoundMetrics(round=0, bytes_down=0, bytes_up=0)], open_summary()) == []


def test_scores_are_drawn_where_there_are_some() -> None:
    axes = drawn(plot_named("scores", plots_of(open_rounds(4), open_summary())))
    assert line(axes, "ANLS") == [(0, 0.2), (2, 0.5), (4, 0.5)]
    assert line(axes, "accuracy") == [(0, 0.1), (2, 0.25), (4, 0.25)]


def test_one_score_is_a_point_with_room_around() -> None:
    metrics = [RoundMetrics(round=1, bytes_down=1, bytes_up=1, anls=0.99)]
    axes = drawn(plot_named("scores", plots_of(metrics, open_summary())))
    assert [line.get_marker() for line in axes.get_lines()] == ["o"]
    assert axes.get_ylim() == pytest.approx((0.94, 1.0))


def test_a_single_kind_of_score_is_not_called_both() -> None:
    metrics = [RoundMetrics(round=1, bytes_down=1, bytes_up=1, accuracy=0.5)]
    assert plot_named("scores", plots_of(metrics, open_summary())).title == "Accuracy on the validation split"


def test_a_thousand_rounds_are_a_line_without_points() -> None:
    axes = drawn(plot_named("loss", plots_of(open_rounds(1000), open_summary())))
    assert axes.get_lines()[0].get_marker() == "None"
    assert len(line(axes, "loss")) == 1000


def test_bytes_add_up_from_zero() -> None:
    metrics = [RoundMetrics(round=number, bytes_down=3_000_000, bytes_up=1_000_000) for number in (1, 2)]
    plot = plot_named("bytes", plots_of(metrics, open_summary()))
    axes = drawn(plot)
    assert line(axes, "both") == [(0, 0), (1, 4), (2, 8)]
    assert axes.get_ylabel() == "sent since the start, MB"
    assert plot.in_words == (
        "Sent after round 2: 6.00 MB from the server to clients and 2.00 MB from clients to the server, 8.00 MB in all."
    )


def test_epsilon_is_drawn_with_its_budget() -> None:
    plot = plot_named("epsilon", plots_of(private_rounds(4), private_summary()))
    axes = drawn(plot)
    assert line(axes, "ε spent") == [(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)]
    assert [y for _, y in line(axes, "budget 2")] == [2.0, 2.0]
    assert axes.get_ylabel() == "ε at δ = 1e-05"
    assert plot.title == "ε spent, for each provider"
    assert plot.in_words == (
        "ε: from 0.50000 after round 1 to 2.0000 after round 4; lowest 0.50000, highest 2.0000. The budget is 2."
    )


def test_without_a_budget_there_is_no_line_of_one() -> None:
    axes = drawn(plot_named("epsilon", plots_of(private_rounds(4), private_summary(budget=None))))
    assert [series.get_label() for series in axes.get_lines()] == ["ε spent"]


def test_the_unit_of_epsilon_is_named() -> None:
    plots = plots_of(private_rounds(1), private_summary(unit="client"))
    assert plot_named("epsilon", plots).title == "ε spent, for each client"


def test_plots_are_the_same_whatever_the_user_prefers(monkeypatch: pytest.MonkeyPatch) -> None:
    plot = plot_named("loss", plots_of(open_rounds(4), open_summary()))
    plain = png(plot)
    monkeypatch.setitem(matplotlib.rcParams, "text.usetex", True)
    monkeypatch.setitem(matplotlib.rcParams, "lines.linewidth", 30.0)
    assert png(plot) == plain
    assert matplotlib.rcParams["lines.linewidth"] == 30.0


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_the_ground_is_the_theme_s(theme: Theme) -> None:
    plot = plot_named("loss", plots_of(open_rounds(4), open_summary()))
    corner = np.asarray(Image.open(BytesIO(png(plot, theme))).convert("RGB"))[0, 0]
    assert "#" + bytes(corner).hex() == theme.ground
