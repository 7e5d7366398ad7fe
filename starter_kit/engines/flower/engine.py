"""The server's side under Flower: an engine whose clients are at nodes that a `Grid` reaches.

A request is sent once. In a round,

- a client whose node is there is asked at once, and its answer waited for `timeout_s` at most;
- a client whose node is away isn't waited for, unless nobody else has answered or the run needs every client: then its
  node has `timeout_s` to come (back);
- a client that was asked and is lost stays lost for the round, even if its node comes back: what it sent may have been
  seen, so it must not answer the same round twice.

Clients are always chosen among all of the federation, whether their nodes are there or not: the sampling rates that the
accounting rests on are the whole federation's. A node that is back, or was started again, is asked again from the next
round on.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from flwr.serverapp import Grid

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.flower.messages import ASK, Answer, Requests
from starter_kit.engines.flower.roll import POLL_S, Roll, Tell, content_of, received, send
from starter_kit.federation.client_state import AtNode, ClientState
from starter_kit.federation.rounds import Reply, Request


class FlowerEngine:
    """Runs clients at the nodes of `roll`.

    Args:
        timeout_s: How long an answer is waited for.
        needs_all: Whether a round is worth nothing if a client is missing.
        tell: Told in a line which client is missing in a round, and why.

    Attributes:
        states: What clients keep stays at their nodes; here it is only noted that they do.
        apart, unsent: See `Engine`.

    Raises:
        ProblemError: (`E_CLIENTS_LOST`) A run was resumed whose clients keep something from round to round, which went
            with their nodes.
    """

    apart = True

    def __init__(
        self,
        grid: Grid,
        roll: Roll,
        *,
        timeout_s: float,
        needs_all: bool,
        tell: Tell,
    ) -> None:
        self.clients = list(roll.clients)
        self.states: dict[int, ClientState] = {}
        self.unsent: list[int] = []
        self._grid = grid
        self._roll = roll
        self._timeout_s = timeout_s
        self._needs_all = needs_all
        self._tell = tell
        self._first_round: int | None = None

    def restore(self, states: Mapping[int, ClientState]) -> None:
        """Note which clients had kept something; see `Raises` for what becomes of a run that is resumed."""
        self.states.update(states)

    def ask(self, requests: Sequence[Request]) -> Iterator[Reply]:
        deadline = time.monotonic() + self._timeout_s
        self._first_round = self._first_round or min((request.round for request in requests), default=None)
        packer, answered = Requests(), False
        self.unsent = []
        unsent, waiting = list(requests), dict[str, tuple[int, Request]]()
        while unsent or waiting:
            self._roll.update()
            unsent, sent = self._send(unsent, packer)
            waiting |= sent
            for (_, request), message in received(self._grid, waiting):
                try:
                    answer = Answer.unpack(content_of(message), request.client)
                except ValueError as error:
                    self._lost(request, str(error))
                else:
                    self._check_kept(answer)
                    answered = True
                    yield answer.reply
            enough = answered and not self._needs_all
            if (enough and not waiting) or time.monotonic() > deadline:
                break
            if unsent or waiting:
                time.sleep(POLL_S)
        for message_id, (node, request) in waiting.items():
            self._roll.silent(message_id, node)
            self._lost(request, f"no answer within {self._timeout_s:g} s")
        self.unsent = [request.client for request in unsent]
        for request in unsent:
            self._lost(request, "its node is away")

    def _send(
        self, requests: Sequence[Request], packer: Requests
    ) -> tuple[list[Request], dict[str, tuple[int, Request]]]:
        """Send what can be sent: the requests that are left, and by message those that went, with their nodes."""
        left, going = list[Request](), list[tuple[int, Request]]()
        for request in requests:
            node = self._roll.node_of(request.client)
            if node is None:
                left.append(request)
            else:
                going.append((node, request))
        ids = send(self._grid, [(node, packer.pack(request)) for node, request in going], ASK)
        return left, dict(zip(ids, going, strict=True))

    def _lost(self, request: Request, reason: str) -> None:
        self._tell(f"round {request.round}: client {request.client} is lost ({reason})")

    def _check_kept(self, answer: Answer) -> None:
        if not answer.keeps:
            return
        self.states[answer.reply.client] = AtNode()
        if self._first_round != 1:
            raise ProblemError.of(
                ErrorCode.CLIENTS_LOST,
                where=f"round {self._first_round}",
                expected="a run from its first round on, for its clients keep something from round to round",
                found="a run that was resumed, at nodes that have nothing of its earlier rounds",
                next_step="Begin the run again; the engines of one machine can resume such a run.",
            )
