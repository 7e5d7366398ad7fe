"""Settings of the methods whose clients perturb what they send by Laplace noise, in every round."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal, Protocol

from pydantic import Field

from evaluator.accounting import calibration
from evaluator.mechanisms.events import Event, Laplace
from evaluator.mechanisms.units import Adjacency, PrivacyUnit
from starter_kit.dp.guarantee import Guarantee, accounting_problems, rounds_within
from starter_kit.dp.laplace_release import LaplaceRelease
from starter_kit.federation.rounds import Client, Method
from starter_kit.settings.plan import Plan
from starter_kit.settings.run_settings import PrivateSettings


class LaplaceMethod(Method, Protocol):
    """A method whose clients perturb their messages."""

    def event(self, rounds: int) -> Event:
        """Return the event of this number of rounds for one record of the worst client."""


class LaplaceSettings(PrivateSettings):
    """Settings that these methods share. No optimizer runs: a client makes one step per round, from all its records.

    Set `target_epsilon`, `epsilon_per_round` or both. With the first alone, the noise is computed so that all rounds
    fit into the target; the second alone determines the noise; with both, as many rounds are run as fit into it.

    The noise for a target is the smallest with which all T rounds fit into it by the accountant. Apart from the
    accountant's grid it is never more than the noise of ε/T per round, and much less for many rounds.

    Attributes:
        epsilon_per_round: ε̄ of one client's message in one round, at δ = 0.
        clip_norm: C, the bound on the L1 norm of one record's gradient.
        dropout: Always off: its masks come from one generator, so one record would influence the gradients of others.
        codec, secure_aggregation: Fixed, because every message is read as the client sent it.
    """

    needs_every_client: ClassVar[bool] = False

    epsilon_per_round: float | None = Field(default=None, gt=0)
    dropout: Literal[False] = False
    codec: Literal["float32"] = "float32"
    secure_aggregation: None = None

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.target_epsilon is None and self.epsilon_per_round is None:
            yield "give target_epsilon, epsilon_per_round or both"

    @abstractmethod
    def build(self, clients: Sequence[Client], release: LaplaceRelease) -> LaplaceMethod:
        """Return the method for these clients, which perturbs by `release`.

        Raises:
            ProblemError: (`E_CONFIGURATION`) A setting doesn't fit the clients.
        """

    def plan(self, clients: Sequence[Client]) -> Plan:
        method = self.build(clients, LaplaceRelease(self.clip_norm, self._relative_scale()))

        def released(rounds: int) -> list[Event]:
            return [method.event(rounds)]

        rounds = self.rounds
        if self.target_epsilon is not None and self.epsilon_per_round is not None:
            rounds = rounds_within(self.target_epsilon, self.delta, released, at_most=self.rounds)
        guarantee = Guarantee(
            unit=PrivacyUnit.RECORD,
            delta=self.delta,
            released=released,
            seen_by_server=True,
            budget=self.target_epsilon,
        )
        return Plan(
            clients=clients,
            method=method,
            rounds=rounds,
            guarantee=guarantee,
            needs_every_client=self.needs_every_client,
        )

    def _relative_scale(self) -> float:
        """Return the scale of the settings, or the smallest with which all rounds stay within the target."""
        if self.epsilon_per_round is not None:
            return 1 / self.epsilon_per_round
        with accounting_problems():
            one = Laplace(
                unit=PrivacyUnit.RECORD, adjacency=Adjacency.REPLACE, rounds=self.rounds, relative_scale=1
            )
            return calibration.noise_multiplier(
                self.target_epsilon or 0,
                self.delta,
                lambda scale: [one.model_copy(update={"relative_scale": scale})],
            )


def records(clients: Sequence[Client]) -> dict[int, int]:
    """Return the number of records, which are questions, of each client."""
    return {client.id: len(client.examples) for client in clients}
