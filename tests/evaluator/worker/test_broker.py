import os
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.__main__ import main as celery
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.worker.broker import MessageFile, broker_settings, delivery_number, worker_settings
from tests.evaluator.worker.producer import TASKS
from tests.evaluator.worker.producer import main as produce
from tests.services.forked import Forked

# How long to wait for what happens in any case; longer than the busiest machine takes.
PATIENCE_S = 300


@pytest.fixture
def messages(tmp_path: Path) -> Iterator[MessageFile]:
    with closing(MessageFile(tmp_path / "broker.sqlite3", lease_s=0.3)) as file:
        yield file


def take(messages: MessageFile, queue: str = "q") -> str:
    delivery = messages.take(queue)
    assert delivery is not None
    return delivery.payload


def test_messages_come_in_the_order_in_which_they_were_sent(messages: MessageFile) -> None:
    for payload in "abc":
        messages.put("q", payload)
    messages.put("other", "x")
    assert [take(messages) for _ in range(3)] == ["a", "b", "c"]
    assert messages.take("q") is None


def test_a_message_given_back_keeps_its_place_and_its_count(messages: MessageFile) -> None:
    messages.put("q", "first")
    messages.put("q", "second")
    first = messages.take("q")
    assert first is not None
    messages.give_back(first.lease)
    again = messages.take("q")
    assert again is not None
    assert (again.payload, again.deliveries) == ("first", 2)


def test_a_message_given_back_untouched_is_not_counted(messages: MessageFile) -> None:
    messages.put("q", "a")
    fetched_ahead = messages.take("q")
    assert fetched_ahead is not None
    messages.give_back(fetched_ahead.lease, untouched=True)
    again = messages.take("q")
    assert again is not None
    assert again.deliveries == 1


def test_a_lease_is_renewed_while_its_process_lives(messages: MessageFile) -> None:
    messages.put("q", "a")
    take(messages)
    with closing(MessageFile(messages.path)) as other:
        time.sleep(3 * messages.lease_s)
        assert other.take("q") is None


def test_a_message_comes_back_when_its_lease_has_run_out(messages: MessageFile) -> None:
    messages.put("q", "a")
    take(messages)
    messages.close()  # as after a kill: nobody renews
    assert messages.take("q") is None
    time.sleep(1.1 * messages.lease_s)
    assert take(messages) == "a"


def test_a_consumer_that_lost_its_lease_cannot_delete_the_message(messages: MessageFile) -> None:
    messages.put("q", "a")
    late = messages.take("q")
    assert late is not None
    messages.close()
    time.sleep(1.1 * messages.lease_s)
    with closing(MessageFile(messages.path, lease_s=0.3)) as other:
        current = other.take("q")
        assert current is not None
        messages.delete(late.lease)
        messages.give_back(late.lease)
        assert messages.take("q") is None
        other.give_back(current.lease)
        assert take(other) == "a"


def test_messages_outlive_the_process_that_sent_them(messages: MessageFile) -> None:
    messages.put("q", "a")
    messages.close()
    assert take(MessageFile(messages.path)) == "a"


def produce_at_once(path: Path, start: Barrier) -> None:
    messages = MessageFile(path)
    start.wait()
    messages.put("q", "a")


def test_a_file_that_was_removed_is_made_again(messages: MessageFile) -> None:
    messages.put("q", "lost")
    for path in messages.path.parent.glob("broker.sqlite3*"):
        path.unlink()
    messages.put("q", "kept")
    with closing(MessageFile(messages.path)) as another:
        assert take(another) == "kept"


def test_any_number_of_producers_may_be_the_first(tmp_path: Path) -> None:
    processes = get_context("fork")  # quick to start
    for attempt in range(4):
        path = tmp_path / f"{attempt}.sqlite3"
        start = processes.Barrier(12)
        producers = [processes.Process(target=produce_at_once, args=(path, start)) for _ in range(12)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        with closing(MessageFile(path)) as messages:
            assert messages.size("q") == 12


def test_purging_spares_what_is_being_worked_on(messages: MessageFile) -> None:
    for payload in "abc":
        messages.put("q", payload)
    take(messages)
    assert (messages.size("q"), messages.purge("q"), messages.size("q")) == (2, 2, 0)
    with closing(sqlite3.connect(messages.path)) as database:
        assert database.execute("SELECT payload FROM messages").fetchall() == [("a",)]


@given(st.lists(st.sampled_from(["put", "take", "delete", "give_back"]), max_size=40))
@settings(max_examples=30, deadline=None)
def test_whatever_consumers_do_no_message_is_lost_or_reordered(
    tmp_path_factory: pytest.TempPathFactory, operations: list[str]
) -> None:
    free: list[int] = []
    held: list[tuple[int, str]] = []
    sent = 0
    path = tmp_path_factory.mktemp("broker") / "broker.sqlite3"
    with closing(MessageFile(path)) as messages:
        for operation in operations:
            if operation == "put":
                messages.put("q", str(sent))
                free.append(sent)
                sent += 1
            elif operation == "take":
                delivery = messages.take("q")
                assert (int(delivery.payload) if delivery else None) == (min(free) if free else None)
                if delivery:
                    free.remove(int(delivery.payload))
                    held.append((int(delivery.payload), delivery.lease))
            elif held:
                number, lease = held.pop(0)
                if operation == "delete":
                    messages.delete(lease)
                else:
                    messages.give_back(lease)
                    free.append(number)
            assert messages.size("q") == len(free)


def test_delivery_numbers_of_both_counting_brokers() -> None:
    assert delivery_number({"deliveries": 3}) == 3
    assert delivery_number({"x-delivery-count": 1}) == 2
    assert delivery_number({}) == 1
    assert delivery_number({}, redelivered=True) == 2  # Redis


@pytest.mark.parametrize("url", ["sqlite:///relative.sqlite3", "filesystem://", "memory://", ""])
def test_a_broker_that_could_lose_messages_is_rejected(url: str) -> None:
    with pytest.raises(ValueError, match="broker's"):
        broker_settings(url)


@pytest.mark.parametrize("url", ["sqlite:////tmp/b.sqlite3", "redis://h/0", "rediss://h/0", "amqps://h/v"])
def test_every_broker_acknowledges_late_and_speaks_json_only(url: str) -> None:
    conf = broker_settings(url)
    assert conf["task_acks_late"]
    assert conf["task_reject_on_worker_lost"]
    assert conf["worker_prefetch_multiplier"] == 1
    assert conf["accept_content"] == ["json"]


@pytest.mark.parametrize("url", ["sqlite:////tmp/b.sqlite3", "redis://h/0", "amqp://h/v"])
@pytest.mark.parametrize("settings_of", [broker_settings, worker_settings])
def test_nobody_is_controlled_through_a_broker(
    url: str, settings_of: Callable[[str], dict[str, Any]]
) -> None:
    assert settings_of(url)["worker_enable_remote_control"] is False


class Site:
    """A producer and the real worker processes that serve it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"sqlite:///{folder}/broker.sqlite3"
        self.journal = folder / "journal"
        self.app = Celery("producer")
        self.app.conf.update(broker_settings(self.url))
        self.workers: list[Forked] = []

    def send(self, label: object, *arguments: object, task: str = "note") -> None:
        self.app.send_task(f"probe.{task}", [str(label), *arguments], queue="probe")

    def start_worker(self, prefetch: int = 1, pool: str = "solo") -> Forked:
        number = len(self.workers)
        command = ["celery", "-A", "tests.evaluator.worker.broker_probe", "worker", "-P", pool, "-c", "2"]
        environment = os.environ | {
            "PFL_BROKER_URL": self.url,
            "PROBE_JOURNAL": str(self.journal),
            "PROBE_PREFETCH": str(prefetch),
        }
        log = self.folder / f"worker{number}.log"
        command += ["-n", f"w{number}@test", "-l", "INFO"]
        worker = Forked(celery, command, environment=environment, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def journal_lines(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []

    def events(self) -> list[list[str]]:
        return [line.split()[:3] for line in self.journal_lines()]

    def ended(self) -> list[str]:
        return [line.split()[1] for line in self.journal_lines() if line.startswith("ended")]

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("worker*.log")))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < give_up, self.logs()
            time.sleep(0.05)

    def waiting(self) -> int:
        with closing(sqlite3.connect(self.folder / "broker.sqlite3")) as database:
            return int(database.execute("SELECT count(*) FROM messages").fetchone()[0])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    for worker in site.workers:
        worker.kill()
        worker.wait()
    site.app.close()


def test_two_workers_share_two_hundred_tasks_and_run_each_once(site: Site) -> None:
    for number in range(2):
        site.send(number, 2, task="meet")
    for number in range(2, 200):
        site.send(number, 0.01)
    site.start_worker()
    site.start_worker()
    site.wait_until(lambda: len(site.ended()) >= 200 and site.waiting() == 0)
    assert Counter(site.ended()) == Counter(str(number) for number in range(200))
    assert len({line.split()[3] for line in site.journal_lines()}) == 2
    assert "WARNING" not in site.logs()


def test_a_task_whose_worker_was_killed_runs_again_and_says_so(site: Site) -> None:
    for number in range(5):
        site.send(number, task="hang_once" if number == 2 else "note")
    worker = site.start_worker(prefetch=4)
    site.wait_until(lambda: ["began", "2", "1"] in site.events())
    worker.kill()
    worker.wait()
    assert site.ended() == ["0", "1"]
    site.start_worker()
    site.wait_until(lambda: site.waiting() == 0)
    assert Counter(site.ended()) == Counter("01234")
    assert ["began", "2", "2"] in site.events()


@pytest.mark.parametrize(
    "pool", ["solo", *(pytest.param(pool, marks=pytest.mark.slow) for pool in ("prefork", "threads"))]
)
def test_a_warm_shutdown_finishes_its_task_and_returns_what_was_fetched_ahead(site: Site, pool: str) -> None:
    for number in range(20):
        site.send(number, 0.5)
    worker = site.start_worker(prefetch=4, pool=pool)
    site.wait_until(lambda: len(site.journal_lines()) >= 1)
    worker.send_signal(signal.SIGTERM)
    worker.wait(timeout=PATIENCE_S)
    began = [line for line in site.journal_lines() if line.startswith("began")]
    assert len(began) == len(site.ended()) < 20
    assert site.waiting() == 20 - len(site.ended())
    site.start_worker(pool="threads")
    site.wait_until(lambda: site.waiting() == 0)
    assert Counter(site.ended()) == Counter(str(number) for number in range(20))
    assert {line.split()[2] for line in site.journal_lines()} == {"1"}


def test_producers_in_several_processes_lose_nothing(site: Site, tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    running = [
        Forked(produce, ["producer", site.url, str(n)], stdout=printed, stderr=printed) for n in range(4)
    ]
    site.start_worker()
    assert [process.wait(timeout=PATIENCE_S) for process in running] == [0] * 4
    site.wait_until(lambda: len(site.ended()) >= 200 and site.waiting() == 0)
    assert Counter(site.ended()) == Counter(f"{p}-{n}" for p in range(4) for n in range(TASKS))
    for p in range(4):
        assert [label for label in site.ended() if label.startswith(f"{p}-")] == [
            f"{p}-{n}" for n in range(TASKS)
        ]
