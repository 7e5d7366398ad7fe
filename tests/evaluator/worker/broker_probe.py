"""A Celery app over the embedded broker, run as a real worker process by test_broker.py."""

import os
import time
from pathlib import Path

from celery import Celery, Task

from evaluator.worker.broker import broker_settings, delivery_number

app = Celery("probe", fixups=[])
app.conf.update(broker_settings(os.environ["PFL_BROKER_URL"]))
app.conf.update(
    task_default_queue="probe",
    worker_prefetch_multiplier=int(os.environ.get("PROBE_PREFETCH", "1")),
    broker_transport_options={"lease_s": 2.0, "polling_interval": 0.05},
)


@app.task(name="probe.note", bind=True)
def note(self: Task, label: str, seconds: float = 0.0) -> None:
    """Append `<event> <label> <delivery> <pid>` to $PROBE_JOURNAL before and after `seconds` of work."""
    delivery = delivery_number(self.request.headers or {})
    _write(f"began {label} {delivery} {os.getpid()}")
    time.sleep(seconds)
    _write(f"ended {label} {delivery} {os.getpid()}")


@app.task(name="probe.hang_once", bind=True)
def hang_once(self: Task, label: str) -> None:
    """Do the same, but on the first delivery never end."""
    delivery = delivery_number(self.request.headers or {})
    _write(f"began {label} {delivery} {os.getpid()}")
    while delivery == 1:
        time.sleep(1)
    _write(f"ended {label} {delivery} {os.getpid()}")


@app.task(name="probe.meet")
def meet(label: str, parties: int) -> None:
    """Do the same, but end only when so many processes have begun to meet."""
    _write(f"began {label} meeting {os.getpid()}")
    journal = Path(os.environ["PROBE_JOURNAL"])
    while sum(" meeting " in line for line in journal.read_text().splitlines()) < parties:
        time.sleep(0.05)
    _write(f"ended {label} 1 {os.getpid()}")


def _write(line: str) -> None:
    with Path(os.environ["PROBE_JOURNAL"]).open("a") as journal:
        journal.write(line + "\n")
