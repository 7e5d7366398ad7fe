"""A federation of real processes on the loopback interface: server, SuperLink, nodes and SuperNodes."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from starter_kit.commands.main import main
from starter_kit.engines.flower.child_process import entry_point
from tests.services.forked import Forked

PATIENCE_S = 600  # far more than a busy machine takes: a process that ends early ends the wait


class Party(Forked):
    """The server or a node; all that it prints goes to `log`."""

    def __init__(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
    ) -> None:
        super().__init__(main, arguments, environment=environment, folder=folder, stdout=log, stderr=log)
        self._log = log

    def ended(self) -> tuple[int, str]:
        """Wait for its end; return the exit status and what it printed."""
        status = self.wait(PATIENCE_S)
        return status, self._log.read_text()


@dataclass
class Parties:
    """The processes of one federation, in a folder of their own; `logs` is another one."""

    folder: Path
    logs: Path
    data: Path
    base: Path
    started: list["Party"] = field(default_factory=list)
    family: set[psutil.Process] = field(default_factory=set)

    def start(self, *arguments: str) -> "Party":
        environment = {**os.environ, "HOME": str(self.folder / "home"), "OMP_NUM_THREADS": "1"}
        party = Party(
            ["pfl", "federate", *arguments, "--data", str(self.data), "--base", str(self.base)],
            environment={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            folder=self.folder,
            log=self.logs / f"{len(self.started)}.log",
        )
        self.started.append(party)
        return party

    def look(self) -> list[psutil.Process]:
        """Note and return all processes of the federation that are running."""
        for process in self.started:
            if process.poll() is None:
                # It may end in this moment.
                with suppress(psutil.NoSuchProcess):
                    self.family |= set(psutil.Process(process.pid).children(recursive=True))
        return [process for process in self.family if process.is_running()]

    def await_file(self, path: Path) -> None:
        """Wait for a file that the first process, the server, or one of its nodes writes."""
        deadline = time.monotonic() + PATIENCE_S
        while not path.exists():
            ended = self.started[0].poll() is not None
            assert not ended or path.exists(), self.started[0].ended()[1]
            assert time.monotonic() < deadline
            self.look()
            time.sleep(0.2)

    def supernode_of(self, node: Party) -> int:
        (found,) = [
            child.pid
            for child in psutil.Process(node.pid).children()
            if entry_point("flower-supernode") in child.cmdline()
        ]
        return found

    def end(self) -> None:
        """End what still runs, by pid; the processes of Flower end with those that started them."""
        self.look()
        for process in self.started:
            if process.poll() is None:
                process.terminate()
        for process in self.started:
            try:
                process.wait(30)
            except TimeoutError:
                process.kill()
                process.wait()
        _, alive = psutil.wait_procs(self.family, timeout=20)
        for leftover in alive:
            leftover.kill()
        assert alive == []


def changes(given: Sequence[str]) -> list[str]:
    """Return the options that make these changes to a config."""
    return [word for change in given for word in ("--set", change)]
