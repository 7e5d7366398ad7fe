"""The first values of adapters in a run with a training record: nobody chooses them.

They follow from the run token, which the site draws, and from the name of the tensor. So they can't have been taken
from private data, for which no mechanism would account. A is uniform within ±1/√in, as PyTorch starts linear layers
(`kaiming_uniform_` with a = √5), and B is zero, so that adapters start without effect.
"""

import hashlib
import math

import numpy as np

from evaluator.records.certificate import Floats
from evaluator.records.lines import DOWN, TrainableTensor

_PURPOSE = b"pfl adapter start"


def first_values(run_token: str | None, tensor: TrainableTensor) -> Floats:
    """Return the values (numel,) of an adapter before the first round; a run without a token counts as one with "".

    Those of A (rank, in) are 32-bit integers x of SHAKE-256, little-endian, as (2x/2³² − 1)/√in.
    """
    if not tensor.name.endswith(DOWN):
        return np.zeros(tensor.numel, np.float32)
    seed = b"\0".join([_PURPOSE, (run_token or "").encode(), tensor.name.encode()])
    drawn = np.frombuffer(hashlib.shake_256(seed).digest(4 * tensor.numel), "<u4").astype(np.float64)
    return ((drawn / 2**31 - 1) / math.sqrt(tensor.shape[-1])).astype(np.float32)
