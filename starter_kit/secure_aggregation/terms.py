"""What the clients and the server of one round agree on before it starts; all of it is public."""

from dataclasses import dataclass

from starter_kit.secure_aggregation import ProtocolError

MAX_ROUND = 2**64 - 1
MAX_CLIENT = 2**32 - 2  # the number above it addresses everybody


@dataclass(frozen=True)
class Terms:
    """The terms of one round.

    Attributes:
        round: The number of the round; a number is used once.
        clients: The ids of all clients that were invited, ascending.
        threshold: t, the number of clients that are required to unmask a sum, and of vectors that a sum has at least.

    Raises:
        ProtocolError: A number out of range, a client twice, or a threshold outside n/2 < t <= n. With t <= n/2 a
            server could have one half of the clients unmask what the other half still holds back.
    """

    round: int
    clients: tuple[int, ...]
    threshold: int

    def __post_init__(self) -> None:
        if not 0 <= self.round <= MAX_ROUND:
            raise ProtocolError(f"a round's number is from 0 to {MAX_ROUND}, not {self.round}")
        if any(low >= high for low, high in zip(self.clients, self.clients[1:], strict=False)):
            raise ProtocolError("the ids of the clients are not ascending: one is there twice")
        if not self.clients or not 0 <= self.clients[0] <= self.clients[-1] <= MAX_CLIENT:
            raise ProtocolError(f"a round has at least one client, with ids from 0 to {MAX_CLIENT}")
        if not len(self.clients) < 2 * self.threshold <= 2 * len(self.clients):
            raise ProtocolError(
                f"the threshold for {len(self.clients)} clients is above half of them and at most all of them, "
                f"not {self.threshold}"
            )
