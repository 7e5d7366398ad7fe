"""The noise that random allocation and coins of the same rate need for a budget, over numbers of rounds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.accounting.calibration import noise_multiplier_for
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Poisson, RandomAllocation, Sampling
from tests.studies.markdown import fill, table_row

DELTA = 1e-5
BUDGETS = (1, 4, 8)
# Rounds, and rounds in a cycle: those of the kit's configs, as near as whole cycles allow, and others up to 2,100.
SETTINGS = (
    (10, 10),
    (16, 4),
    (20, 4),
    (20, 10),
    (30, 10),
    (30, 30),
    (100, 20),
    (100, 50),
    (500, 100),
    (2100, 20),
    (2100, 300),
)


@dataclass(frozen=True)
class Compared:
    """σ for a budget.

    Attributes:
        poisson: By coins of the rate 1/`rounds_per_cycle`.
        allocation: By random allocation.
    """

    rounds: int
    rounds_per_cycle: int
    epsilon: float
    poisson: float
    allocation: float


def run(earlier: list[Compared] | None = None) -> Iterator[list[Compared]]:
    """Yield every setting, with those of `earlier` as they are."""
    found = list(earlier or [])
    known = {(one.rounds, one.rounds_per_cycle, one.epsilon) for one in found}
    for rounds, cycle in SETTINGS:
        for budget in BUDGETS:
            if (rounds, cycle, budget) not in known:
                found.append(compared(rounds, cycle, budget))
                yield found
    yield found


def compared(rounds: int, cycle: int, epsilon: float) -> Compared:
    """Return the noise of both ways of sampling."""

    def noise(sampling: Sampling) -> float:
        mechanism = Mechanism(sampling=sampling, noise=Noise(multiplier=1.0), clients=1)
        return noise_multiplier_for(
            mechanism, epsilon=epsilon, delta=DELTA, rounds=rounds, rule=SamplingRule.TWO_STAGE
        )

    return Compared(
        rounds,
        cycle,
        epsilon,
        poisson=noise(Poisson(provider_rate=1 / cycle)),
        allocation=noise(RandomAllocation(rounds_per_cycle=cycle)),
    )


def page(found: Iterable[Compared]) -> str:
    """Return the page in Markdown."""
    settings: dict[tuple[int, int], list[Compared]] = {}
    for one in found:
        settings.setdefault((one.rounds, one.rounds_per_cycle), []).append(one)
    rows = (
        table_row(
            f"{rounds:,}",
            rounds // cycle,
            f"1/{cycle}",
            *(
                f"{one.poisson:.3f} → {one.allocation:.3f} ({one.allocation / one.poisson - 1:+.1%})"
                for one in sorted(row, key=lambda one: one.epsilon)
            ),
        )
        for (rounds, cycle), row in sorted(settings.items())
    )
    return fill(Path(__file__).with_suffix(".md"), table=rows)
