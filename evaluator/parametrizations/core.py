"""Core adapters (as in LoRA-XS, Bałazy et al. 2024, arXiv:2405.17604): W + (alpha/rank)·U·R·Vᵀ, with only R trained.

U (out, rank) and Vᵀ (rank, in) are the first singular vectors of the base weight, and R (rank, rank) begins at zero. So
an adapter sends rank² numbers, whatever the size of its layer, and the change is as long as R, times the factor.

Singular vectors are determined up to their signs if the singular values differ. Each pair is turned such that the entry
of U with the largest absolute value is positive. They are computed in float64 and rounded to float32, so that machines
differ in the last bit at most, which is within what a check of a merged weight allows for.
"""

import hashlib

import numpy as np

from evaluator.parametrizations.first_values import zeros
from evaluator.parametrizations.parametrization import Doubles, Floats, NewPart, Parametrization, Part

# How close the squares of two singular values may be, over the largest one.
CLOSEST = 1e-6

# By the SHA-256 of the weight, its rows, and the rank: they take a while, and are needed for two parts and repeatedly.
_known: dict[tuple[bytes, int, int], tuple[Floats, Floats]] = {}


class NoSingularVectorsError(ValueError):
    """The weight has too few singular values, or some too close to each other to distinguish their vectors."""


def _singular_vectors(weight: Floats, rank: int) -> tuple[Floats, Floats]:
    """Return U (out, rank) and Vᵀ (rank, in).

    Raises:
        NoSingularVectorsError: They aren't determined.
    """
    key = hashlib.sha256(weight.tobytes()).digest(), len(weight), rank
    if key not in _known:
        _known[key] = _computed(weight.astype(np.float64), rank)
    return _known[key]


def _computed(weight: Doubles, rank: int) -> tuple[Floats, Floats]:
    """Compute them from the eigenvectors of the smaller one of W·Wᵀ and Wᵀ·W, of which only the first are needed."""
    from scipy.linalg import eigh

    is_tall = weight.shape[0] > weight.shape[1]
    short = weight.T if is_tall else weight
    side = len(short)
    # One more than the rank, if there is one, to compare the last one with.
    squares, vectors = eigh(short @ short.T, subset_by_index=[max(0, side - rank - 1), side - 1])
    squares, vectors = np.append(squares[::-1], 0.0), vectors[:, ::-1][:, :rank]
    if rank > side or not (-np.diff(squares)[:rank] > CLOSEST * squares[0]).all():
        raise NoSingularVectorsError(f"a weight whose first {rank} singular values are distinct")
    others = short.T @ vectors / np.sqrt(squares[:rank])
    left, right = (others, vectors) if is_tall else (vectors, others)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(rank)])
    return (left * signs).astype(np.float32), (right * signs).T.astype(np.float32)


def _left(part: NewPart) -> Floats:
    return _singular_vectors(part.adapter.weight(), part.adapter.rank)[0]


def _right(part: NewPart) -> Floats:
    return _singular_vectors(part.adapter.weight(), part.adapter.rank)[1]


CORE = Parametrization(
    name="core",
    parts=(
        Part("A", ("rank", "in"), _right, is_trained=False),
        Part("B", ("out", "rank"), _left, is_trained=False),
        Part("R", ("rank", "rank"), zeros),
    ),
    factors=lambda parts: (parts["A"], parts["B"] @ parts["R"]),
    scale=lambda alpha, rank: alpha / rank,
)
