"""The Gaussian noise of a round: who draws it, what an observer sees, and how much of it protects one provider.

All clients draw independently. The client whose provider is protected takes part and draws honestly; one that doesn't
draw honestly could reveal the provider's data directly. Other clients may collude and reveal their draws to the
observer, so that of K draws at least max(1, K − colluding) remain unknown. Which clients contribute is chosen afresh
in every round. The bound therefore holds for the worst number of contributors, from the fewest that a round with the
protected provider's client can have up to all clients.
"""

import math
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from evaluator.mechanisms.events import UnsupportedError
from evaluator.mechanisms.values import Count, Positive, Value


class Placement(StrEnum):
    """Who draws the noise: the server once, each client all of it, or each client a share of it."""

    SERVER = "server"
    CLIENT_FULL = "client_full"
    CLIENT_SHARE = "client_share"


class ReleaseView(StrEnum):
    """What an observer sees of a round: the sum over clients, or each client's update."""

    AGGREGATE = "aggregate"
    PER_CLIENT = "per_client"


class Noise(Value):
    """The Gaussian noise of a round.

    Attributes:
        multiplier: σ, the standard deviation over the clip norm. `server` and `client_full`: of each draw.
            `client_share`: of the sum of the shares; each of the K clients that take part draws σ/√K.
        placement: Who draws it.
        secure_aggregation: Whether clients' updates are hidden in their sum: by a protocol (`real`), by one process
            that sums (`simulated`, a statement of trust), or not at all (`none`).
        colluding_clients: How many clients may add their own draws to what the observer knows.
    """

    multiplier: Positive
    placement: Annotated[Placement, Field(strict=False)] = Placement.SERVER
    secure_aggregation: Literal["none", "simulated", "real"] = "none"
    colluding_clients: Count = 0

    @property
    def release_view(self) -> ReleaseView:
        """What an observer sees. Where clients draw the noise, the server isn't trusted and counts as one."""
        if self.placement is Placement.SERVER or self.secure_aggregation != "none":
            return ReleaseView.AGGREGATE
        return ReleaseView.PER_CLIENT

    def multiplier_of_sum(self, contributors: int) -> float:
        """Return the standard deviation, over the clip norm, of the noise in a sum over `contributors` clients."""
        match self.placement:
            case Placement.SERVER:
                return self.multiplier
            case Placement.CLIENT_FULL:
                return self.multiplier * math.sqrt(contributors)
            case Placement.CLIENT_SHARE:
                return self.multiplier if contributors else 0.0

    def effective_multiplier(self, *, contributors: int, clients: int) -> float:
        """Return the noise multiplier of what an observer sees of one provider.

        - `server`, one draw of σ on the sum: σ in the aggregate.
        - `client_full`, a draw of σ at each client: σ in a single update. The aggregate holds one for each
          contributor; the fewest honest ones, max(1, contributors − colluding), are the worst: σ·√(that).
        - `client_share`, draws of σ/√K at K contributors: a single update carries σ/√K, least with all clients. The
          aggregate keeps σ·√(honest/K). That falls with K while all but one may collude, and rises from there on: the
          worst K is colluding + 1, or the nearest that K can be.

        Args:
            contributors: The number of clients that surely draw noise in a round in which the protected provider's
                client takes part.
            clients: The number of all clients.

        Raises:
            UnsupportedError: The counts are impossible.
        """
        colluding = self.colluding_clients
        if not 1 <= contributors <= clients:
            raise UnsupportedError(f"from 1 to {clients} clients contribute noise, not {contributors}")
        if not 0 <= colluding < clients:
            raise UnsupportedError(f"from 0 to {clients - 1} other clients may collude, not {colluding}")
        match self.placement, self.release_view:
            case Placement.SERVER, _:
                return self.multiplier
            case Placement.CLIENT_FULL, ReleaseView.AGGREGATE:
                return self.multiplier * math.sqrt(max(1, contributors - colluding))
            case Placement.CLIENT_FULL, ReleaseView.PER_CLIENT:
                return self.multiplier
            case Placement.CLIENT_SHARE, ReleaseView.AGGREGATE:
                worst = min(clients, max(contributors, colluding + 1))
                return self.multiplier * math.sqrt((worst - colluding) / worst)
            case _:
                return self.multiplier / math.sqrt(clients)
