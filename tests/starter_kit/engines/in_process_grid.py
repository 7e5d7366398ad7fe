"""A Flower Grid whose nodes are in this process: fast, and with the very bytes that Flower would send.

Only for those bytes it reaches inside Flower: to serialize messages, and to name their sender.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from starter_kit.engines.flower import client_app

SERVER_ID = 1
NODE_UNAVAILABLE = 5  # the code of Flower's error


@dataclass
class Node:
    """One node.

    Attributes:
        mute: Whether it takes messages and holds its replies back, until `mute` is False again.
    """

    host: client_app.ClientHost
    context: Context
    mute: bool = False


@dataclass
class InProcessGrid(Grid):
    """A grid of `Node`s.

    Attributes:
        sent_bytes: The size of each message in Flower's own serialization.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    sent: list[Message] = field(default_factory=list)
    replies: dict[str, Message] = field(default_factory=dict)
    sent_bytes: list[int] = field(default_factory=list)

    def add(self, number: int, host: client_app.ClientHost) -> Node:
        context = Context(
            run_id=1, node_id=number, node_config={}, state=RecordDict(), run_config={}, series_id=1
        )
        self.nodes[number] = Node(host, context)
        return self.nodes[number]

    def get_node_ids(self) -> Iterable[int]:
        return list(self.nodes)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        return [self._push(message) for message in messages]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        pulled = []
        for message in [sent for sent in self.sent if sent.metadata.message_id in set(message_ids)]:
            node = self.nodes.get(message.metadata.dst_node_id)
            if node is None:
                error = Error(NODE_UNAVAILABLE, "the node is unavailable")
                pulled.append(Message(error, reply_to=message))
            elif not node.mute:
                pulled.append(self.replies.pop(message.metadata.message_id))
            else:
                continue
            self.sent.remove(message)
        return pulled

    def _push(self, message: Message) -> str:
        arrived = self._transmitted(message)
        node = self.nodes[message.metadata.dst_node_id]
        client_app.answer_for(node.host)
        reply = client_app.app(arrived, node.context)
        self.sent.append(arrived)
        self.replies[arrived.metadata.message_id] = self._transmitted(reply)
        return arrived.metadata.message_id

    def _transmitted(self, message: Message) -> Message:
        """Return the message as it arrives at the other end."""
        number = message.object_id
        objects = {name: part.deflate() for name, part in get_all_nested_objects(message).items()}
        self.sent_bytes.append(sum(map(len, objects.values())))
        arrived = cast(Message, inflate_object_from_contents(number, objects))
        arrived.metadata.__dict__["_message_id"] = number
        return arrived

    def set_run(self, run: Run) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Run:
        raise NotImplementedError

    def create_message(self, *args: object, **options: object) -> Message:
        raise NotImplementedError

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        raise NotImplementedError


@contextmanager
def as_server() -> Iterator[None]:
    """Send the messages of this process as the server."""
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = SERVER_ID
    yield
    TaskIdentity._task_id = TaskIdentity._run_id = TaskIdentity._node_id = None  # type: ignore[assignment]
