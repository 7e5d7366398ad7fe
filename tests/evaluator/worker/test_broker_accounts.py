"""The accounts that docs/workers.md has an organizer create: a worker's is enough to work, and for nothing else."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import amqp
import pytest
import redis
from celery import Celery
from kombu.exceptions import OperationalError

from evaluator.messages.jobs import (
    EVALUATOR_QUEUE,
    INTAKE_QUEUE,
    REPORT_TASK,
    SCORING_QUEUE,
    STEP_TASK,
    Outcome,
    Step,
)
from evaluator.worker.broker import broker_settings, worker_settings
from tests.evaluator.worker.brokers import Broker, Brokers
from tests.evaluator.worker.office import Office
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import Redis

DOCUMENT = Path(__file__).parents[3] / "docs" / "workers.md"


def documented(program: str) -> list[list[str]]:
    """The commands of this program in the document, as lists of words."""
    blocks = re.findall(r"```bash\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith(f"{program} ")]


def as_account(url: str, name: str, password: str, vhost: str | None = None) -> str:
    parts = urlsplit(url)
    host = f"{name}:{password}@{parts.hostname}:{parts.port}"
    return urlunsplit(parts._replace(netloc=host, path=parts.path if vhost is None else f"/{vhost}"))


class Accounts:
    """The URLs of the site's and of a worker's account at one broker."""

    def __init__(self, broker: Broker) -> None:
        vhost = None
        if isinstance(broker.server, Redis):
            server = redis.Redis.from_url(broker.url)
            for command in documented("redis-cli"):
                server.execute_command(*command)
        else:
            vhost = "pfl"
            assert isinstance(broker.server, RabbitMQ)
            for command in documented("rabbitmqctl"):
                broker.server.ctl(*command)
        self.site = as_account(broker.url, "site", "SITE_PASSWORD", vhost)
        self.worker = as_account(broker.url, "worker", "WORKER_PASSWORD", vhost)


@pytest.fixture(scope="module", params=["redis", "rabbitmq"])
def accounts(request: pytest.FixtureRequest, brokers: Brokers) -> Accounts:
    return Accounts(brokers.get(request.param))


@pytest.fixture
def office(accounts: Accounts, home: Path, new_office: Callable[[str], Office]) -> Office:
    return new_office(accounts.site)


@pytest.fixture
def thief(accounts: Accounts) -> Celery:
    """Someone who has a worker's account, and all that Celery can do."""
    app = Celery("thief")
    app.conf.update(broker_settings(accounts.worker))
    return app


def attempt(action: Callable[[], object]) -> bool:
    """Whether the broker let it happen."""
    try:
        action()
    except (amqp.AccessRefused, redis.ResponseError, OperationalError):
        return False
    return True


def test_a_worker_s_account_is_enough_for_a_worker(office: Office, accounts: Accounts) -> None:
    office.start_worker(PFL_BROKER_URL=accounts.worker)
    report = office.report_on(Step.VALIDATE, [office.serve_checkpoint()])
    assert report.outcome is Outcome.PASSED, report.operator_trace
    assert "ERROR" not in office.log()


def test_a_worker_s_account_hands_back_what_it_did_not_begin(
    office: Office, accounts: Accounts, tmp_path: Path
) -> None:
    worker = office.start_worker(
        "tests.evaluator.worker.quick_worker",
        PFL_BROKER_URL=accounts.worker,
        STOPS_BEFORE_BEGINNING=str(tmp_path / "holds"),
    )
    job = office.send(Step.VALIDATE, [office.serve_checkpoint()])
    office.wait_until((tmp_path / "holds").exists)
    worker.kill()
    worker.wait()
    office.start_worker("tests.evaluator.worker.quick_worker", PFL_BROKER_URL=accounts.worker)
    office.receive(lambda: bool(office.reports_on(job)))


def on_channel(app: Celery, action: Callable[[Any], object]) -> Callable[[], object]:
    def act() -> object:
        with app.connection_for_write() as connection:
            return action(connection.default_channel)

    return act


def test_a_worker_s_account_is_for_nothing_else(office: Office, thief: Celery) -> None:
    office.app.send_task(REPORT_TASK, [{}], queue=INTAKE_QUEUE)
    office.app.send_task(STEP_TASK, [{}], queue=SCORING_QUEUE)
    acts: dict[str, Callable[[], object]] = {
        "read what others report": on_channel(thief, lambda channel: channel.basic_get(INTAKE_QUEUE)),
        "remove what others report": on_channel(thief, lambda channel: channel.queue_purge(INTAKE_QUEUE)),
        "send a step": lambda: thief.send_task(
            STEP_TASK, [{}], queue=EVALUATOR_QUEUE, declare=[], retry=False
        ),
        "control a process": lambda: thief.control.broadcast("shutdown"),
    }
    assert [name for name, act in acts.items() if attempt(act)] == []
    # Refused, or without effect: Redis has no such command.
    attempt(on_channel(thief, lambda channel: channel.queue_delete(INTAKE_QUEUE)))
    intake: Any = office.app.amqp.queues[INTAKE_QUEUE]
    with office.app.connection_for_read() as connection:
        assert connection.SimpleQueue(intake).get(timeout=5) is not None


def test_a_worker_s_settings_name_no_key_that_the_site_uses(accounts: Accounts) -> None:
    options = worker_settings(accounts.worker)["broker_transport_options"]
    assert not set(map(str, options.values())) & {"unacked", "unacked_index", "unacked_mutex"}
