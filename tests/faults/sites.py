"""A site under test: its processes, on back ends that can fail, behind a proxy that sees every request."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.demo.stack import Stack
from tests.evaluator.tiny_track import write_test_set
from tests.faults.back_ends import BackEnds
from tests.faults.proxy import FaultyProxy

WORKERS = ("worker", "worker-2")
# The product's own settings, shortened: what takes minutes in production takes seconds here.
SHORT = {
    "PFL_EVALUATION_SILENCE_SECONDS": "12",
    "PFL_WATCHDOG_SECONDS": "2",
    "PFL_EVALUATION_BACKOFF_SECONDS": "2 4 8 8 8 8",
    "PFL_EVALUATION_PROBE_SECONDS": "3",
}
OVERRIDES = (
    "*.reference=small",
    "*.test_set=small",
    '*.phases=[{"submissions_per_day": 30000}]',
    "track-1.anls_threshold=0",
)


class Site(Stack):
    """A site with two workers, on `back_ends`.

    Attributes:
        proxy: What participants and workers reach the site through.
    """

    def __init__(self, back_ends: BackEnds, base: Path, variables: Mapping[str, str] | None = None) -> None:
        super().__init__(back_ends.home, variables={**SHORT, **back_ends.variables, **(variables or {})})
        self.back_ends = back_ends
        self.proxy = FaultyProxy(self.port)
        self.environment["PFL_SITE_URL"] = self.proxy.url
        shutil.copytree(base, self.evaluator_home / "references" / "small")
        write_test_set(self.evaluator_home / "test_sets" / "small")

    def start(self, *commands: Sequence[str], **variables: str) -> list[str]:
        """Start every process, on tracks that take any number of submissions."""
        self.proxy.__enter__()
        tracks = [
            "load_tracks",
            "--publish",
            *(word for override in OVERRIDES for word in ("--set", override)),
        ]
        _, *printed = super().start(tracks, *commands, **variables)
        for name in WORKERS[1:]:
            self.start_process(name)
        return printed

    def stop(self) -> None:
        """End all processes and the proxy."""
        super().stop()
        self.proxy.__exit__()

    def start_process(self, name: str, variables: Mapping[str, str] | None = None) -> None:
        """Start one process, with further variables of its environment."""
        usual = self.environment
        self.environment = {**usual, **(variables or {})}
        try:
            super().start_process(name)
        finally:
            self.environment = usual

    def kill_with_children(self, name: str) -> None:
        """End a process and all that it started at once, as a power cut would."""
        process = self.processes.pop(name)
        # Each is the leader of a session of its own.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._logs.pop(name).close()

    def step_processes(self, name: str) -> list[int]:
        """Return the processes in which a worker runs its step: children of the child that it always has."""
        return [step for child in self.children(name) for step in _children(child)]

    def children(self, name: str) -> list[int]:
        """Return the processes that this one has started and that still run."""
        return _children(self.processes[name].pid) if name in self.processes else []

    def restart_ended(self) -> None:
        """Start again what has ended by itself, as the supervisor of a real site does."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self.processes.pop(name)
                self._logs.pop(name).close()
                self.start_process(name)

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Let a process be away within the block."""
        self.kill_with_children(name)
        try:
            yield
        finally:
            self.start_process(name)


def _children(pid: int) -> list[int]:
    # Faster than looking through all processes: a step may take a tenth of a second only.
    with suppress(FileNotFoundError, ProcessLookupError):
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(child) for children in lists for child in children.split()]
    return []
