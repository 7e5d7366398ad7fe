"""Plots of a data set: documents by provider, as in the papers' Figure 2, and questions by key, as in Figure A.4."""

from collections import Counter
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from starter_kit.data.summary import SplitTally
from starter_kit.reporting.files import replace_file
from starter_kit.reporting.plots import DPI, LIGHT, theme_style

WIDTH = 6.4  # inches
KEYS = 30


def write_data_plots(folder: Path, splits: Mapping[str, SplitTally]) -> list[Path]:
    """Write the plots into `folder`, and return their paths.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) The folder can't be written into.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"providers.png": _providers(splits), "keys.png": _keys(splits)}
    for name, content in drawn.items():
        replace_file(folder / name, content)
    return [folder / name for name in drawn]


def _providers(splits: Mapping[str, SplitTally]) -> bytes:
    """Draw the documents of each provider of a split, the largest first."""
    with style.context(["default", theme_style(LIGHT)]):
        figure, all_axes = _figure(len(splits), 1.6)
        for axes, (split, tally) in zip(all_axes, splits.items(), strict=True):
            sizes = sorted(
                (len(documents) for documents in tally.documents_by_provider.values()), reverse=True
            )
            axes.fill_between(range(len(sizes)), sizes, step="mid", color=LIGHT.first)
            axes.set_yscale("log")
            axes.set_title(split, loc="left")
            axes.set_ylabel("documents")
        all_axes[-1].set_xlabel("providers, by number of documents")
        return _png(figure)


def _keys(splits: Mapping[str, SplitTally]) -> bytes:
    """Draw how many questions there are about each key, for the most frequent keys."""
    asked = sum((tally.questions_by_key for tally in splits.values()), Counter[str]())
    names, counts = zip(*asked.most_common(KEYS)[::-1], strict=True) if asked else ((), ())
    with style.context(["default", theme_style(LIGHT)]):
        figure, (axes,) = _figure(1, max(1.6, 0.25 * len(names) + 1))
        axes.barh([name or "unknown" for name in names], counts, color=LIGHT.first)
        axes.set_xlabel("questions")
        return _png(figure)


def _figure(panels: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, panels * height), dpi=DPI, layout="constrained")
    return figure, [figure.add_subplot(panels, 1, panel + 1) for panel in range(panels)]


def _png(figure: Figure) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png")
    return written.getvalue()
