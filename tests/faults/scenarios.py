"""The table of the faults, and where each of them is tried."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults import (
    broker_faults,
    clock_faults,
    database_faults,
    process_faults,
    store_faults,
    worker_faults,
)
from tests.faults.back_ends import SERVERS, Kind
from tests.faults.proxy import Fault
from tests.faults.trials import Trial

EVERYWHERE = tuple(Kind)
EMBEDDED = (Kind.EMBEDDED,)
# Where the kind of broker plays no part.
S3 = (Kind.REDIS,)


@dataclass(frozen=True)
class Scenario:
    """One fault.

    Attributes:
        name: What happens, as docs/reliability.md says it.
        inflict: Makes traffic and lets things fail.
        kinds: On what it is tried.
        failed: How many runs can't be evaluated by anybody any more and must fail, with a refund.
        small_disk: Whether the site's folder must be on a disk of its own that can be filled.
    """

    name: str
    inflict: Callable[[Trial], None]
    kinds: tuple[Kind, ...] = EVERYWHERE
    failed: int = 0
    small_disk: bool = False
    needs_faketime: bool = False

    @property
    def missing(self) -> str:
        """What this machine lacks for it; empty where it lacks nothing."""
        if self.small_disk and os.geteuid() != 0:
            return "only root can mount a disk that may be filled"
        if self.needs_faketime and clock_faults.library() is None:
            return "libfaketime is not installed (Debian's package faketime)"
        return ""


SCENARIOS = [
    Scenario("worker killed with its child, in each step", worker_faults.kill_worker_in_each_step),
    Scenario("worker's child killed, in each step", worker_faults.kill_child_in_each_step),
    Scenario("worker killed without its child, in each step", worker_faults.kill_worker_alone_in_each_step),
    Scenario("each worker killed that takes a run", worker_faults.kill_each_worker_of_a_run, failed=1),
    Scenario("web server killed during *complete*", process_faults.kill_site_during("POST */complete")),
    Scenario("web server killed during *submit*", process_faults.kill_site_during("POST */submit")),
    Scenario("intake killed while reports arrive", process_faults.kill_intake),
    Scenario("clock killed while a worker dies", process_faults.kill_clock),
    Scenario("broker frozen for 30 s", broker_faults.freeze_broker),
    Scenario("broker killed, and back after 30 s", broker_faults.restart_broker, SERVERS),
    Scenario("broker's file removed", broker_faults.remove_broker_file, EMBEDDED),
    Scenario("broker emptied three times", broker_faults.empty_broker),
    Scenario("messages doubled for half a minute", broker_faults.double_messages),
    Scenario("unreadable messages in every queue", broker_faults.send_unreadable_messages),
    Scenario("database killed three times under load", database_faults.restart_database, SERVERS),
    Scenario("store answers 500 for a minute", store_faults.failing_store(Fault.ERROR), S3),
    Scenario("store refuses connections for a minute", store_faults.failing_store(Fault.REFUSING), S3),
    Scenario("store answers nothing for a minute", store_faults.failing_store(Fault.SILENT), S3),
    Scenario("store full for a minute", store_faults.failing_store(Fault.FULL), S3),
    Scenario("store slow for a minute", store_faults.failing_store(Fault.SLOW), S3),
    Scenario("store's folder away for a minute", store_faults.move_folder_away, EMBEDDED),
    Scenario("a file lost from the store", store_faults.remove_file, (Kind.EMBEDDED, Kind.REDIS), failed=1),
    Scenario("disk full for half a minute", store_faults.fill_disk, EMBEDDED, small_disk=True),
    Scenario(
        "clocks of the workers 10 minutes fast and slow",
        clock_faults.wrong_clocks,
        SERVERS,
        needs_faketime=True,
    ),
    Scenario(
        "clock of the site jumps by 10 minutes, four times", clock_faults.jumping_clock, needs_faketime=True
    ),
    Scenario("chaos: a worker or its child killed every 2 to 8 s", worker_faults.chaos),
]

# Single messages, which need no site with all its processes.
SHOWN_BY_TESTS = {
    "the same report five times": "tests/docvqa_site/evaluation/intake/test_intake.py",
    "reports out of order": "tests/docvqa_site/evaluation/intake/test_intake.py",
    "a report after its attempt was superseded": "tests/docvqa_site/evaluation/intake/test_intake.py",
    "a forged report": "tests/docvqa_site/evaluation/intake/test_step_secrets.py",
}
