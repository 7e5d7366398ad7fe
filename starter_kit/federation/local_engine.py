"""The engine that runs clients one after another in this process, on the model that is already in memory."""

from collections.abc import Iterator, Mapping, Sequence

from starter_kit.federation.client_state import ClientState, LocalState, local_states
from starter_kit.federation.rounds import Participant, Reply, Request


class LocalEngine:
    """Runs clients in this process.

    Attributes:
        states, apart, unsent: See `Engine`.
    """

    apart = False

    def __init__(self, participant: Participant) -> None:
        self._participant = participant
        self.unsent: list[int] = []
        self.states: dict[int, LocalState] = {client: LocalState() for client in participant.clients}

    @property
    def clients(self) -> list[int]:
        """The ids of all clients."""
        return self._participant.clients

    def restore(self, states: Mapping[int, ClientState]) -> None:
        """Give clients their earlier state back; raises `ProblemError` where it is stored at nodes."""
        self.states.update(local_states(states))

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Yield the clients' replies, each computed when it is requested."""
        for request in requests:
            yield self._participant.answer(request, self.states[request.client])
