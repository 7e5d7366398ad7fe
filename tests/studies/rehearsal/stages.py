"""The stages of a rehearsal, each in a process of its own, whose peak memory and time are measured."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from starter_kit.runs.resuming import ResumeFolder

PROGRAM = [sys.executable, "-c", "from starter_kit.commands.main import main; main()"]
# Where a kill is to hit a round: this long after it began.
INTO_THE_ROUND_S = 1.0


class Measured(BaseModel):
    """A row of the table.

    Attributes:
        cpu_s: The CPU time of the stage, which other work on the machine hardly changes.
        planned_bytes: What `pfl plan` estimates for that; None where it isn't asked.
        planned_parts: What it adds up, by the names of `starter_kit.runs.forecast.Memory`.
        step_s: The time of an optimizer step; None where none is measured.
    """

    model_config = ConfigDict(frozen=True)

    stage: str
    seconds: float
    cpu_s: float
    peak_bytes: int
    planned_bytes: int | None = None
    planned_parts: dict[str, int] | None = None
    step_s: float | None = None


class RehearsalError(RuntimeError):
    """A stage failed."""


@dataclass(frozen=True)
class Stages:
    """The inputs of all stages.

    Attributes:
        changes: Settings that differ from those of the full configs, as for `--set`.
    """

    data: Path
    base: Path
    out: Path
    changes: Sequence[str]

    def plan(self, config: str) -> Measured:
        """Run one training step of a config, as `pfl plan` does."""
        used, printed = _run([*self._command("plan", config), "--json"])
        values = json.loads(printed)
        return Measured(
            stage=f"a step of `{config}`",
            **vars(used),
            planned_bytes=values["step_bytes"],
            planned_parts=values["forecast"]["memory"],
            step_s=values["forecast"]["timing"]["step_s"],
        )

    def interrupted_run(self, config: str) -> list[Measured]:
        """Train two rounds, of which the second one is killed, and resume them."""
        run = self.out / "run"
        command = [*self._command("train", config), "--out", str(run)]
        killed = killed_in_the_second_round(command, run.with_name("run.unfinished"))
        resumed, _ = _run([*command, "--resume"])
        return [
            Measured(stage=f"a round of `{config}`, killed in the next", **vars(killed)),
            Measured(stage="its second round, after resuming", **vars(resumed)),
        ]

    def _command(self, verb: str, config: str) -> list[str]:
        changes = [word for change in self.changes for word in ("--set", change)]
        return [*PROGRAM, verb, config, "--data", str(self.data), "--base", str(self.base), *changes]


@dataclass(frozen=True)
class Used:
    """What a process took: seconds, CPU seconds, and bytes of memory at its peak."""

    seconds: float
    cpu_s: float
    peak_bytes: int

    @classmethod
    def by(cls, process: "subprocess.Popen[Any]", began: float) -> "Used":
        """Wait for a process that was started at `began`, and return what it took."""
        # Not `process.wait`, which doesn't say how much memory the process took.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return cls(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def killed_in_the_second_round(command: Sequence[str], unfinished: Path) -> Used:
    """Run a training until its second round has begun, kill it then, and return what it took.

    Args:
        unfinished: The folder of the run.

    Raises:
        RehearsalError: It ended before.
    """
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    # Not what is recorded of the first round: writing that takes seconds.
    while process.poll() is None and ResumeFolder(unfinished).begun < 2:
        time.sleep(0.05)
    if process.returncode is not None:
        raise RehearsalError(f"the first round ended with status {process.returncode}")
    time.sleep(INTO_THE_ROUND_S)
    os.kill(process.pid, signal.SIGKILL)
    return Used.by(process, began)


def _run(command: Sequence[str]) -> tuple[Used, str]:
    """Run a command to its end, and return what it took and what it printed."""
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(command, stdout=printed)
        used = Used.by(process, began)
        printed.seek(0)
        content = printed.read()
    if process.returncode:
        raise RehearsalError(f"{' '.join(command[3:])} ended with status {process.returncode}")
    return used, content
