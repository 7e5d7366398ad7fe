"""Engines whose clients run on this machine, and the one that runs them in this process."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

from starter_kit.federation.client_state import ClientState, LocalState, local_states
from starter_kit.federation.rounds import Participant, Reply, Request


class MachineEngine(ABC):
    """An engine whose clients run on this machine: see `Engine`."""

    apart = False

    def __init__(self, clients: Sequence[int]) -> None:
        self.clients = list(clients)
        self.states = {client: LocalState() for client in clients}
        self.unsent: list[int] = []

    def restore(self, states: Mapping[int, ClientState]) -> None:
        """Give clients their earlier state back; raises `ProblemError` where it is stored at nodes."""
        self.states.update(local_states(states))

    @abstractmethod
    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Yield the clients' replies in the order of the requests."""


class LocalEngine(MachineEngine):
    """Runs clients one after another in this process, on the model that is already in memory."""

    def __init__(self, participant: Participant) -> None:
        super().__init__(participant.clients)
        self._participant = participant

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Yield the clients' replies, each computed when it is requested."""
        for request in requests:
            yield self._participant.answer(request, self.states[request.client])
