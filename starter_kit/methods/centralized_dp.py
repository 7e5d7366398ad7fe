"""Centralized training with provider-level differential privacy (privacy-aware document VQA paper, section 6.3).

FL-PROVIDER-DP with one client that has all providers: they are Poisson-sampled, and the one party that has the data
adds the noise. The proof of FL-PROVIDER-DP covers a federation of one; see docs/proofs/centralized-dp.md.
"""

from collections.abc import Iterator, Sequence

from evaluator.mechanisms.noise import Placement
from starter_kit.federation.rounds import Client
from starter_kit.methods import fl_provider_dp
from starter_kit.methods.centralized import pooled
from starter_kit.settings.plan import Plan


class Settings(fl_provider_dp.Settings):
    """Settings of centralized DP training: those of FL-PROVIDER-DP."""

    def conflicts(self) -> Iterator[str]:
        yield from super().conflicts()
        if self.placement is Placement.CLIENT_SHARE:
            yield (
                "placement client_share divides the noise among clients, and here one party has all the data; use "
                "placement server"
            )

    def plan(self, clients: Sequence[Client]) -> Plan:
        return super().plan(pooled(clients))
