"""The method of a mutant, as a team would write it: one file beside its settings."""

from starter_kit.methods import fl_provider_dp
from starter_kit.methods.fl_provider_dp import ProviderDP
from tests.studies.mutants.catalog import MUTANTS


class Settings(fl_provider_dp.Settings):
    """Settings of FL-PROVIDER-DP.

    Attributes:
        mutant: The name of the fault; empty for none.
    """

    mutant: str = ""

    def extend(self, method: ProviderDP, clients: int) -> ProviderDP:
        return MUTANTS[self.mutant].build(method) if self.mutant else method
