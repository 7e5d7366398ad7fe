"""Which node has which clients, as far as the server knows: it asks every node that comes, and asks none twice."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from evaluator.errors import ErrorCode, ProblemError, shorten
from starter_kit.engines.flower.agreement import Agreement
from starter_kit.engines.flower.messages import BYE, HELLO, Hello

POLL_S = 0.2
DISMISSING_S = 10.0

Tell = Callable[[str], None]
T = TypeVar("T")


@dataclass
class Roll:
    """The nodes of a federation.

    Attributes:
        clients: Of the whole federation.
        agreement: What the server has and every node must have.
        tell: Told in a line whenever a node comes, can't take part, is gone or is back.
    """

    grid: Grid
    clients: Collection[int]
    agreement: Agreement
    tell: Tell
    _nodes: dict[int, list[int]] = field(default_factory=dict)  # the clients of each that has said who it is
    _asked: dict[str, int] = field(default_factory=dict)  # those that haven't yet, by message
    _late: dict[str, int] = field(default_factory=dict)  # those that owe an answer of before, by message

    def await_all(self, timeout_s: float) -> None:
        """Wait until every client is at some node.

        Raises:
            ProblemError: (`E_CLIENTS_LOST`) Some are not there in time.
        """
        deadline = time.monotonic() + timeout_s
        while missing := [str(client) for client in self.clients if self.node_of(client) is None]:
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
        """The node that can be asked for the client now; where a client was seen at two, the one that came later."""
        silent = set(self._late.values())
        nodes = [node for node, clients in self._nodes.items() if client in clients and node not in silent]
        return nodes[-1] if nodes else None

    def silent(self, message_id: str, node: int) -> None:
        """Note that the node didn't answer a message in time: it is asked nothing until it has."""
        self._late[message_id] = node

    def dismiss(self) -> None:
        """Tell all nodes that the run is complete, so that they can end."""
        deadline = time.monotonic() + DISMISSING_S
        there = list(self._nodes)
        leaving = dict(
            zip(send(self.grid, [(node, RecordDict()) for node in there], BYE), there, strict=True)
        )
        while leaving and time.monotonic() < deadline:
            time.sleep(POLL_S)
            list(received(self.grid, leaving))

    def update(self) -> None:
        """Take in which nodes came, went, and answered what they were asked before."""
        present = set(self.grid.get_node_ids())
        for node in [node for node in self._nodes if node not in present]:
            if clients := self._nodes.pop(node):
                self.tell(f"client {_listed(clients)}: node {node} is gone")
        known = self._nodes.keys() | set(self._asked.values())
        who = Hello([], self.agreement).pack()
        new = sorted(present - known)
        self._asked |= zip(send(self.grid, [(node, who) for node in new], HELLO), new, strict=True)
        for node, message in received(self.grid, self._asked):
            self._met(node, message)
        for node, _ in received(self.grid, self._late):
            if node in self._nodes and node not in self._late.values():
                self.tell(f"client {_listed(self._nodes[node])}: node {node} is back")

    def _met(self, node: int, message: Message) -> None:
        self._nodes[node] = []
        try:
            hello = Hello.unpack(content_of(message))
            self.agreement.check(hello.agreement, f"the node of client {_listed(hello.clients)}")
        except (ValueError, ProblemError) as error:
            self.tell(f"node {node} can't take part: {error}")
        else:
            self._nodes[node] = hello.clients
            self.tell(f"client {_listed(hello.clients)}: at node {node}")


def send(grid: Grid, contents: Sequence[tuple[int, RecordDict]], kind: str) -> list[str]:
    """Send each node its content, as a message of this kind; the ids of the messages."""
    messages = [Message(content, node, kind) for node, content in contents]
    return list(grid.push_messages(messages)) if messages else []


def received(grid: Grid, waiting: dict[str, T]) -> Iterator[tuple[T, Message]]:
    """The replies that have come to messages in `waiting`, which are then taken off it; the first to each."""
    for message in grid.pull_messages(list(waiting)) if waiting else ():
        if (asked := message.metadata.reply_to_message_id) in waiting:
            yield waiting.pop(asked), message


def content_of(message: Message) -> RecordDict:
    """What a reply says. Raises ValueError where it reports an error."""
    if message.has_error():
        raise ValueError(shorten(message.error.reason or f"error {message.error.code}"))
    return message.content


def _listed(clients: Sequence[int]) -> str:
    return ", ".join(map(str, clients))
