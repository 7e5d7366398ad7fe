"""The official ε, and where Rényi divergences stand in for privacy loss distributions."""

import math

import pytest

from evaluator.accounting import official, pld, rdp
from evaluator.mechanisms.events import Event, Gaussian, UnsupportedError

ROUNDS: list[Event] = [Gaussian(effective_noise_multiplier=4.0, rounds=20)]
TINY = 1e-14


def test_it_is_that_of_privacy_loss_distributions_wherever_there_is_one() -> None:
    assert official.epsilon(ROUNDS, 1e-5) == pld.epsilon(ROUNDS, 1e-5) < rdp.epsilon(ROUNDS, 1e-5)
    assert official.epsilon([], 1e-5) == 0


def test_below_what_rounding_hides_renyi_divergences_give_it() -> None:
    assert pld.epsilon(ROUNDS, TINY) == math.inf
    found = official.epsilon(ROUNDS, TINY)
    assert found == rdp.epsilon(ROUNDS, TINY)
    # The exact ε of 20 rounds at z = 4, which are one at 4/√20, is 8.8779 at this δ.
    assert 8.8779 < found < 9.6


def test_there_may_be_none_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(_events: object, _delta: float) -> float:
        raise UnsupportedError("no bound is known")

    monkeypatch.setattr(rdp, "epsilon", unsupported)
    assert official.epsilon(ROUNDS, TINY) == math.inf
