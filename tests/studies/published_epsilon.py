"""docs/published-epsilon.md and its picture: the privacy paper's ε for someone who sees which clients take part.

All providers of a drawn client take part there (p = 1). Given the number k of rounds in which its client takes part, a
provider is protected by a Gaussian mechanism with μ = √k/σ, whose δ has a closed form; k is binomial and visible.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from math import comb, exp, sqrt
from pathlib import Path

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from scipy.optimize import brentq
from scipy.special import ndtr

from starter_kit.reporting.plots import LIGHT, theme_style
from starter_kit.settings.published_noise import DELTA, PublishedRun, published_runs
from tests.studies.markdown import fill, table_row
from tests.studies.published_settings import Accounted

NAME = "published-epsilon"
SIZE = (9.0, 3.6)  # inches


@dataclass(frozen=True)
class Exposed:
    """A published run with p = 1, to someone who sees which clients take part."""

    run: PublishedRun

    @cached_property
    def chances(self) -> list[float]:
        """The probability of each number of rounds in which a provider's client takes part."""
        rounds, rate = self.run.rounds, self.run.client_rate
        return [comb(rounds, k) * rate**k * (1 - rate) ** (rounds - k) for k in range(rounds + 1)]

    def delta(self, epsilon: float) -> float:
        """Return the δ at this ε, over all numbers of rounds."""
        return sum(
            chance * gaussian_delta(epsilon, sqrt(k) / self.run.noise_multiplier)
            for k, chance in enumerate(self.chances)
        )

    @cached_property
    def epsilon(self) -> float:
        """The ε at δ = 1e-5."""
        return _root(self.delta)

    def epsilon_after(self, k: int) -> float:
        """Return the ε at δ = 1e-5 where it is known that the client took part in `k` rounds."""
        return (
            _root(lambda epsilon: gaussian_delta(epsilon, sqrt(k) / self.run.noise_multiplier)) if k else 0.0
        )


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the δ of a Gaussian mechanism whose two outputs are μ standard deviations apart (Balle and Wang 2018)."""
    if mu == 0:
        return 0.0
    return float(ndtr(mu / 2 - epsilon / mu) - exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def exposed_runs() -> list[Exposed]:
    """Return the federated runs of the privacy paper."""
    return [Exposed(run) for run in published_runs() if run.source == "VT5_FL+DP"]


def page(accounted: list[Accounted]) -> str:
    """Return the page in Markdown; the accountants' ε stand beside those of the closed form."""
    first, *_ = exposed = exposed_runs()
    found = {one.setting: one for one in accounted}
    return fill(
        Path(__file__).with_suffix(".md"),
        results=[_result(one, found[one.run]) for one in exposed],
        rounds=[
            table_row(k, f"{100 * chance:.3g}%", f"{first.epsilon_after(k):.2f}")
            for k, chance in enumerate(first.chances)
        ],
        in_words=in_words(first),
        most_likely=f"{100 * first.chances[2]:.0f}%",
        twice=f"{first.epsilon_after(2):.2f}",
    )


def _result(exposed: Exposed, accounted: Accounted) -> str:
    return table_row(
        f"{exposed.run.claimed_epsilon:g}",
        f"{exposed.run.noise_multiplier:.5f}",
        f"{accounted.product_pld:.2f}",
        f"{exposed.epsilon:.2f}",
        f"{accounted.two_stage_pld:.2f}",
    )


def in_words(exposed: Exposed) -> str:
    """Return what the picture shows."""
    run = exposed.run
    return (
        f"Two plots over the number of rounds, out of {run.rounds}, in which a provider's client takes part. Left: its "
        f"probability, highest at 2 with {100 * exposed.chances[2]:.0f}%. Right: ε given this number, from 0 to "
        f"{exposed.epsilon_after(run.rounds):.1f}. It exceeds the claimed {run.claimed_epsilon:g} from 2 rounds on; "
        f"over all numbers, ε is {exposed.epsilon:.2f}."
    )


def picture(exposed: Exposed) -> str:
    """Return the picture as SVG, the same for the same numbers."""
    ks = range(exposed.run.rounds + 1)
    fixed = {"svg.hashsalt": NAME, "svg.fonttype": "none", "font.family": "sans-serif"}
    written = StringIO()
    with style.context(["default", theme_style(LIGHT), fixed]):
        figure = Figure(figsize=SIZE, layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1, wspace=0.08))
        left, right = figure.subplots(1, 2)
        left.bar(ks, exposed.chances, color=LIGHT.first)
        left.set_title("How often your client takes part", loc="left")
        left.set_ylabel("probability")
        right.plot(
            ks, [exposed.epsilon_after(k) for k in ks], "o-", color=LIGHT.first, label="ε given the rounds"
        )
        right.axhline(
            exposed.epsilon, linestyle="-.", color=LIGHT.text, label=f"{exposed.epsilon:.2f}, over all"
        )
        claimed = exposed.run.claimed_epsilon
        right.axhline(claimed, linestyle="--", color=LIGHT.second, label=f"{claimed:g}, claimed")
        right.set_title("What someone learns who sees that", loc="left")
        right.set_ylabel(f"ε at δ = {DELTA:g}")
        right.set_ylim(0, None)
        right.legend(loc="upper left")
        for axes in (left, right):
            axes.set_xlabel(f"rounds, of {exposed.run.rounds}")
            axes.set_xticks([*ks])
        figure.savefig(written, format="svg", metadata={"Date": None, "Title": in_words(exposed)})
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines()) + "\n"


def _root(delta: Callable[[float], float]) -> float:
    return float(brentq(lambda epsilon: delta(epsilon) - DELTA, 0.0, 200.0, xtol=1e-9))
