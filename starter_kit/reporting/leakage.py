"""Plots and files of what a run leaks: the ROC curve on logarithmic axes, and the score of every provider."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evaluator.leakage.results import LeakageResult
from evaluator.leakage.statistics import Attack
from starter_kit.reporting.files import replace_file
from starter_kit.reporting.plots import DPI, LIGHT, SIZE, theme_style

FOLDER = "leakage"
RESULT, EXAMPLES = "leakage.json", "memorized.jsonl"
# Below one provider there is nothing to see.
LEAST_RATE = 1e-3


def write_leakage(folder: Path, result: LeakageResult) -> Path:
    """Write the result, its plots and its examples into `leakage/` of a run folder; return that folder.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) It can't be written.
    """
    target = folder / FOLDER
    target.mkdir(parents=True, exist_ok=True)
    replace_file(target / RESULT, result.model_dump_json(indent=1) + "\n")
    replace_file(target / EXAMPLES, "".join(example.model_dump_json() + "\n" for example in result.examples))
    replace_file(target / "roc.png", roc_plot(result))
    replace_file(target / "providers.png", providers_plot(result))
    return target


def roc_plot(result: LeakageResult) -> bytes:
    """Return the ROC curve of our own attack as a PNG file, on logarithmic axes: rare false accusations count most."""
    scores = np.array([provider.score for provider in result.providers])
    is_member = np.array([provider.is_member for provider in result.providers])
    curve = Attack(scores, is_member, 0.0).roc()
    least = max(LEAST_RATE, 0.5 / max(1, int((~is_member).sum())))
    falsely = curve.false_positive_rates.clip(least, 1)
    rightly = curve.true_positive_rates.clip(least, 1)

    def draw(axes: Axes) -> None:
        axes.step(falsely, rightly, where="post", color=LIGHT.first, label="likelihood ratio")
        axes.plot([least, 1], [least, 1], linestyle="--", color=LIGHT.second, label="guessing")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(least, 1)
        axes.set_ylim(least, 1.05)
        axes.set_xlabel("nonmembers called members")
        axes.set_ylabel("members found")
        axes.legend(loc="lower right")
        axes.set_title("Who was in the training?", loc="left")

    return _png(draw)


def providers_plot(result: LeakageResult) -> bytes:
    """Return the scores of all providers, members above nonmembers, as a PNG file; lines are medians."""
    kinds = [("nonmembers", False, LIGHT.second, "s"), ("members", True, LIGHT.first, "o")]

    def draw(axes: Axes) -> None:
        for row, (_, member, color, mark) in enumerate(kinds):
            scores = sorted(p.score for p in result.providers if p.is_member is member)
            # Spread over the row in a fixed pattern, so that equal scores don't hide each other.
            heights = [row + 0.3 * ((0.618 * place) % 1 - 0.5) for place in range(len(scores))]
            axes.scatter(scores, heights, s=14, color=color, marker=mark, alpha=0.6)
            axes.scatter([np.median(scores)], [row], s=160, color=LIGHT.text, marker="|")
        axes.set_yticks(range(len(kinds)), [name for name, *_ in kinds])
        axes.set_ylim(-0.5, 1.5)
        axes.set_xlabel(
            "log-likelihood ratio" if result.references else "adjusted gain in log-likelihood, nats a token"
        )
        axes.set_title("Scores of all providers", loc="left")

    return _png(draw)


def _png(draw: Callable[[Axes], None]) -> bytes:
    with style.context(["default", theme_style(LIGHT)]):
        figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
        draw(figure.add_subplot())
        pixels = BytesIO()
        figure.savefig(pixels, format="png", metadata={"Software": None})
    return pixels.getvalue()
