"""The engine that runs clients one after another in this process, on the model that is already in memory."""

from collections.abc import Iterator, Sequence

from starter_kit.federation.rounds import Participant, Reply, Request
from starter_kit.learning.local_training import State


class LocalEngine:
    """Runs clients in process.

    Attributes:
        states, apart, unsent: See `Engine`.
    """

    apart = False

    def __init__(self, participant: Participant) -> None:
        self._participant = participant
        self.unsent: list[int] = []
        self.states: dict[int, State] = {client: {} for client in participant.clients}

    @property
    def clients(self) -> list[int]:
        return self._participant.clients

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        for request in requests:
            yield self._participant.answer(request, self.states[request.client])
