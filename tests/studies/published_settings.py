"""The published settings of provider-level DP on PFL-DocVQA, and their ε under each amplification rule.

Sources: `paper` is the privacy-aware DocVQA paper (Table A8 with the results of Table A2), `kit` the competition's
published starter kit, `winner` the winning submission of its track 2. All sample clients and providers as Poisson
coins for their accounting; δ = 1e-5. The published kit draws fixed numbers of both instead, which costs more: the last
two columns are what a run with that sampler is accounted as.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.accounting import pld, rdp
from evaluator.mechanisms.events import Event, FixedSizeGaussian, Gaussian, PoissonGaussian, TwoStage
from tests.studies import published_bytes
from tests.studies.markdown import fill, table_row

DELTA = 1e-5


@dataclass(frozen=True)
class Setting:
    """One published run: the ε that it claims, client rate C, provider rate p, noise multiplier and rounds."""

    source: str
    claimed_epsilon: float
    client_rate: float
    provider_rate: float
    noise_multiplier: float
    rounds: int

    def product(self) -> list[Event]:
        """Return the run as it was accounted: every provider's own sampling rate is C·p."""
        rate = self.client_rate * self.provider_rate
        return [
            PoissonGaussian(
                sampling_rate=rate, effective_noise_multiplier=self.noise_multiplier, rounds=self.rounds
            )
        ]

    def two_stage(self) -> list[Event]:
        """Return the run as it was sampled: first clients, visibly, and then their providers."""
        if self.client_rate == 1:
            return self.product()
        inner: Gaussian | PoissonGaussian = Gaussian(effective_noise_multiplier=self.noise_multiplier)
        if self.provider_rate < 1:
            inner = PoissonGaussian(
                sampling_rate=self.provider_rate, effective_noise_multiplier=self.noise_multiplier
            )
        return [TwoStage(client_rate=self.client_rate, within=inner, rounds=self.rounds)]

    def fixed_sizes(self) -> tuple[list[Event], list[Event]] | None:
        """Return the run with fixed numbers of clients and providers, by the product rule and by the two-stage rule.

        None where all providers of a client take part: nothing is drawn there.
        """
        if self.provider_rate == 1:
            return None

        def drawn(rate: float, rounds: int) -> FixedSizeGaussian:
            return FixedSizeGaussian(
                sampling_rate=rate, effective_noise_multiplier=self.noise_multiplier, rounds=rounds
            )

        product: list[Event] = [drawn(self.client_rate * self.provider_rate, self.rounds)]
        if self.client_rate == 1:
            return product, product
        within = drawn(self.provider_rate, 1)
        return product, [TwoStage(client_rate=self.client_rate, within=within, rounds=self.rounds)]


SETTINGS = [
    Setting("paper, centralized", 8, 1, 1000 / 4149, 0.83251953125, 10),
    Setting("paper, centralized", 4, 1, 1000 / 4149, 1.25244140625, 10),
    Setting("paper, centralized", 1, 1, 1000 / 4149, 3.3203125, 10),
    Setting("paper, federated", 8, 0.2, 1, 0.771484375, 10),
    Setting("paper, federated", 4, 0.2, 1, 1.13647460937, 10),
    Setting("paper, federated", 1, 0.2, 1, 2.8515625, 10),
    Setting("kit", 8, 0.2, 0.125, 0.468, 5),
    Setting("kit", 4, 0.2, 0.125, 0.637, 5),
    Setting("kit", 1, 0.2, 0.125, 1.145, 5),
    Setting("winner", 1, 0.2, 0.1125, 1.21, 30),
]


@dataclass(frozen=True)
class Accounted:
    """The ε of a setting under each rule, by both accountants.

    Attributes:
        fixed_sizes: With fixed numbers of clients and providers, under each rule by PLD; None where nothing is drawn.
    """

    setting: Setting
    product_pld: float
    product_rdp: float
    two_stage_pld: float
    two_stage_rdp: float
    fixed_sizes: tuple[float, float] | None


def run(earlier: list[Accounted] | None = None) -> Iterator[list[Accounted]]:
    """Yield every setting, accounted by the accountants as they are."""
    yield [_accounted(setting) for setting in SETTINGS]


def _accounted(setting: Setting) -> Accounted:
    fixed = setting.fixed_sizes()
    return Accounted(
        setting,
        product_pld=pld.epsilon(setting.product(), DELTA),
        product_rdp=rdp.epsilon(setting.product(), DELTA),
        two_stage_pld=pld.epsilon(setting.two_stage(), DELTA),
        two_stage_rdp=rdp.epsilon(setting.two_stage(), DELTA),
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
