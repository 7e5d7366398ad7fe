"""The first download: what clients receive in the first round, when the model is the one that everybody starts with.

The competition's paper leaves this initial transmission out of the cost. Codecs send it differently: as a whole model,
as a difference of zero, or not at all. So a track says whether it counts (`FirstDownload`), and the same rule then
holds for every log: `free` takes out of the sum what the log has of it, `counted` adds what the log lacks.
"""

from dataclasses import dataclass, field

from evaluator.communication.log import CommunicationTotals, Exchange
from evaluator.messages.jobs import FirstDownload


@dataclass
class _Client:
    """What is known of a client of the first round: its first download, and others that tell a missing one's size."""

    first_download: int
    later_download: int = 0
    first_upload: int = 0

    @property
    def download(self) -> int:
        """The bytes of the first download; where the log lacks it, of the largest later one, or of the first upload."""
        return self.first_download or self.later_download or self.first_upload


@dataclass
class FirstDownloads:
    """The first downloads of a log, gathered from its exchanges in the order of rounds.

    The first download of a client is its largest message down in the first round that has messages; secure aggregation
    sends smaller ones beside it.
    """

    _round: int = 0
    _clients: dict[int, _Client] = field(default_factory=dict)

    def add(self, exchange: Exchange) -> None:
        """Take in the next exchange."""
        self._round = self._round or exchange.round
        if exchange.round == self._round:
            self._clients[exchange.client] = _Client(exchange.largest_down)
        client = self._clients.get(exchange.client)
        if client is None:
            return
        if exchange.round > self._round:
            client.later_download = max(client.later_download, exchange.largest_down)
        client.first_upload = client.first_upload or exchange.largest_up

    @property
    def logged_bytes(self) -> int:
        """The bytes of the first downloads that the log has."""
        return sum(client.first_download for client in self._clients.values())

    @property
    def all_bytes(self) -> int:
        """The bytes of all first downloads, with those that the log lacks."""
        return sum(client.download for client in self._clients.values())

    def ranked_bytes(self, totals: CommunicationTotals, rule: FirstDownload) -> int:
        """Return the bytes of the log under a track's rule."""
        without = totals.bytes_total - self.logged_bytes
        return without + (self.all_bytes if rule is FirstDownload.COUNTED else 0)
