"""The published settings of provider-level DP on PFL-DocVQA, and their ε under each amplification rule.

All were accounted as if coins drew clients and providers, at δ = 1e-5. The published kit draws fixed numbers of both
instead, which costs more: the last two columns are what a run with that sampler is accounted as.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.accounting import pld, rdp
from evaluator.mechanisms.events import Event, FixedSizeGaussian, TwoStage
from evaluator.mechanisms.mechanism import SamplingRule
from starter_kit.settings.published_noise import DELTA, PublishedRun, published_runs
from tests.studies import published_bytes
from tests.studies.markdown import fill, table_row


def fixed_sizes(run: PublishedRun) -> tuple[list[Event], list[Event]] | None:
    """Return a run with fixed numbers of clients and providers, by the product rule and by the two-stage rule.

    None where all providers of a client take part: nothing is drawn there.
    """
    if run.provider_rate == 1:
        return None

    def drawn(rate: float, rounds: int) -> FixedSizeGaussian:
        return FixedSizeGaussian(
            sampling_rate=rate, effective_noise_multiplier=run.noise_multiplier, rounds=rounds
        )

    product: list[Event] = [drawn(run.client_rate * run.provider_rate, run.rounds)]
    if run.client_rate == 1:
        return product, product
    within = drawn(run.provider_rate, 1)
    return product, [TwoStage(client_rate=run.client_rate, within=within, rounds=run.rounds)]


@dataclass(frozen=True)
class Accounted:
    """The ε of a setting under each rule, by both accountants.

    Attributes:
        fixed_sizes: With fixed numbers of clients and providers, under each rule by PLD; None where nothing is drawn.
    """

    setting: PublishedRun
    product_pld: float
    product_rdp: float
    two_stage_pld: float
    two_stage_rdp: float
    fixed_sizes: tuple[float, float] | None


def run(earlier: list[Accounted] | None = None) -> Iterator[list[Accounted]]:
    """Yield every setting, accounted by the accountants as they are."""
    yield [_accounted(setting) for setting in published_runs()]


def _accounted(setting: PublishedRun) -> Accounted:
    fixed, releases = fixed_sizes(setting), setting.releases()
    product, two_stage = releases[SamplingRule.PRODUCT], releases[SamplingRule.TWO_STAGE]
    return Accounted(
        setting,
        product_pld=pld.epsilon(product, DELTA),
        product_rdp=rdp.epsilon(product, DELTA),
        two_stage_pld=pld.epsilon(two_stage, DELTA),
        two_stage_rdp=rdp.epsilon(two_stage, DELTA),
        fixed_sizes=fixed and (pld.epsilon(fixed[0], DELTA), pld.epsilon(fixed[1], DELTA)),
    )


def page(accounted: Iterable[Accounted]) -> str:
    """Return the page in Markdown."""
    return fill(
        Path(__file__).with_suffix(".md"), table=map(_row, accounted), bytes_table=published_bytes.rows()
    )


def _row(found: Accounted) -> str:
    setting = found.setting
    bounds = [
        found.product_pld,
        found.product_rdp,
        found.two_stage_pld,
        found.two_stage_rdp,
        *(found.fixed_sizes or (None, None)),
    ]
    return table_row(
        setting.source,
        f"{setting.claimed_epsilon:g}",
        f"{setting.client_rate:g}",
        f"{setting.provider_rate:.4g}",
        f"{setting.noise_multiplier:.5g}",
        setting.rounds,
        *("–" if bound is None else f"{bound:.3f}" for bound in bounds),
    )
