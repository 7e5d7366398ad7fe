"""Settings of the methods whose clients perturb what they send by Laplace noise, in every round."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Literal, Self

from pydantic import Field, model_validator

from evaluator.accounting import calibration
from evaluator.mechanisms.events import Adjacency, Event, Laplace, Unit
from starter_kit.dp.guarantee import Guarantee, accounting_problems, rounds_within
from starter_kit.dp.laplace_release import LaplaceRelease
from starter_kit.federation.rounds import Client
from starter_kit.settings.run_settings import PrivateSettings


class LaplaceSettings(PrivateSettings):
    """What these methods have in common. No optimizer runs: a client makes one step a round, from all its records.

    Of `target_epsilon` and `epsilon_per_round` one is given, or both: the first alone, and the noise is computed for
    all rounds to fit into it; the second alone says the noise; with both, as many rounds are run as fit into the
    target.

    The noise for a target is the least with which the accountant lets all T rounds pass: but for its grid never more
    than that of ε/T a round, and much less where rounds are many.

    Attributes:
        epsilon_per_round: ε̄ of one client's message in one round, at δ = 0.
        clip_norm: C, the bound on the L1 norm of one record's gradient.
        dropout: Off: its masks come from one generator, so that one record would reach into the gradients of others.
        codec, secure_aggregation: Fixed: every message is read as the client sent it.
    """

    epsilon_per_round: float | None = Field(default=None, gt=0)
    dropout: Literal[False] = False
    codec: Literal["float32"] = "float32"
    secure_aggregation: None = None

    @model_validator(mode="after")
    def _noise_is_given(self) -> Self:
        if self.target_epsilon is None and self.epsilon_per_round is None:
            raise ValueError("give target_epsilon, epsilon_per_round or both")
        return self

    @abstractmethod
    def released(self, clients: Sequence[Client], rounds: int) -> list[Event]:
        """What so many rounds release of one record."""

    @property
    def release(self) -> LaplaceRelease:
        """The mechanism, with the noise as it is given, or the least that keeps to the target.

        Raises:
            ProblemError: (`E_CONFIGURATION`) No noise that the accountant knows does.
        """
        if self.epsilon_per_round is not None:
            return LaplaceRelease(self.clip_norm, 1 / self.epsilon_per_round)
        with accounting_problems():
            multiplier = _noise_multiplier(self.target_epsilon or 0, self.delta, self.rounds)
        return LaplaceRelease(self.clip_norm, multiplier)

    def guarantee(self, clients: Sequence[Client]) -> Guarantee:
        def released(rounds: int) -> list[Event]:
            return self.released(clients, rounds)

        rounds = self.rounds
        if self.target_epsilon is not None and self.epsilon_per_round is not None:
            rounds = rounds_within(self.target_epsilon, self.delta, released, at_most=self.rounds)
        return Guarantee(
            unit=Unit.RECORD,
            delta=self.delta,
            released=released,
            rounds=rounds,
            seen_by_server=True,
            budget=self.target_epsilon,
        )


def records(clients: Sequence[Client]) -> dict[int, int]:
    """How many records each client has: its questions."""
    return {client.id: len(client.examples) for client in clients}


@cache  # a second or so each time
def _noise_multiplier(epsilon: float, delta: float, rounds: int) -> float:
    """The smallest with which these rounds keep to `epsilon`."""

    def released(noise_multiplier: float) -> list[Event]:
        return [
            Laplace(
                unit=Unit.RECORD,
                adjacency=Adjacency.REPLACE,
                rounds=rounds,
                noise_multiplier=noise_multiplier,
            )
        ]

    return calibration.noise_multiplier(epsilon, delta, released)
