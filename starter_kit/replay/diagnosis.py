"""Why a replayed round's sum differs from the opened one: another clip norm, other noise, or something else.

A second replay with twice the noise takes a sum apart: with u = s + z and u₂ = s + 2z, the clipped updates are
s = 2u − u₂ and the noise is z = u₂ − u, whoever drew it. The difference of the opened sum is then explained by least
squares as a·s + b·z + a remainder:

- b below −1/2 with a large remainder: the opened sum has noise that doesn't come from the key;
- no large remainder, and mostly b·z: the key's noise at another scale;
- no large remainder, and mostly a·s: the clipped updates at another scale;
- what is left without the noise is longer than n·S: an update was not clipped to S, whatever its direction.

Anything else has no name: other data, other code, or a mixture. A name is a hint for people who look into it; that the
round doesn't agree is certain without it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluator.errors import ErrorCode
from evaluator.records.certificate import Floats

# The share of the squared difference that an explanation may leave.
REMAINDER = 0.01
# How much longer than n·S an honest sum may be, through rounding.
ROUNDING = 1e-3

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Diagnosis:
    """The name of a difference, with what was found in words; for the organizers only."""

    code: ErrorCode
    found: str


def diagnose(
    opened: Floats, replayed: Floats, with_twice_the_noise: Floats, *, largest_sum: float
) -> Diagnosis:
    """Return the name of what makes the opened sum (d,) differ from the replayed one (d,).

    Args:
        with_twice_the_noise: The sum (d,) of a replay with twice the noise.
        largest_sum: n·S, the largest norm of the sum of the clipped updates.
    """
    noise = _doubles(with_twice_the_noise) - replayed
    signal = replayed - noise
    difference = _doubles(opened) - replayed
    of_signal, of_noise = _least_squares(difference, signal, noise)
    remainder = difference - of_signal * signal - of_noise * noise
    if _square(remainder) <= REMAINDER * _square(difference):
        if of_noise**2 * _square(noise) >= of_signal**2 * _square(signal):
            return Diagnosis(ErrorCode.REPLAY_NOISE, f"{1 + of_noise:.3g} times the key's noise")
        return Diagnosis(ErrorCode.REPLAY_CLIP, f"{1 + of_signal:.3g} times the clipped updates")
    if of_noise < -0.5:
        return Diagnosis(ErrorCode.REPLAY_NOISE, "noise that the key doesn't draw")
    length = _square(signal + difference - of_noise * noise) ** 0.5
    if length > (1 + ROUNDING) * largest_sum:
        return Diagnosis(
            ErrorCode.REPLAY_CLIP, f"updates {length / largest_sum:.3g} times as long as allowed"
        )
    return Diagnosis(ErrorCode.REPLAY_MISMATCH, "a sum that neither explains")


def _least_squares(difference: Doubles, signal: Doubles, noise: Doubles) -> tuple[float, float]:
    """Return the factors of `signal` and `noise` (d,) that come closest to `difference` (d,)."""
    both = float(signal @ noise)
    gram = np.array([[_square(signal), both], [both, _square(noise)]])
    # Where nobody was sampled there is no signal, and its factor is 0.
    of_signal, of_noise = np.linalg.pinv(gram) @ [signal @ difference, noise @ difference]
    return float(of_signal), float(of_noise)


def _square(vector: Doubles) -> float:
    return float(vector @ vector)


def _doubles(vector: Floats) -> Doubles:
    return vector.astype(np.float64)
