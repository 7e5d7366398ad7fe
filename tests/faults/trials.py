"""One trial: a site, its traffic, and what a scenario needs to make them fail."""

import os
import random
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.sites import WORKERS, Site
from tests.faults.traffic import Traffic

BEGINS = re.compile(r"attempt \d+: (\w+) begins")


@dataclass
class Trial:
    """A scenario on one site.

    Attributes:
        trained: The folder of the small training; see tests/e2e/conftest.py.
        seed: Of everything random.
    """

    site: Site
    traffic: Traffic
    trained: Path
    folder: Path
    token: str
    seed: int = 0
    faults: int = 0
    _read: dict[str, int] = field(default_factory=dict)

    def kill(self, name: str) -> None:
        """End a process and its children, and start it again, as a supervisor does."""
        self.site.kill_with_children(name)
        self.faults += 1
        self.site.start_process(name)

    def watch_steps(self) -> None:
        """Let `begun_step` return only what begins from now on."""
        for name in WORKERS:
            self._read[name] = self.site.log_path(name).stat().st_size

    def begun_step(self) -> tuple[str, str] | None:
        """Return a worker that has begun a step since the last look, and the step."""
        for name in WORKERS:
            with self.site.log_path(name).open("rb") as log:
                log.seek(self._read.get(name, 0))
                text = log.read()
                self._read[name] = log.tell()
            if found := BEGINS.findall(text.decode(errors="replace")):
                # What began before the last one is over.
                return name, found[-1]
        return None

    def wait_for_step(self, step: str, timeout_s: float = 300) -> str | None:
        """Return the worker that begins this step next; None if everything is over before that."""
        deadline = time.monotonic() + timeout_s
        looks = 0
        while time.monotonic() < deadline:
            match self.begun_step():
                case (worker, begun) if begun == step:
                    return worker
                case None:
                    looks += 1
                    time.sleep(0.002)
            if looks % 500 == 499 and self.is_over:
                return None
        raise AssertionError(f"no worker began {step} in {timeout_s:.0f} s")

    @property
    def is_over(self) -> bool:
        """Whether everything is submitted and evaluated."""
        return self.traffic.is_submitted and self.site.back_ends.unfinished() == 0

    def kill_step(self, worker: str, timeout_s: float = 2) -> bool:
        """End the process in which a worker runs its step; return whether there was one in time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for process in self.site.step_processes(worker):
                if self._kill_process(process):
                    return True
        return False

    def kill_any_child(self, worker: str, chance: random.Random) -> bool:
        """End one of the processes that a worker has started; return whether there was one."""
        children = [*self.site.children(worker), *self.site.step_processes(worker)]
        return bool(children) and self._kill_process(chance.choice(children))

    def _kill_process(self, pid: int) -> bool:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.faults += 1
            return True
        return False

    @contextmanager
    def idle_workers(self) -> Iterator[None]:
        """Let no worker take a step within the block."""
        for name in WORKERS:
            self.site.kill_with_children(name)
        try:
            yield
        finally:
            for name in WORKERS:
                self.site.start_process(name)
