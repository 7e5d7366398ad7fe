"""How much of the noise protects one provider: who draws it, and what is seen.

All clients draw independently. The client whose provider is protected takes part and draws honestly: a client that
doesn't has the provider's data anyway. `colluding` others may add their draws to what the observer knows, so that K
contributors leave at least max(1, K − colluding) unknown draws. Which clients contribute is drawn again in every round,
and the bound has to hold for the worst number, from `contributors` to `clients`.
"""

import math
from typing import Literal

from evaluator.mechanisms.events import UnsupportedError

Placement = Literal["server", "client_full", "client_share"]
ReleaseView = Literal["aggregate", "per_client"]


def effective_noise_multiplier(
    multiplier: float,
    *,
    placement: Placement,
    release_view: ReleaseView,
    contributors: int,
    clients: int,
    colluding: int = 0,
) -> float:
    """Noise multiplier of what an observer sees of one provider.

    - `server`, one draw of σ on the sum: σ in the aggregate; single updates carry none.
    - `client_full`, a draw of σ at each client: σ in a single update. The aggregate holds one for each contributor; the
      fewest honest ones, max(1, contributors − colluding), are the worst: σ·√(that).
    - `client_share`, draws of σ/√K at K contributors: a single update carries σ/√K, least with all clients. The
      aggregate keeps σ·√(honest/K). That falls with K while all but one may collude, and rises from there on: the worst
      K is colluding + 1, or the nearest that K can be.

    Args:
        multiplier: σ, as recorded.
        contributors: The clients that surely draw noise in a round in which the protected provider's client takes part.
        clients: All of them.
        colluding: Others than the protected provider's client.

    Raises:
        UnsupportedError: Nothing covers what is seen, or the counts can't be.
    """
    if not 1 <= contributors <= clients:
        raise UnsupportedError(f"from 1 to {clients} clients contribute noise, not {contributors}")
    if not 0 <= colluding < clients:
        raise UnsupportedError(f"from 0 to {clients - 1} other clients may collude, not {colluding}")
    match placement, release_view:
        case "server", "aggregate":
            return multiplier
        case "server", "per_client":
            raise UnsupportedError("noise drawn at the server doesn't cover single clients' updates")
        case "client_full", "aggregate":
            return multiplier * math.sqrt(max(1, contributors - colluding))
        case "client_full", "per_client":
            return multiplier
        case "client_share", "aggregate":
            worst = min(clients, max(contributors, colluding + 1))
            return multiplier * math.sqrt((worst - colluding) / worst)
        case _:
            return multiplier / math.sqrt(clients)
