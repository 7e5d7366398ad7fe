"""Shamir's secret sharing (1979) of 256-bit secrets: any `threshold` shares give the secret, fewer give nothing.

A secret is the value at 0 of a polynomial over the integers modulo `PRIME`, of degree below the threshold, whose other
coefficients are drawn uniformly from the operating system's entropy. A holder's share is the value at id + 1. Given
fewer shares than the threshold, every secret is equally likely.
"""

import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache

from starter_kit.secure_aggregation import ProtocolError

SECRET_BYTES = 32
SHARE_BYTES = 33
PRIME = 2**256 + 297  # the smallest above 2²⁵⁶, so that every secret is an element of the field


def split(secret: bytes, threshold: int, holders: Iterable[int]) -> dict[int, int]:
    """Return a share of `secret`, of 32 bytes, for each of `holders`, which are ids from 0."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret has {SECRET_BYTES} bytes, not {len(secret)}")
    coefficients = [
        int.from_bytes(secret, "big"),
        *(secrets.randbelow(PRIME) for _ in range(threshold - 1)),
    ]
    return {holder: _value(coefficients, holder + 1) for holder in holders}


def reconstruct(shares: Mapping[int, int], threshold: int) -> bytes:
    """Return the secret that the shares of these holders make.

    Raises:
        ProtocolError: There are fewer than `threshold`, or they are not all of one secret. A false share is noticed
            only where there are more than `threshold`, or where the secret comes out too large.
    """
    if len(shares) < threshold:
        raise ProtocolError(f"{len(shares)} shares are too few: a secret requires {threshold}")
    points = [(holder + 1, share) for holder, share in sorted(shares.items())]
    enough, others = points[:threshold], points[threshold:]
    secret = interpolate(enough, 0)
    if secret >= 2 ** (8 * SECRET_BYTES) or any(interpolate(enough, x) != y for x, y in others):
        raise ProtocolError("the shares are not all of one secret")
    return secret.to_bytes(SECRET_BYTES, "big")


def interpolate(points: list[tuple[int, int]], at: int) -> int:
    """Return the value at `at` of the polynomial of least degree through `points`, modulo `PRIME` (Lagrange)."""
    weights = _weights(tuple(x for x, _ in points), at)
    return sum(weight * y for weight, (_, y) in zip(weights, points, strict=True)) % PRIME


@lru_cache(maxsize=1024)  # ids only; the shares of all clients of a round have the same holders
def _weights(places: tuple[int, ...], at: int) -> tuple[int, ...]:
    """What the value at each of `places` counts for in the value at `at`."""
    weights = []
    for x in places:
        numerator = denominator = 1
        for other in places:
            if other != x:
                numerator = numerator * (at - other) % PRIME
                denominator = denominator * (x - other) % PRIME
        weights.append(numerator * pow(denominator, -1, PRIME) % PRIME)
    return tuple(weights)


def share_to_bytes(share: int) -> bytes:
    """Return a share as 33 bytes."""
    return share.to_bytes(SHARE_BYTES, "big")


def share_from_bytes(data: bytes) -> int:
    """Return the share of 33 bytes. Raises `ProtocolError` if it is not an element of the field."""
    share = int.from_bytes(data, "big")
    if share >= PRIME:
        raise ProtocolError("a share is not an element of the field")
    return share


def _value(coefficients: list[int], at: int) -> int:
    value = 0
    for coefficient in reversed(coefficients):
        value = (value * at + coefficient) % PRIME
    return value
