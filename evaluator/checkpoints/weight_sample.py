"""What training changed at a few thousand secret places of the weights, by which near copies are found.

Identical files have the same hash; a copy in which a few weights were changed, or all of them by a little, has not. Two
trainings of one base end far apart compared with how far they went, so it is enough to look at some coordinates:
equally many of every tensor, at places that follow from a key that only site and workers know. Whoever copies a
checkpoint can't tell which places to change, and must change many weights by much more than rounding.

Two changes agree at a place if they differ by at most `TOLERANCE` of what such places of the tensor changed. Nothing of
this says who copied from whom, or that anybody did: the same settings with the same seed give the same weights, and
where all steps have one length, as those of signs, trainings that take all but 2% of them alike look like copies.

It can't see: weights to which noise was added of more than about 4% of what training changed; permuted or rescaled
hidden units that compute the same; the average of a copy and something else; further training that moved on; fewer than
`FEWEST` changed places, as where a few numbers were trained; and copies from other tracks.
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evaluator.checkpoints.header import ITEM_BYTES, Header, Tensor, read_header, untied
from evaluator.checkpoints.weight_changes import STORED_AS, stored_numbers
from evaluator.messages.jobs import WeightSample

PLACES = 2048
TOLERANCE = 0.05
# From one of these on, two runs are shown to the organizers.
AGREEMENT = 0.98
COSINE = 0.999
# Of places that changed in either of two runs.
FEWEST = 32
# A single large change counts for no more than this many of usual size.
LARGEST = 10.0

Floats = NDArray[np.float32]
Name = TypeVar("Name")


@dataclass(frozen=True)
class Likeness:
    """How alike two runs' changes are.

    Attributes:
        agreement: The part of the places changed in either run at which the two agree.
        cosine: Of the changes, each in units of what its tensor changed; 1 for a copy that was scaled.
    """

    agreement: float
    cosine: float

    @property
    def is_near(self) -> bool:
        """Whether honest trainings hardly come so close."""
        return self.agreement >= AGREEMENT or self.cosine >= COSINE


def weight_sample(checkpoint: Path, reference: Path, key: str) -> WeightSample:
    """Return what changed between the base weights and a checkpoint that has their names, shapes and dtypes.

    Args:
        key: 64 hexadecimal digits; samples under the same key are of the same places.

    Raises:
        ProblemError: ``E_CHECKPOINT_*``: one of them is no safetensors file.
    """
    base, trained = read_header(reference), read_header(checkpoint)
    names = _names(untied(base), key)
    per_tensor = max(1, PLACES // max(1, len(names)))
    changes = np.zeros((len(names), per_tensor), np.float32)
    with checkpoint.open("rb") as file, reference.open("rb") as original:
        for row, name in enumerate(names):
            places = _places(key, name, base.tensors[name].numel, per_tensor)
            after = _read(file.fileno(), trained, trained.tensors[name], places)
            before = _read(original.fileno(), base, base.tensors[name], places)
            # What F64 can't say in F32 counts as the largest number.
            with np.errstate(over="ignore"):
                changes[row] = np.nan_to_num(after - before)
    return WeightSample(
        key_id=hashlib.sha256(key.encode()).hexdigest()[:16],
        per_tensor=per_tensor,
        changes=base64.b64encode(changes.astype("<f4").tobytes()),
    )


def likenesses(sample: bytes, others: Mapping[Name, bytes], per_tensor: int) -> dict[Name, Likeness]:
    """Return how like the sample each of the others is, of those that can be compared with it.

    Args:
        sample: The changes, float32, of `per_tensor` places of each tensor.
        others: Samples of the same places, by any name.
    """
    same = {name: other for name, other in others.items() if len(other) == len(sample)}
    if not same:
        return {}
    own = np.frombuffer(sample, "<f4").reshape(-1, per_tensor)
    rows = np.stack([np.frombuffer(other, "<f4").reshape(own.shape) for other in same.values()])
    larger = np.maximum(np.abs(rows), np.abs(own))
    changed = larger > 0
    # Means over the places of each tensor that changed in one of the two; 1 where none did.
    counts = changed.sum(axis=2, keepdims=True)
    scale = larger.sum(axis=2, keepdims=True) / np.maximum(counts, 1)
    scale[scale == 0] = 1
    agrees = changed & (np.abs(rows - own) <= TOLERANCE * scale)
    total = changed.sum(axis=(1, 2))
    one, other = (np.clip(changes / scale, -LARGEST, LARGEST) for changes in (own, rows))
    lengths = np.sqrt((one**2).sum(axis=(1, 2)) * (other**2).sum(axis=(1, 2)))
    cosines = (one * other).sum(axis=(1, 2)) / np.where(lengths > 0, lengths, 1)
    return {
        name: Likeness(float(agrees[place].sum() / total[place]), float(cosines[place]))
        for place, name in enumerate(same)
        if total[place] >= FEWEST
    }


def _names(tensors: Mapping[str, Tensor], key: str) -> list[str]:
    """Return the names of the tensors of floating-point numbers, of more than `PLACES` as many, in a secret order."""
    names = (name for name, tensor in tensors.items() if tensor.dtype in STORED_AS and tensor.numel)
    return sorted(names, key=lambda name: hashlib.sha256(f"{key} {name}".encode()).digest())[:PLACES]


def _places(key: str, name: str, numel: int, count: int) -> list[int]:
    """Return places in a tensor; one may come twice."""
    stream = hashlib.shake_256(f"{key} places {name}".encode()).digest(8 * count)
    return [int.from_bytes(stream[8 * i : 8 * i + 8], "little") % numel for i in range(count)]


def _read(file: int, header: Header, tensor: Tensor, places: list[int]) -> Floats:
    size = ITEM_BYTES[tensor.dtype]
    begin = header.data_start + tensor.begin
    stored = b"".join(os.pread(file, size, begin + size * place) for place in places)
    return stored_numbers(np.frombuffer(stored, STORED_AS[tensor.dtype]), tensor.dtype).astype(np.float32)
