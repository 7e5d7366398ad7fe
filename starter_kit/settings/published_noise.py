"""The published private runs: the noise that they used and the ε that they claim, to be accounted by the kit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluator.mechanisms.events import Event
from evaluator.mechanisms.mechanism import Mechanism, SamplingRule
from evaluator.mechanisms.noise import Noise
from evaluator.mechanisms.sampling import Poisson
from starter_kit.published import Source, Table, published

DELTA = 1e-5
CLIENTS = 10


@dataclass(frozen=True)
class PublishedRun:
    """A run as it was accounted: coins for clients (rate C) and then for their providers (rate p).

    Attributes:
        source: A model of the privacy paper, the competition's kit, or the winner of track 2.
    """

    source: str
    claimed_epsilon: float
    client_rate: float
    provider_rate: float
    noise_multiplier: float
    rounds: int

    def releases(self) -> Mapping[SamplingRule, Sequence[Event]]:
        """Return what the run releases under each amplification rule."""
        mechanism = Mechanism(
            sampling=Poisson(client_rate=self.client_rate, provider_rate=self.provider_rate),
            noise=Noise(multiplier=self.noise_multiplier),
            clients=CLIENTS,
        )
        return mechanism.releases(self.rounds)


def published_runs() -> list[PublishedRun]:
    """Return the private runs of Table A8 of the privacy paper, of the competition's kit, and of track 2's winner."""
    hyperparameters = published().table(Source.PRIVACY, "A8")
    everyone = hyperparameters.number("VT5_C", "providers_per_round").value
    tables = (
        (hyperparameters, {"VT5_C+DP": "VT5_C+DP", "VT5_FL+DP": "VT5_FL+DP"}),
        (published().table(Source.KIT, "configs/models/VT5.yml"), {"baseline": "kit"}),
        (published().table(Source.WINNER, "configs/models/VT5.yml"), {"LoRA": "winner"}),
    )
    return [
        _run(table, row, name, everyone)
        for table, names in tables
        for row in table.rows
        if (name := names.get(row.partition(",")[0]))
    ]


def _run(table: Table, row: str, source: str, everyone: float) -> PublishedRun:
    printed = {number.column: number.value for number in table.numbers() if number.row == row}
    sampled = printed.get("providers_per_round")
    return PublishedRun(
        source,
        claimed_epsilon=printed["epsilon"],
        client_rate=printed["client_rate"],
        provider_rate=printed["provider_rate"] if sampled is None else sampled / everyone,
        noise_multiplier=printed["noise_multiplier"],
        rounds=int(printed["rounds"]),
    )
