"""The brokers' accounts that are shipped: a worker's is enough to work, and for nothing else; without one, nothing."""

import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

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
from tests.evaluator.worker.brokers import Brokers
from tests.evaluator.worker.office import Office
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import PASSWORDS, SITE, WORKER, Redis

START = Path(__file__).parents[3] / "docker" / "rabbitmq" / "start.sh"


class Accounts:
    """A broker with the accounts that are shipped, and the URLs of the site's, a worker's, and of none."""

    def __init__(self, kind: str, brokers: Brokers, folder: Path) -> None:
        self.redis = Redis(is_closed=True) if kind == "redis" else None
        if self.redis:
            scheme, address = "redis", self.redis.address
        else:
            server = brokers.get(kind).server
            assert isinstance(server, RabbitMQ)
            definitions = folder / "definitions.json"
            environment = {**os.environ, **PASSWORDS, "BROKER_DEFINITIONS": str(definitions)}
            subprocess.run([START, "true"], env=environment, check=True)
            server.ctl("import_definitions", str(definitions))
            scheme, address = "amqp", f"127.0.0.1:{server.port}/pfl"
        self.site, self.worker, self.none = (
            f"{scheme}://{account}{address}" for account in (f"{SITE}@", f"{WORKER}@", "")
        )

    def stop(self) -> None:
        if self.redis:
            self.redis.stop()


@pytest.fixture(scope="module", params=["redis", "rabbitmq"])
def accounts(
    request: pytest.FixtureRequest, brokers: Brokers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Accounts]:
    accounts = Accounts(request.param, brokers, tmp_path_factory.mktemp("accounts"))
    yield accounts
    accounts.stop()


@pytest.fixture
def office(accounts: Accounts, home: Path, new_office: Callable[[str], Office]) -> Office:
    return new_office(accounts.site)


def attempt(action: Callable[[], object]) -> bool:
    """Whether the broker let it happen."""
    try:
        action()
    except (
        amqp.AccessRefused,
        amqp.NotAllowed,
        redis.AuthenticationError,
        redis.ResponseError,
        OperationalError,
    ):
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


@pytest.mark.parametrize("credential", ["worker", "none"])
def test_nothing_else_is_read_forged_removed_or_configured(
    office: Office, accounts: Accounts, credential: str
) -> None:
    office.app.send_task(REPORT_TASK, [{}], queue=INTAKE_QUEUE)
    office.app.send_task(STEP_TASK, [{}], queue=SCORING_QUEUE)
    url = {"worker": accounts.worker, "none": accounts.none}[credential]
    # Someone who has this, and all that Celery can do.
    thief = Celery("thief")
    thief.conf.update(broker_settings(url))
    acts: dict[str, Callable[[], object]] = {
        "read what others report": on_channel(thief, lambda channel: channel.basic_get(INTAKE_QUEUE)),
        "remove what others report": on_channel(thief, lambda channel: channel.queue_purge(INTAKE_QUEUE)),
        "send a step": lambda: thief.send_task(
            STEP_TASK, [{}], queue=EVALUATOR_QUEUE, declare=[], retry=False
        ),
        "control a process": lambda: thief.control.broadcast("shutdown"),
        "make a queue": on_channel(
            thief, lambda channel: channel.exchange_declare("thief", "direct", nowait=False)
        ),
    }
    if accounts.redis:
        acts = {name: act for name, act in acts.items() if name != "make a queue"} | {
            command: partial(redis.Redis.from_url(url).execute_command, *command.split())
            for command in (
                "LRANGE evaluator.scoring 0 -1",
                "LRANGE docvqa_site.intake 0 -1",
                "HGETALL unacked",
                "KEYS *",
                "FLUSHALL",
                "FLUSHDB",
                "DEL evaluator.scoring",
                "LPUSH evaluator.scoring forged",
                "CONFIG SET dir /tmp",
                "CONFIG GET dir",
                "ACL LIST",
                "SAVE",
                "SHUTDOWN NOSAVE",
                "MONITOR",
                "CLIENT LIST",
            )
        }
    if credential == "none":
        acts["take a step"] = on_channel(thief, lambda channel: channel.basic_get(SCORING_QUEUE))
    # At once, since each of them is tried again for seconds.
    with ThreadPoolExecutor(len(acts)) as pool:
        assert [name for name, done in zip(acts, pool.map(attempt, acts.values()), strict=True) if done] == []
    # Refused, or without effect: Redis has no such command.
    attempt(on_channel(thief, lambda channel: channel.queue_delete(INTAKE_QUEUE)))
    with office.app.connection_for_read() as connection:
        for name in (INTAKE_QUEUE, SCORING_QUEUE):
            queue: Any = office.app.amqp.queues[name]
            assert connection.SimpleQueue(queue).get(timeout=5) is not None


@pytest.mark.parametrize("accounts", ["redis"], indirect=True)
def test_the_accounts_are_the_same_after_a_restart(accounts: Accounts) -> None:
    assert accounts.redis is not None
    accounts.redis.kill()
    accounts.redis.start()
    assert redis.Redis.from_url(accounts.site).ping()
    assert not attempt(redis.Redis.from_url(accounts.none).ping)


def test_a_worker_s_settings_name_no_key_that_the_site_uses(accounts: Accounts) -> None:
    options = worker_settings(accounts.worker)["broker_transport_options"]
    assert not set(map(str, options.values())) & {"unacked", "unacked_index", "unacked_mutex"}
