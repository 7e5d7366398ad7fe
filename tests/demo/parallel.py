"""Commands that run side by side, and end together."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Protocol

from django.utils.text import slugify

LAST_WORDS = 4_000  # characters of a failed command's output that its error shows


class CommandError(Exception):
    """A command failed; the message has the end of what it printed."""


@dataclass(frozen=True)
class Command:
    arguments: Sequence[str]
    environment: Mapping[str, str]


class Process(Protocol):
    """A command that runs."""

    def wait(self) -> int:
        """Return its exit status, once it has ended."""

    def terminate(self) -> None:
        """Ask it to end."""


# Starts a command in a folder; what it prints goes to the file.
Start = Callable[[Command, Path, Path], Process]


def start_program(command: Command, folder: Path, log: Path) -> Process:
    """Start a command as a program of its own."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command.arguments, env=command.environment, cwd=folder, stdout=output, stderr=output
        )


class SideBySide:
    """Runs commands, some at once. What they print goes to `<logs>/<name>.log`, the name as a slug.

    Args:
        on_end: Called with a command's name and the seconds that it took.
        start: How a command is started.
    """

    def __init__(
        self,
        *,
        at_once: int,
        logs: Path,
        cwd: Path,
        on_end: Callable[[str, float], None],
        start: Start = start_program,
    ) -> None:
        self._at_once = at_once
        self._logs = logs
        self._cwd = cwd
        self._on_end = on_end
        self._start = start
        self._lock = Lock()
        self._running: set[Process] = set()
        self._ended = False

    def run(self, commands: Mapping[str, Command]) -> None:
        """Run all of `commands`, started in their order.

        Raises:
            CommandError: One failed. The others have been ended, as they are by an interruption.
        """
        with ThreadPoolExecutor(self._at_once) as pool:
            try:
                futures = [pool.submit(self._run_one, name, command) for name, command in commands.items()]
                for future in as_completed(futures):
                    self._on_end(*future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._end_all()
                raise

    def _run_one(self, name: str, command: Command) -> tuple[str, float]:
        begun = time.monotonic()
        log = self._logs / f"{slugify(name)}.log"
        with self._lock:
            if self._ended:
                raise CommandError(f"{name} was not started.")
            process = self._start(command, self._cwd, log)
            self._running.add(process)
        code = process.wait()
        with self._lock:
            self._running.discard(process)
        if code:
            raise CommandError(f"{name} ended with code {code}:\n{log.read_text()[-LAST_WORDS:]}")
        return name, time.monotonic() - begun

    def _end_all(self) -> None:
        with self._lock:
            self._ended = True
            for process in self._running:
                process.terminate()
