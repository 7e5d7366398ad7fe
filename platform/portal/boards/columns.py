"""Which columns a board has."""

from collections.abc import Sequence
from dataclasses import dataclass

from portal.evaluation.display.results import EPSILON_COLUMNS, EpsilonColumn


@dataclass(frozen=True)
class Columns:
    """The columns of a board beside those that every board has.

    Attributes:
        is_private: Whether it has the ε by which runs qualify; bytes rank where it hasn't.
        picks: Whether each row has a box by which it is picked for a comparison.
        leakage: Whether it has the leakage, which is measured where the track names data for it.
        trust: Whether it has the level of verification, which is shown where the runs of a track differ in it.
    """

    is_private: bool
    more: bool = False
    leakage: bool = False
    trust: bool = False
    picks: bool = False

    @property
    def epsilons(self) -> Sequence[EpsilonColumn]:
        """Those with an ε that doesn't rank the runs."""
        return EPSILON_COLUMNS if self.more else ()
