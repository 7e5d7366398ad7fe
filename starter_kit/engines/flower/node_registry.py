"""The nodes of a federation and their clients, as far as the server knows them: each node is asked once who it is."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from evaluator.errors import ErrorCode, ProblemError, shorten
from starter_kit.engines.flower.agreement import Agreement
from starter_kit.engines.flower.messages import HANDSHAKE, RUN_COMPLETE, Handshake

POLL_S = 0.2
COMPLETION_S = 10.0  # for which the nodes' replies to the last message are waited for

Log = Callable[[str], None]
T = TypeVar("T")


@dataclass
class NodeRegistry:
    """The nodes of a federation.

    Attributes:
        clients: All clients of the federation.
        agreement: What the server has and every node must have.
        log: Receives a line whenever a node arrives, can't take part, leaves or is back.
    """

    grid: Grid
    clients: Collection[int]
    agreement: Agreement
    log: Log
    # The clients of each node that has completed its handshake; none if it can't take part.
    _nodes: dict[int, list[int]] = field(default_factory=dict)
    # Nodes whose handshake is under way, by message.
    _handshakes: dict[str, int] = field(default_factory=dict)
    # Nodes that owe a reply to an earlier request, by message.
    _overdue: dict[str, int] = field(default_factory=dict)

    def await_all(self, timeout_s: float) -> None:
        """Wait until every client is at some node.

        Raises:
            ProblemError: (`E_CLIENTS_LOST`) Some are still missing after `timeout_s`.
        """
        deadline, reported = time.monotonic() + timeout_s, list[str]()
        while missing := [str(client) for client in self.clients if self.node_of(client) is None]:
            if missing != reported:
                self.log(f"waiting for a node of client {', '.join(missing)}, for {timeout_s:g} s at most")
                reported = missing
            if time.monotonic() > deadline:
                raise ProblemError.of(
                    ErrorCode.CLIENTS_LOST,
                    where="the federation",
                    expected="a node for every client",
                    found=f"none for client {', '.join(missing)} after {timeout_s:g} s",
                    next_step="Start the nodes that are missing, and the server again.",
                )
            time.sleep(POLL_S)
            self.update()

    def node_of(self, client: int) -> int | None:
        """Return the node that can be asked for the client now; if there are two, the one that arrived later."""
        overdue = set(self._overdue.values())
        nodes = [node for node, clients in self._nodes.items() if client in clients and node not in overdue]
        return nodes[-1] if nodes else None

    def mark_overdue(self, message_id: str, node: int) -> None:
        """Note that the node didn't reply to a message in time: it is sent nothing until it has."""
        self._overdue[message_id] = node

    def announce_completion(self) -> None:
        """Inform all nodes that the run is complete, so that they can end."""
        deadline = time.monotonic() + COMPLETION_S
        nodes = list(self._nodes)
        ids = send(self.grid, [(node, RecordDict()) for node in nodes], RUN_COMPLETE)
        waiting = dict(zip(ids, nodes, strict=True))
        while waiting and time.monotonic() < deadline:
            time.sleep(POLL_S)
            list(receive(self.grid, waiting))

    def update(self) -> None:
        """Note which nodes arrived, left, and replied to what they were sent before."""
        present = set(self.grid.get_node_ids())
        self._remove_absent(present)
        self._greet(present)
        for node, message in receive(self.grid, self._handshakes):
            self._register(node, message)
        for node, _ in receive(self.grid, self._overdue):
            if node in self._nodes and node not in self._overdue.values():
                self.log(f"client {_listed(self._nodes[node])}: node {node} is back")

    def _remove_absent(self, present: set[int]) -> None:
        for node in [node for node in self._nodes if node not in present]:
            if clients := self._nodes.pop(node):
                self.log(f"client {_listed(clients)}: node {node} is gone")

    def _greet(self, present: set[int]) -> None:
        """Begin the handshake with each node that is new."""
        new = sorted(present - self._nodes.keys() - set(self._handshakes.values()))
        content = Handshake([], self.agreement).pack()
        ids = send(self.grid, [(node, content) for node in new], HANDSHAKE)
        self._handshakes |= zip(ids, new, strict=True)

    def _register(self, node: int, message: Message) -> None:
        """Conclude a handshake; a node that can't take part is registered without clients."""
        self._nodes[node] = []
        try:
            theirs = Handshake.unpack(read_content(message))
            self.agreement.check(theirs.agreement, f"the node of client {_listed(theirs.clients)}")
        except (ValueError, ProblemError) as error:
            self.log(f"node {node} can't take part: {error}")
        else:
            self._nodes[node] = theirs.clients
            self.log(f"client {_listed(theirs.clients)}: at node {node}")


def send(grid: Grid, contents: Sequence[tuple[int, RecordDict]], message_type: str) -> list[str]:
    """Send each node its content, and return the messages' ids."""
    messages = [Message(content, node, message_type) for node, content in contents]
    return list(grid.push_messages(messages)) if messages else []


def receive(grid: Grid, waiting: dict[str, T]) -> Iterator[tuple[T, Message]]:
    """Yield the replies that have arrived to messages in `waiting`, which are then removed from it: one reply each."""
    for message in grid.pull_messages(list(waiting)) if waiting else ():
        if (replied_to := message.metadata.reply_to_message_id) in waiting:
            yield waiting.pop(replied_to), message


def read_content(message: Message) -> RecordDict:
    """Return the content of a reply. Raises ValueError where it reports an error."""
    if message.has_error():
        raise ValueError(shorten(message.error.reason or f"error {message.error.code}"))
    return message.content


def _listed(clients: Sequence[int]) -> str:
    return ", ".join(map(str, clients))
