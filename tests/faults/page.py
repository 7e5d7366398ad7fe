"""docs/reliability.md: what was lost and what ran twice in each scenario. Nothing in it is set by hand."""

import os
import platform
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from tests.faults.back_ends import Kind
from tests.faults.counts import Counts
from tests.faults.scenarios import SCENARIOS, SHOWN_BY_TESTS

HEAD = """# Reliability

Written by `make faults`, which makes parts of a real site fail and counts what happens to the submissions; nothing is
set by hand. All traffic goes through the HTTP API, processes are killed with `kill -9`, and the counts come from the
database. A participant who gets no answer tries again, as `pfl submit` and people do. Two workers, one web server,
intake and clock run on one of three kinds of back ends:

- *embedded*: SQLite, a folder as the store, and the broker in a file.
- *Redis*: PostgreSQL, Redis as the broker, and an S3 server.
- *RabbitMQ*: PostgreSQL, RabbitMQ as the broker, and an S3 server.

The columns:

- *faults*: how often something was killed, stopped or changed.
- *failed*: runs that the site gave up on, with the quota slot returned.
- *lost*: submissions that the site had confirmed but never finished evaluating.
- *twice*: runs that were scored more than once, and submissions that the site stored twice.
- *attempts*: evaluations that were started. *Lost* attempts ended with their worker; *failed* attempts met a platform
  fault, after which the run is tried again.
- *emails*: the largest number of emails that a team got about the end of one run.
"""
COLUMNS = (
    "what fails",
    "on",
    "faults",
    "submitted",
    "scored",
    "failed",
    "lost",
    "twice",
    "attempts",
    "of them lost, failed",
    "emails",
    "seconds",
    "when",
)


class Result(BaseModel):
    """The counts of one scenario on one kind of back ends; `failure` is what the test found wrong, if anything."""

    scenario: str
    kind: Kind
    counts: Counts | None
    faults: int
    seconds: float
    day: date
    machine: str
    failure: str = ""


RESULTS = TypeAdapter(list[Result])


def read_results(file: Path) -> list[Result]:
    """Return the results in the file; none where there is no file."""
    return RESULTS.validate_json(file.read_bytes()) if file.exists() else []


def merged(old: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """Return the newest result of each scenario that still exists."""
    newest = {(result.scenario, result.kind): result for result in [*old, *new]}
    wanted = [(scenario.name, kind) for scenario in SCENARIOS for kind in scenario.kinds]
    return [newest[key] for key in wanted if key in newest]


def page(results: Iterable[Result]) -> str:
    """Return the page in Markdown."""
    by_key = {(result.scenario, result.kind): result for result in results}
    rows = [
        _row(scenario.name, kind, by_key.get((scenario.name, kind)))
        for scenario in SCENARIOS
        for kind in scenario.kinds
    ]
    table = [_cells(COLUMNS), _cells("---" for _ in COLUMNS), *rows]
    tests = [f"- {name}: [{test}](../{test})" for name, test in SHOWN_BY_TESTS.items()]
    machines = [f"- {machine}" for machine in sorted({result.machine for result in by_key.values()})]
    return "\n".join(
        [
            HEAD,
            *table,
            "",
            "Separate tests cover single messages:",
            "",
            *tests,
            "",
            "Counted on:",
            "",
            *machines,
            "",
        ]
    )


def machine() -> str:
    """Return what the counts were taken on."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    processor = names[0] if names else platform.machine()
    return f"{processor}, {len(os.sched_getaffinity(0))} cores, {memory_gb:.0f} GB, Python {platform.python_version()}"


def _row(scenario: str, kind: Kind, result: Result | None) -> str:
    if result is None:
        return _cells([scenario, kind, "not run", *[""] * (len(COLUMNS) - 3)])
    counts: list[object] = [""] * 8
    if result.counts is not None:
        counts = [
            result.counts.submitted,
            result.counts.scored,
            result.counts.failed,
            result.counts.lost,
            result.counts.twice,
            result.counts.attempts,
            f"{result.counts.lost_attempts}, {result.counts.failed_attempts}",
            result.counts.most_mails,
        ]
    wrong = f" **wrong**: {result.failure}" if result.failure else ""
    return _cells([scenario, kind, result.faults, *counts, f"{result.seconds:.0f}", f"{result.day}{wrong}"])


def _cells(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
