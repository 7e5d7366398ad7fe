"""How the worker and the site take messages from the broker: one at a time.

`Consumer` is Celery's, without what nobody here uses and everybody on the broker could abuse: remote control, events,
and the exchange of state between workers. On RabbitMQ it asks for each message when it is free (`basic.get`), instead
of having messages pushed: the server would push one message per queue to a consumer that is busy for hours, and would
close its connection because it acknowledges none of them in time.

`HeldRequest` lets a task acknowledge its message at once. Celery leaves acknowledgements to its event loop, which a
task of the solo pool holds up until it ends.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, ClassVar

import amqp
from celery.bootsteps import RUN  # type: ignore[attr-defined]
from celery.worker import loops, state
from celery.worker.consumer import consumer as celery_consumer
from celery.worker.consumer import tasks as celery_tasks
from celery.worker.consumer.connection import Connection
from celery.worker.request import Request
from kombu.exceptions import MessageStateError

logger = logging.getLogger(__name__)

# How often a free consumer asks each of its queues on RabbitMQ for a message.
PULL_INTERVAL_S = 0.05
# How often one that takes no messages looks whether it shall end.
IDLE_S = 0.2
# How long it waits for a queue that doesn't exist yet.
MISSING_QUEUE_S = 2.0


class NotAcknowledgedError(Exception):
    """The broker may not have seen the acknowledgement: the message may be handed out again."""


class HeldRequest(Request):
    """A request that its task finds in `self.request.held`; needs a pool in which both share a process."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.request_dict["held"] = self

    def acknowledge_now(self) -> None:
        """Acknowledge the message, and return when the broker has processed that.

        Raises:
            NotAcknowledgedError: The connection is lost.
        """
        try:
            self.message.ack()
            # A call with an answer: RabbitMQ doesn't confirm acknowledgements, but processes them in order.
            self.message.channel.basic_qos(0, 1, False)
        except (*self.connection_errors, MessageStateError) as error:
            raise NotAcknowledgedError from error
        self.acknowledged = True


class Tasks(celery_tasks.Tasks):
    """Celery's step that declares the queues, which here needs nothing but a connection."""

    requires = (Connection,)


class Consumer(celery_consumer.Consumer):
    """Celery's consumer of one message at a time."""

    event_dispatcher = None
    # Whether it listens, or only keeps its connection.
    takes_messages = True

    class Blueprint(celery_consumer.Consumer.Blueprint):  # type: ignore[misc, valid-type]
        """The steps in which it starts: it connects, declares its queues, and listens."""

        default_steps: ClassVar[list[Any]] = [Connection, Tasks, celery_consumer.Evloop]

    def loop(self, consumer: Any, connection: Any, *arguments: Any, **keywords: Any) -> None:
        """Listen until the connection is lost or the process shall end."""
        if not self.takes_messages:
            idle(self)
            return
        # Never Celery's event loop: on Redis it waits forever when the connection is lost in an acknowledgement.
        listen: Callable[..., None] = pull if connection.transport.driver_type == "amqp" else loops.synloop
        listen(consumer, connection, *arguments, **keywords)

    def perform_pending_operations(self) -> None:
        """Do what is due between two messages. Celery's blocking loop calls this every two seconds or more often."""
        super().perform_pending_operations()
        # kombu leaves this to the event loop; in the blocking loop it looks only when Redis is late with an answer.
        connection: Any = self.connection
        if connection.transport.driver_type == "redis":
            connection.transport.cycle.maybe_restore_messages()

    def call_soon_ack(self, acknowledge: Callable[..., object], *arguments: Any, **keywords: Any) -> None:
        """Acknowledge or reject at once; one process with one task at a time has nothing to gather."""
        acknowledge(*arguments, **keywords)


def idle(owner: Any) -> None:
    """Take no message until the process shall end."""
    owner.on_ready()
    while owner.blueprint.state == RUN and owner.connection:
        state.maybe_shutdown()
        time.sleep(IDLE_S)


def pull(owner: Any, _connection: Any, consumer: Any, blueprint: Any, *_: Any, **__: Any) -> None:
    """Take messages one by one from the consumer's queues in turn, and pause while all are empty."""
    handle = owner.create_task_handler()
    owner.on_ready()
    while blueprint.state == RUN and owner.connection:
        taken = [_take(queue, consumer.accept, handle) for queue in consumer.queues]
        if not any(taken):
            time.sleep(PULL_INTERVAL_S)


def _take(queue: Any, accept: set[str], handle: Callable[[Any], None]) -> bool:
    """Handle the next message of a queue; return whether there was one."""
    state.maybe_shutdown()
    try:
        message = queue.get(no_ack=False, accept=accept)
    except amqp.NotFound:
        logger.warning("there is no queue %s yet", queue.name)
        time.sleep(MISSING_QUEUE_S)
        # The server has closed the channel; Celery opens another.
        raise
    if message is None:
        return False
    handle(message)
    return True
