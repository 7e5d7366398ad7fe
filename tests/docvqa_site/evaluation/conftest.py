from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest
from celery import Celery

from docvqa_site.celery import app
from docvqa_site.evaluation.queue import dispatch
from docvqa_site.submissions.models import RunState
from evaluator.messages.jobs import EVALUATOR_QUEUE, SCORING_QUEUE, EvaluationJob
from tests.docvqa_site.factories import make_run
from tests.services import rabbitmq
from tests.services.rabbitmq import RabbitMQ


class Broker:
    """The workers' end of a real broker: what the site has sent."""

    def __init__(self, site: Celery = app) -> None:
        self.app = site

    def take(self, queue: str) -> list[Any]:
        """All messages of a queue, as kombu reads them."""
        messages: list[Any] = []
        with self.app.connection_for_read() as connection:
            # As Celery declares it, which RabbitMQ compares.
            declared: Any = self.app.amqp.queues[queue]
            waiting = connection.SimpleQueue(declared)
            while True:
                try:
                    message = waiting.get(block=False)
                except Empty:
                    return messages
                message.ack()
                messages.append(message)

    def jobs(self, queue=EVALUATOR_QUEUE):
        return [EvaluationJob.model_validate(message.payload[0][0]) for message in self.take(queue)]


@pytest.fixture
def broker():
    broker = Broker()
    for queue in (EVALUATOR_QUEUE, SCORING_QUEUE):
        broker.take(queue)
    return broker


@pytest.fixture(scope="package")
def rabbitmq_server() -> Iterator[RabbitMQ]:
    """One for the group "brokers of the site"."""
    if rabbitmq.binary() is None:
        pytest.skip("no RabbitMQ server: `python -m tests.install` installs one as root on Debian")
    server = RabbitMQ()
    yield server
    server.stop()


@pytest.fixture
def committed(django_capture_on_commit_callbacks):
    """Calls something and then does what it left for the commit."""

    def call(function, *arguments, **keywords):
        with django_capture_on_commit_callbacks(execute=True):
            return function(*arguments, **keywords)

    return call


@pytest.fixture
def evaluation():
    return dispatch.start(make_run(state=RunState.QUEUED))
