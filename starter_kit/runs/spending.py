"""What a private run has spent of its budget, break by break."""

from dataclasses import dataclass

from starter_kit.dp.guarantee import Guarantee
from starter_kit.runs.resuming import RunState


@dataclass(frozen=True)
class Spending:
    """ε of a run as it goes on: of its rounds, and of those that were interrupted where anything of them was seen."""

    guarantee: Guarantee | None
    state: RunState

    def check(self, round_number: int) -> None:
        """Raises `ProblemError` (`E_PRIVACY_BUDGET`) for a round that would exceed the budget."""
        if self.guarantee:
            self.guarantee.check_before(round_number + self._broken)

    def epsilon(self, rounds: int) -> float | None:
        return self.guarantee.epsilon(rounds + self._broken) if self.guarantee else None

    @property
    def _broken(self) -> int:
        return self.state.interrupted_rounds if self.guarantee and self.guarantee.seen_by_server else 0
