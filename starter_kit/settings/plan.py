"""The plan of a run, made once from its settings and the clients of the data set."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.mechanisms.mechanism import Mechanism
from evaluator.records.server_steps import ServerStep
from starter_kit.dp.guarantee import Guarantee
from starter_kit.federation.auxiliary import NO_AUXILIARY, AuxiliaryVectors
from starter_kit.federation.rounds import Client, Method


@dataclass(frozen=True)
class RecordTerms:
    """The mechanism as the training record's first line states it; see `evaluator.records.lines.RunLine`."""

    mechanism: Mechanism
    clip_norm: float
    normalizer: float
    server: ServerStep


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a run.

    Attributes:
        clients: The clients as the method sees them: the data set's own, unless a method pools them.
        method: What clients and server do in a round.
        rounds: How many rounds are planned: those of the settings, or fewer where a budget allows no more.
        most_clients: The most clients that take part in a round; None for all.
        coordinate_bound: The largest absolute value of a coordinate of one client's update, where the method knows it;
            None where the settings of secure aggregation must give it.
        guarantee: The run's differential privacy guarantee; None where nothing is private.
        record_terms: What the training record states; None where the run writes none.
        needs_every_client: Whether a round counts only if all chosen clients answered.
        auxiliary: The auxiliary vectors that travel with the model in both directions.
        step_of_mean: What the server does with the mean of the updates, where nothing else changes the model: from such
            a run's messages the evaluator computes the checkpoint. None where something else does.
    """

    clients: Sequence[Client]
    method: Method
    rounds: int
    most_clients: int | None = None
    coordinate_bound: float | None = None
    guarantee: Guarantee | None = None
    record_terms: RecordTerms | None = None
    needs_every_client: bool = False
    auxiliary: AuxiliaryVectors = NO_AUXILIARY
    step_of_mean: ServerStep | None = None

    @property
    def clients_in_a_round(self) -> int:
        """The most clients that take part in a round."""
        return len(self.clients) if self.most_clients is None else self.most_clients
