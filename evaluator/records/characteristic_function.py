"""How large a characteristic function of noised values can be, whatever signal is below the noise.

Values are uⱼ = aⱼ + zⱼ with zⱼ from N(0, 1), fresh, so independent of aⱼ and of all values before. A signal aⱼ turns
e^(ikuⱼ) and makes it no longer: |E mean e^(iku)| ≤ e^(−k²/2). Noise that is missing, smaller, or of another shape has a
larger one at some frequency k, so an upper limit is a test of the noise that needs no bound on the signal. It can't
flag an honest run for its signal, and is blind to a signal that is spread like noise.

The limit is Chernoff's. By Jacobi and Anger, E e^(λ cos(kz + φ)) = I₀(λ) + 2 Σₘ Iₘ(λ) e^(−m²k²/2) cos(mφ), which is
largest at φ = 0; the mean over all directions of e^(λ·Re) is I₀ of the length. Hence, for n values and every λ,

    P(|mean e^(iku)| ≥ x) ≤ (I₀(λ) + 2 Σₘ Iₘ(λ) e^(−m²k²/2))ⁿ / I₀(nλx).
"""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Low ones show noise that is too small, high ones a shape with edges or steps, such as uniform or two-point noise. Each
# is a multiple of the first, so that e^(iku) follows by multiplication.
STEP = 0.5
FREQUENCIES = tuple(STEP * times for times in range(1, 9))
# λ is near √(2·ln(1/p)/n) over the values' standard deviation, which is between 0.15 and 0.7 at these frequencies.
_LAMBDAS = np.geomspace(1, 12, 24)
_MOST_LAMBDA = 50.0
# What later terms add is below 10⁻²⁰, by the factor e^(−m²k²/2).
_TERMS = np.arange(1, 21)


@cache
def limit(count: int, frequency: float, p: float) -> float:
    """Return a length that |mean e^(iku)| of `count` noised values exceeds with probability at most `p`."""
    wanted = -math.log(p)
    lambdas = np.minimum(_LAMBDAS * math.sqrt(2 * wanted / count), _MOST_LAMBDA)
    # ln I₀(nλx) at the limit, for each λ.
    reached = wanted + count * _log_moment(lambdas, frequency)
    low, high = np.zeros_like(lambdas), np.full_like(lambdas, 2.0)
    for _ in range(50):
        middle = (low + high) / 2
        too_low = _log_i0(count * lambdas * middle) < reached
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    return float(high.min())


def powers(turns: Complexes) -> Iterator[Complexes]:
    """Yield the first `len(FREQUENCIES)` powers of `turns`, each e^(iu·STEP): its turns at each frequency."""
    power = turns
    yield power
    for _ in FREQUENCIES[1:]:
        power = power * turns
        yield power


def _log_moment(lambdas: Floats, frequency: float) -> Floats:
    """Return ln E e^(λ cos kz) for each λ."""
    from scipy.special import i0e, ive

    bessel = ive(_TERMS, lambdas[:, np.newaxis])
    moments = i0e(lambdas) + 2 * bessel @ np.exp(-((_TERMS * frequency) ** 2) / 2)
    return np.asarray(lambdas + np.log(moments))


def _log_i0(arguments: Floats) -> Floats:
    from scipy.special import i0e

    return np.asarray(arguments + np.log(i0e(arguments)))
