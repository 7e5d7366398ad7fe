"""Runs of which a round can be replayed, and which runs can be such.

Coins and noise of all their rounds follow from one secret (`round_secret`, `evaluator.records.round_keys`).
"""

from evaluator.errors import ErrorCode, ProblemError
from evaluator.records.server_steps import SumStep
from starter_kit.federation.client_state import LocalState
from starter_kit.runs.resuming import TrainingState
from starter_kit.runs.setup import RunSetup
from starter_kit.settings.run_settings import PrivateSettings

_NO_STATE = "the training record doesn't commit to what is kept from round to round"


def is_replayable(setup: RunSetup) -> bool:
    """Return whether the settings ask for a run of which a round can be replayed."""
    return isinstance(setup.settings, PrivateSettings) and setup.settings.replayable


def check_replayable(setup: RunSetup, *, apart: bool) -> None:
    """Reject the setting `replayable` where a replay could show nothing, or would cost what the run promises.

    Args:
        apart: Whether clients run separately from the server.

    Raises:
        ProblemError: (`E_REPLAY_UNSUPPORTED`) With the reason.
    """
    settings = setup.settings
    if not isinstance(settings, PrivateSettings) or not settings.replayable:
        return
    if settings.not_replayable:
        raise _unsupported(settings.method, settings.not_replayable)
    if setup.record_terms is None:
        raise _unsupported(
            settings.method, "it writes no training record, so there is nothing to compare a replay with"
        )
    if not isinstance(setup.record_terms.server, SumStep):
        raise _unsupported(f"{settings.method}, server rule {setup.record_terms.server.rule}", _NO_STATE)
    if apart:
        raise _unsupported(
            "clients on machines of their own", "the server would have the keys of their coins and noise"
        )


def check_stateless(setup: RunSetup, state: TrainingState) -> None:
    """Reject a replayable run whose parties keep something from round to round.

    Raises:
        ProblemError: (`E_REPLAY_UNSUPPORTED`) They do.
    """
    kept = [
        client for client, kept in state.clients.items() if not isinstance(kept, LocalState) or kept.tensors
    ]
    if is_replayable(setup) and (state.server or kept):
        raise _unsupported(setup.settings.method, _NO_STATE)


def _unsupported(found: str, why: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.REPLAY_UNSUPPORTED,
        where="replayable",
        expected="a run that can be replayed",
        found=f"{found}: {why}",
    )
