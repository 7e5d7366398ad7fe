"""The keys of a replayable run's draws, one for each round, and what its record says of them.

A replayable run draws its coins and its noise from streams that follow from a secret of the run. With t the number of
the round,

    kₜ = HKDF-SHA256(secret, info = "pfl round key" ‖ t)
    key of a party's stream in round t = HKDF-SHA256(kₜ, salt = run token, info = "pfl draws" ‖ interruptions ‖ party)

where the run token is the nonce that the site issued for the run, a party is the server or a client, and the
interruptions, which the record shows, are the rounds that began and were never finished before the round: a round that
begins again never draws the same noise. Integers are 8 bytes, big-endian and signed.

The first line of the record has the root of a Merkle tree over SHA-256(0x00 ‖ "pfl round key" ‖ kₜ) of all planned
rounds. So a round can be opened by its kₜ and the path to that root. Under the assumption that HKDF-SHA256 is a
pseudorandom function (Krawczyk 2010; RFC 5869), neither the root nor opened rounds say anything of another round's key.

Which rounds are opened follows from the site's challenge, which is drawn after the record's roots are known: the last
one always, since a lie there changes the model and no later round, and some others.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from evaluator.records.lines import TrainingRecord
from evaluator.records.merkle import LEAF_PREFIX, Tree, leads_to_root

SECRET_BYTES = 32
KEY_BYTES = 32
_ROUND, _DRAWS, _DRAWN = b"pfl round key", b"pfl draws", b"pfl replayed round"


class DrawKeys(Protocol):
    """Gives the keys of the streams from which a replayable run draws."""

    def key(self, round_number: int, party: int) -> bytes:
        """Return the key of a party's stream in a round; a party is a client or `SERVER`."""


@dataclass(frozen=True)
class RunKeys:
    """The keys of a whole run, for those who have its secret.

    Attributes:
        secret: Random bytes of the operating system, of one run only.
        run_token: The run token; None for a run that has none.
        interruptions: The rounds of the run that began and were never finished so far.
    """

    secret: bytes = field(repr=False)
    run_token: str | None
    interruptions: int = 0

    def key(self, round_number: int, party: int) -> bytes:
        return draws_key(round_key(self.secret, round_number), self.run_token, self.interruptions, party)


@dataclass(frozen=True)
class OpenedKeys:
    """The keys of one round that was opened.

    Attributes:
        round: The number of the round.
        round_key: kₜ.
        run_token, interruptions: See `RunKeys`; the interruptions are those before this round was finished.
    """

    round: int
    round_key: bytes = field(repr=False)
    run_token: str | None
    interruptions: int

    def key(self, round_number: int, party: int) -> bytes:
        if round_number != self.round:
            raise ValueError(f"round {self.round} is open, and round {round_number} isn't")
        return draws_key(self.round_key, self.run_token, self.interruptions, party)


def round_key(secret: bytes, round_number: int) -> bytes:
    """Return kₜ."""
    return _derived(secret, b"", _ROUND + _integer(round_number))


def draws_key(key: bytes, run_token: str | None, interruptions: int, party: int) -> bytes:
    """Return the key of a party's stream in the round whose kₜ is `key`."""
    return _derived(key, (run_token or "").encode(), _DRAWS + _integer(interruptions) + _integer(party))


def keys_root(secret: bytes, rounds: int) -> str:
    """Return the root over the keys of `rounds` rounds, at least one, in hexadecimal."""
    return _tree(secret, rounds).root


def key_path(secret: bytes, rounds: int, round_number: int) -> list[str]:
    """Return the path from the key of a round to `keys_root`, in hexadecimal."""
    return _tree(secret, rounds).path(round_number - 1)


def is_committed(key: bytes, round_number: int, path: Sequence[str], *, root: str, rounds: int) -> bool:
    """Return whether `key` is the one of this round under `keys_root`."""
    return leads_to_root(_leaf(key), round_number - 1, path, root=root, count=rounds)


def replayed_rounds(challenge: str, rounds: int, drawn: int) -> list[int]:
    """Return the rounds to train again of `rounds` rounds, at least one: the last, and `drawn` others, in order.

    Every choice of the others is as likely, with SHA-256 as a random function; all are chosen where there are fewer.

    Args:
        challenge: What the site drew after the record was uploaded, in hexadecimal.

    Raises:
        ValueError: The challenge isn't hexadecimal.
    """
    seed = _DRAWN + bytes.fromhex(challenge)
    others = sorted(range(1, rounds), key=lambda number: hashlib.sha256(seed + _integer(number)).digest())
    return [*sorted(others[:drawn]), rounds]


def interruptions_before(record: TrainingRecord, round_number: int) -> int:
    """Return how many rounds had begun and were never finished when the round of this number was trained."""
    return sum(line.begun for line in record.resumes if line.round <= round_number)


def _tree(secret: bytes, rounds: int) -> Tree:
    return Tree([_leaf(round_key(secret, number)) for number in range(1, rounds + 1)])


def _leaf(key: bytes) -> bytes:
    return hashlib.sha256(LEAF_PREFIX + _ROUND + key).digest()


def _derived(key: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt, info).derive(key)


def _integer(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
