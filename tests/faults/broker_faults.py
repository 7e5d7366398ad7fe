"""Brokers that are away for half a minute, lose, repeat or invent messages, while there is traffic in every phase."""

import time

from kombu import Producer
from kombu import Queue as KombuQueue

from evaluator.messages.jobs import REPORT_TASK, STEP_TASK
from tests.faults.back_ends import QUEUES
from tests.faults.sites import WORKERS
from tests.faults.trials import Trial

AWAY_S = 30
DOUBLING_S = 30
SUBMISSIONS = 16
# What no consumer can read: no JSON, no task, a task that nobody has, and a task without its arguments.
UNREADABLE: tuple[tuple[bytes, dict[str, str]], ...] = (
    (b"\xff\xfe not JSON", {}),
    (b"{}", {}),
    (b"[[], {}, {}]", {"task": "nobody.has.this", "id": "00000000-0000-4000-8000-000000000001"}),
    (b"[[], {}, {}]", {"task": STEP_TASK, "id": "00000000-0000-4000-8000-000000000002"}),
    (b"[[], {}, {}]", {"task": REPORT_TASK, "id": "00000000-0000-4000-8000-000000000003"}),
)


def freeze_broker(trial: Trial) -> None:
    """Let the broker accept connections and answer nothing."""
    _begin_traffic(trial)
    with trial.site.back_ends.frozen_broker():
        trial.faults += 1
        time.sleep(AWAY_S)


def restart_broker(trial: Trial) -> None:
    """Kill the broker, and start it again on the same files."""
    broker = trial.site.back_ends.broker
    assert broker is not None
    _begin_traffic(trial)
    broker.kill()
    trial.faults += 1
    time.sleep(AWAY_S)
    broker.start()


def remove_broker_file(trial: Trial) -> None:
    """Remove the embedded broker's file under the running processes, and restart one of them."""
    _begin_traffic(trial)
    for path in trial.site.home.glob("broker.sqlite3*"):
        path.unlink()
    trial.faults += 1
    for name in WORKERS:
        trial.kill(name)


def empty_broker(trial: Trial) -> None:
    """Remove every message, also those that were handed out, three times."""
    _begin_traffic(trial)
    for _ in range(3):
        trial.site.back_ends.empty_broker()
        trial.faults += 1
        time.sleep(5)


def double_messages(trial: Trial) -> None:
    """Take what waits in the queues for half a minute, and put each message back twice."""
    _begin_traffic(trial)
    deadline = time.monotonic() + DOUBLING_S
    with trial.site.back_ends.broker_channel() as channel:
        producer = Producer(channel)
        while time.monotonic() < deadline:
            for name in QUEUES:
                if (message := KombuQueue(name, no_declare=True)(channel).get()) is None:
                    continue
                for _ in range(2):
                    producer.publish(
                        message.body,
                        routing_key=name,
                        headers=message.headers,
                        content_type=message.content_type,
                        content_encoding=message.content_encoding,
                    )
                message.ack()
                trial.faults += 1
            time.sleep(0.02)


def send_unreadable_messages(trial: Trial) -> None:
    """Put messages into every queue that no consumer can read, between those of the traffic."""
    _begin_traffic(trial)
    with trial.site.back_ends.broker_channel() as channel:
        producer = Producer(channel)
        for name in QUEUES:
            for body, headers in UNREADABLE:
                producer.publish(
                    body,
                    routing_key=name,
                    headers=headers,
                    content_type="application/json",
                    content_encoding="utf-8",
                )
                trial.faults += 1


def _begin_traffic(trial: Trial) -> None:
    """Begin to submit, and return when there are steps in every phase: some sent, some running, some reported."""
    trial.watch_steps()
    trial.traffic.submit(SUBMISSIONS // 2)
    trial.wait_for_step("scoring")
    trial.traffic.submit(SUBMISSIONS // 2)
