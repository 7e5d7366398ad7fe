"""First values that don't depend on a weight."""

import hashlib
import math

import numpy as np

from evaluator.parametrizations.parametrization import Floats, NewPart

_PURPOSE = b"pfl adapter start"


def uniform(part: NewPart) -> Floats:
    """Return values within ±1/√in, as PyTorch starts linear layers (`kaiming_uniform_` with a = √5).

    They are 32-bit integers x of SHAKE-256 over what the run starts from and the name, little-endian, as
    (2x/2³² − 1)/√in.
    """
    (rows, columns), start = part.shape, part.adapter.start
    seed = b"\0".join([_PURPOSE, start.encode(), part.name.encode()])
    drawn = np.frombuffer(hashlib.shake_256(seed).digest(4 * rows * columns), "<u4").astype(np.float64)
    return ((drawn / 2**31 - 1) / math.sqrt(columns)).astype(np.float32).reshape(rows, columns)


def zeros(part: NewPart) -> Floats:
    """Return zeros, with which an adapter starts without effect."""
    return np.zeros(part.shape, np.float32)
