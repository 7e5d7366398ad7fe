"""The audit of one run: scores of canaries against their coins.

Guarantee: an honest run is refuted with a probability of at most α, over the coins; over any number of teams, that one
of their honest runs is, by Holm's correction. It assumes that the coins were secret and independent, that the claim is
about providers, and that a canary's documents reached the training unchanged, or not at all.

What it doesn't do: it never shows that a claim holds. A run that drops or recognizes the canaries passes. With a
canary's loss as the score it refutes gross faults only; `docs/auditing.md` has the measured power.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.auditing.bounds import (
    epsilon_lower_bound,
    gaussian_epsilon_lower_bound,
    gaussian_p_value,
    p_value,
)
from evaluator.auditing.escrow import Escrow
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.base import Message

ALPHA = 0.01


@dataclass(frozen=True)
class Claim:
    """What a run claims for one provider.

    Attributes:
        mu: The μ of the Gaussian DP that the claimed mechanism is no weaker than (`accounting.membership`); None where
            there is none, and the audit rests on (ε, δ) alone.
    """

    epsilon: float
    delta: float
    mu: float | None = None


class AuditResult(Message):
    """What one run's canaries show.

    Attributes:
        not_a_number: Canaries without a finite score, which count as the lowest ones.
        epsilon_low: Lower bound for ε at level α, without an assumption.
        gaussian_epsilon_low: The same by Gaussian DP, about the claimed kind of mechanism.
        p_value: How likely an honest run's scores are so good at most; both bounds are used, and paid for.
    """

    canaries: int
    released: int
    guesses: int
    right: int
    not_a_number: int
    alpha: float
    delta: float
    epsilon_low: float
    gaussian_epsilon_low: float
    p_value: float

    @property
    def in_words(self) -> str:
        """What this says about the claim."""
        if self.p_value < self.alpha:
            return f"claim refuted (p = {self.p_value:.2g})"
        return f"not refuted (p = {self.p_value:.2g}), which verifies nothing"


def audit(escrow: Escrow, scores: Mapping[str, float], claim: Claim, *, alpha: float = ALPHA) -> AuditResult:
    """Return what the scores of the canaries show about a claim: higher scores for what was rather trained on.

    Raises:
        ProblemError: (`E_AUDIT_ESCROW`) The scores are about other canaries than the escrow file.
    """
    if scores.keys() != escrow.is_released.keys():
        odd = sorted(scores.keys() ^ escrow.is_released.keys())
        raise ProblemError.of(
            ErrorCode.AUDIT_ESCROW,
            expected=f"scores of the {len(escrow.is_released)} canaries of the escrow file",
            found=f"{len(scores)} scores; {odd[0]} is in one of the two only",
        )
    order = escrow.order()
    values = np.array([scores[name] for name in order], dtype=np.float64)
    not_a_number = int((~np.isfinite(values)).sum())
    values = np.where(np.isfinite(values), values, -np.inf)
    coins = np.array([escrow.is_released[name] for name in order])
    guessed = np.argsort(-values, kind="stable")[: escrow.guesses]
    right = int(coins[guessed].sum())
    counts = len(order), escrow.guesses, right
    return AuditResult(
        canaries=len(order),
        released=int(coins.sum()),
        guesses=escrow.guesses,
        right=right,
        not_a_number=not_a_number,
        alpha=alpha,
        delta=claim.delta,
        epsilon_low=epsilon_lower_bound(*counts, delta=claim.delta, alpha=alpha),
        gaussian_epsilon_low=gaussian_epsilon_lower_bound(*counts, delta=claim.delta, alpha=alpha),
        p_value=claim_p_value(*counts, claim),
    )


def claim_p_value(canaries: int, guesses: int, right: int, claim: Claim) -> float:
    """Return the p-value of a claim by whichever bound is stronger, doubled where there are two (Bonferroni)."""
    plain = p_value(canaries, guesses, right, epsilon=claim.epsilon, delta=claim.delta)
    if claim.mu is None:
        return plain
    return min(1.0, 2 * min(plain, gaussian_p_value(canaries, guesses, right, mu=claim.mu)))


def refuted(p_values: Mapping[str, float], alpha: float = ALPHA) -> list[str]:
    """Return the teams whose claims are refuted, so that an honest one is among them with at most α (Holm, 1979)."""
    found = []
    for place, (team, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        if p >= alpha / (len(p_values) - place):
            break
        found.append(team)
    return found


def provider_scores(
    providers: Sequence[str], base_loss: NDArray[np.float64], loss: NDArray[np.float64]
) -> dict[str, float]:
    """Return each canary's mean gain in likelihood over its questions; NaN where a loss is none."""
    gained: dict[str, list[float]] = {}
    for provider, before, after in zip(providers, base_loss.tolist(), loss.tolist(), strict=True):
        gained.setdefault(provider, []).append(before - after)
    return {provider: float(np.mean(values)) for provider, values in gained.items()}
