"""The server's side under Flower: an engine whose clients are at nodes that a `Grid` reaches.

A request is sent once. In a round,

- a client whose node is there is asked at once, and its reply awaited for at most `timeout_s`;
- a client whose node is away isn't waited for, unless nobody else has replied or the run needs every client: then its
  node has `timeout_s` to arrive or come back;
- a client that was asked and is lost stays lost for the round, even if its node comes back: what it sent may have been
  seen, so it must not reply to the same round twice.

Clients are always chosen among all of the federation, whether their nodes are there or not: the sampling rates that the
accounting rests on are the whole federation's. A node that is back, or was started again, is asked again from the next
round on.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from flwr.serverapp import Grid

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.flower.messages import REQUEST, NodeReply, RequestPacker
from starter_kit.engines.flower.node_registry import POLL_S, Log, NodeRegistry, read_content, receive, send
from starter_kit.federation.client_state import ClientState, RemoteState
from starter_kit.federation.rounds import Reply, Request


@dataclass
class _Leg:
    """The requests of one call of `FlowerEngine.ask`.

    Attributes:
        unsent: Those whose nodes are away.
        waiting: Those that were sent and not replied to yet, with their nodes, by message.
        replied: Whether any client has replied.
    """

    unsent: list[Request]
    deadline: float
    waiting: dict[str, tuple[int, Request]] = field(default_factory=dict)
    replied: bool = False
    packer: RequestPacker = field(default_factory=RequestPacker)

    def is_over(self, *, needs_all: bool) -> bool:
        """Return whether nothing more is waited for."""
        if time.monotonic() > self.deadline:
            return True
        if self.waiting:
            return False
        return not self.unsent or (self.replied and not needs_all)


@dataclass
class FlowerEngine:
    """Runs clients at the nodes of `registry`.

    Attributes:
        timeout_s: How long a reply is waited for.
        needs_all: Whether a round is worth nothing if a client is missing.
        log: Receives a line for each client that is missing in a round, with the reason.
        states: What clients keep stays at their nodes; here it is only noted that they do.
        unsent: See `Engine`.

    Raises:
        ProblemError: (`E_CLIENTS_LOST`) A run was resumed whose clients keep something from round to round, which was
            lost with their nodes.
    """

    grid: Grid
    registry: NodeRegistry
    _: KW_ONLY
    timeout_s: float
    needs_all: bool
    log: Log
    states: dict[int, ClientState] = field(default_factory=dict)
    unsent: list[int] = field(default_factory=list)
    apart: bool = True
    _first_round: int | None = None

    @property
    def clients(self) -> list[int]:
        return list(self.registry.clients)

    def restore(self, states: Mapping[int, ClientState]) -> None:
        """Note which clients had kept something; see `Raises` for what becomes of a run that is resumed."""
        self.states.update(states)

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        self._first_round = self._first_round or min((request.round for request in requests), default=None)
        self.unsent = []
        leg = _Leg(list(requests), time.monotonic() + self.timeout_s)
        while True:
            self.registry.update()
            self._send(leg)
            yield from self._receive(leg)
            if leg.is_over(needs_all=self.needs_all):
                break
            time.sleep(POLL_S)
        self._give_up(leg)

    def _send(self, leg: _Leg) -> None:
        """Send the requests whose nodes are there."""
        reachable, away = list[tuple[int, Request]](), list[Request]()
        for request in leg.unsent:
            node = self.registry.node_of(request.client)
            if node is None:
                away.append(request)
            else:
                reachable.append((node, request))
        contents = [(node, leg.packer.pack(request)) for node, request in reachable]
        ids = send(self.grid, contents, REQUEST)
        leg.unsent = away
        leg.waiting |= zip(ids, reachable, strict=True)

    def _receive(self, leg: _Leg) -> Iterator[Reply]:
        """Yield the replies that have arrived; a client whose node replies with something else is lost."""
        for (_, request), message in receive(self.grid, leg.waiting):
            try:
                received = NodeReply.unpack(read_content(message), request.client)
            except ValueError as error:
                self._log_lost(request, str(error))
            else:
                self._note_state(received)
                leg.replied = True
                yield received.reply

    def _give_up(self, leg: _Leg) -> None:
        """Count the clients that have not replied as lost."""
        for message_id, (node, request) in leg.waiting.items():
            self.registry.mark_overdue(message_id, node)
            self._log_lost(request, f"no reply within {self.timeout_s:g} s")
        self.unsent = [request.client for request in leg.unsent]
        for request in leg.unsent:
            self._log_lost(request, "its node is away")

    def _log_lost(self, request: Request, reason: str) -> None:
        self.log(f"round {request.round}: client {request.client} is lost ({reason})")

    def _note_state(self, received: NodeReply) -> None:
        """Note that a client keeps something at its node, if it does, and that it has done so since the first round."""
        if not received.keeps_state:
            return
        self.states[received.reply.client] = RemoteState()
        if self._first_round != 1:
            raise ProblemError.of(
                ErrorCode.CLIENTS_LOST,
                where=f"round {self._first_round}",
                expected="a run that starts with its first round, as its clients keep something from round to round",
                found="a resumed run, whose nodes have nothing of its earlier rounds",
                next_step="Start the run again from the beginning; the engines of one machine can resume such a run.",
            )
