"""Rounds of secure aggregation in one process, in which any client may be lost at any leg."""

from collections.abc import Mapping, Sequence

import numpy as np

from starter_kit.secure_aggregation.client import SecureClient
from starter_kit.secure_aggregation.masks import Words
from starter_kit.secure_aggregation.server import SecureServer
from starter_kit.secure_aggregation.terms import Terms

ROUND = 7
NEVER = 5  # as the leg that a client is lost at


def terms_of(clients: Sequence[int], threshold: int | None = None, number: int = ROUND) -> Terms:
    """The terms of a round that a third of its clients may leave, unless another threshold is given."""
    return Terms(number, tuple(clients), threshold or 2 * len(clients) // 3 + 1)


def random_vectors(clients: int, size: int, seed: int = 0) -> dict[int, Words]:
    """A vector (size,) of each client; ids have gaps."""
    rng = np.random.default_rng(seed)
    return {3 * c: rng.integers(0, 2**32, size, dtype=np.uint32) for c in range(clients)}


def plain_sum(vectors: Mapping[int, Words]) -> Words:
    """The sum modulo 2³², by way of 64 bits."""
    exact = np.sum([vector.astype(np.uint64) for vector in vectors.values()], axis=0, dtype=np.uint64)
    return np.asarray(exact % 2**32, np.uint32)


class Round:
    """One round of clients with these vectors, leg by leg; after each leg every client goes through `to_bytes`.

    Attributes:
        clients: Those that have not been lost.
        masked: The third leg's messages, by client.
    """

    def __init__(self, vectors: Mapping[int, Words], threshold: int | None = None) -> None:
        ids = list(vectors)
        size = len(next(iter(vectors.values())))
        self.vectors = vectors
        terms = terms_of(ids, threshold)
        self.server = SecureServer(terms, size)
        self.clients = {id_: SecureClient(id_, terms) for id_ in ids}
        self.masked: dict[int, bytes] = {}

    def lose(self, *ids: int) -> None:
        for id_ in ids:
            del self.clients[id_]

    def advertise(self) -> bytes:
        """Leg 1; returns the list of keys."""
        self._receive({id_: client.advertise() for id_, client in self.clients.items()})
        return self.server.key_list()

    def share(self, key_list: bytes) -> dict[int, bytes]:
        """Leg 2; returns the routed shares by recipient."""
        self._receive({id_: client.share(key_list) for id_, client in self.clients.items()})
        return self.server.routed_shares()

    def mask(self, routed: Mapping[int, bytes]) -> bytes:
        """Leg 3; returns the request to unmask."""
        self.masked = {
            id_: client.mask(routed[id_], self.vectors[id_]) for id_, client in self.clients.items()
        }
        self._receive(self.masked)
        return self.server.unmask_request()

    def unmask(self, request: bytes) -> Words:
        """Leg 4; returns the sum."""
        self._receive({id_: client.unmask(request) for id_, client in self.clients.items()})
        return self.server.total()

    def until_shared(self) -> dict[int, bytes]:
        return self.share(self.advertise())

    def until_masked(self) -> bytes:
        return self.mask(self.until_shared())

    def _receive(self, messages: Mapping[int, bytes]) -> None:
        for message in messages.values():
            self.server.receive(message)
        self.clients = {
            id_: SecureClient.from_bytes(client.to_bytes()) for id_, client in self.clients.items()
        }


def total_with_losses(vectors: Mapping[int, Words], lost_at: Mapping[int, int], threshold: int) -> Words:
    """The sum of a round in which the message of each client in the leg `lost_at`, and after it, doesn't arrive."""
    played = Round(vectors, threshold)

    def lose(leg: int) -> None:
        played.lose(*(id_ for id_ in vectors if lost_at[id_] == leg))

    lose(1)
    key_list = played.advertise()
    lose(2)
    routed = played.share(key_list)
    lose(3)
    request = played.mask(routed)
    lose(4)
    return played.unmask(request)
