"""Resamples of providers and permutations of their labels, drawn once for all attacks on the same providers.

Two kinds of resamples, members and nonmembers apart, so that none lacks one of them:

- `counts`: the bootstrap, n providers drawn of n with replacement, for statistics that are means.
- `weights`: the Bayesian bootstrap, exponential weights, for true positive rates (Gu, Ghosal and Roy, "Bayesian
  bootstrap estimation of ROC curve", 2008). With one weight more than there are nonmembers, the share of the k highest
  is distributed as Beta(k, n + 1 − k), as is the share of all nonmembers, drawn or not, that is above the k-th highest,
  whatever the law of the scores. So a threshold of few false positives is as unsure as it should be; the bootstrap
  would take the highest score drawn for the highest that there is.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

# Resamples at once: so many of 2,000 providers stay in a processor's cache.
CHUNK = 100
# Draws of so many groups of providers are remembered: those of both target sets, and of all providers.
REMEMBERED = 3
SEED = 0


class Draws:
    """R resamples and permutations of n providers, always the same ones.

    Args:
        is_member: (n,), the truth.
    """

    def __init__(self, is_member: Bools, resamples: int) -> None:
        self._is_member = is_member
        self._kinds = (np.flatnonzero(is_member), np.flatnonzero(~is_member))
        self.resamples = resamples

    @cached_property
    def counts(self) -> NDArray[np.uint16]:
        """How often each provider is in each resample, (R, n)."""
        rng = np.random.default_rng([SEED, 0])
        counts = np.empty((self.resamples, len(self._is_member)), dtype=np.uint16)
        for part in self.chunks():
            for kind in self._kinds:
                size = len(kind)
                rows = part.stop - part.start
                drawn = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
                counted = np.bincount(drawn.ravel(), minlength=rows * size)
                counts[part, kind] = counted.reshape(rows, size)
        return counts

    @cached_property
    def weights(self) -> NDArray[np.float32]:
        """The weight of each provider in each resample, (R, n)."""
        rng = np.random.default_rng([SEED, 2])
        return rng.standard_exponential((self.resamples, len(self._is_member)), dtype=np.float32)

    @cached_property
    def unseen(self) -> NDArray[np.float32]:
        """Weights (R, 3) of what was not drawn: nonmembers below all; members above all, and below all.

        The latter two have half a provider's weight each: Jeffreys' prior for a share.
        """
        rng = np.random.default_rng([SEED, 3])
        return rng.standard_gamma(np.array([1.0, 0.5, 0.5]), (self.resamples, 3)).astype(np.float32)

    @cached_property
    def labels(self) -> Bools:
        """Permutations of the labels, (R, n)."""
        rng = np.random.default_rng([SEED, 1])
        return rng.permuted(np.tile(self._is_member, (self.resamples, 1)), axis=1)

    def chunks(self) -> Iterator[slice]:
        """Yield the places of some resamples at a time."""
        for start in range(0, self.resamples, CHUNK):
            yield slice(start, min(start + CHUNK, self.resamples))


def draws(is_member: Bools, resamples: int) -> Draws:
    """Return the draws for these providers, those of an earlier call where there was one."""
    return _draws(is_member.tobytes(), resamples)


@lru_cache(maxsize=REMEMBERED)
def _draws(is_member: bytes, resamples: int) -> Draws:
    return Draws(np.frombuffer(is_member, dtype=np.bool_), resamples)
