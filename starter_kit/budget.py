"""The noise that a private run needs for its target ε, and the ε that its record claims: as the workers account it."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from evaluator.accounting import pld
from evaluator.accounting.events import UnsupportedError
from evaluator.accounting.placement import ReleaseView
from evaluator.accounting.scenario import Sampling, Scenario
from evaluator.errors import ErrorCode, refuse
from starter_kit.configuration import ProviderDPSettings
from starter_kit.methods.fl_provider_dp import NoisePlacement

RELEASE_VIEW: dict[NoisePlacement, ReleaseView] = {
    NoisePlacement.SERVER: "aggregate",
    NoisePlacement.CLIENT_FULL: "per_client",
}


def noise_multiplier(settings: ProviderDPSettings, clients: int) -> float:
    """σ: as the settings give it, or the smallest that keeps to their target ε with `clients` clients."""
    if settings.noise_multiplier is not None:
        return settings.noise_multiplier
    if settings.target_epsilon is None:
        raise ValueError("the settings' validator asks for one of the two")
    with _accounting_problems():
        return _scenario(settings, clients).noise_multiplier_for(
            settings.target_epsilon, settings.sampling_rule
        )


def epsilon(settings: ProviderDPSettings, clients: int, noise_multiplier: float) -> float:
    """ε of all rounds at the settings' δ, by the official accountant under the settings' sampling rule."""
    with _accounting_problems():
        scenario = _scenario(settings, clients).with_changes(noise_multiplier=noise_multiplier)
        bound = pld.epsilon(scenario.events(settings.sampling_rule), settings.delta)
        if math.isinf(bound):
            raise UnsupportedError(f"no finite ε holds at δ = {settings.delta:g}")
        return bound


def _scenario(settings: ProviderDPSettings, clients: int) -> Scenario:
    return Scenario(
        sampling=Sampling.TWO_STAGE_POISSON,
        client_rate=settings.client_rate,
        provider_rate=settings.provider_rate,
        rounds=settings.rounds,
        delta=settings.delta,
        clients=clients,
        placement=settings.placement.value,
        release_view=RELEASE_VIEW[settings.placement],
    )


@contextmanager
def _accounting_problems() -> Iterator[None]:
    """What the accountants can't cover is a problem of the settings (`E_CONFIGURATION`)."""
    try:
        yield
    except ValueError as error:
        raise refuse(
            ErrorCode.CONFIGURATION,
            where="the privacy settings",
            expected="rates, rounds and noise that the accountants cover",
            found=" ".join(str(error).split()),
        ) from error
