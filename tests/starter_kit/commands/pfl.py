"""The `pfl` command as a shell sees it: a process of its own, its output, its exit status, no tracebacks.

`PFL` starts one from nothing, for tests that need to watch or kill it.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starter_kit.commands.main import main
from tests.services.forked import Forked

PFL = [sys.executable, "-c", "from starter_kit.commands.main import main; main()"]
QUICK = ["--set", "rounds=1", "--set", "local.max_steps=1", "--set", "max_input_tokens=32"]

# A hung command ends its test; a slow machine doesn't.
TIMEOUT_S = 600


@dataclass(frozen=True)
class Ended:
    """A command that has ended: its exit status, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def pfl(*arguments: object, status: int = 0) -> Ended:
    """Run `pfl` where the test runs; it must end with `status`."""
    ended = run_pfl(*arguments)
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended


def passing(*arguments: object) -> str:
    """What `pfl` prints to its output when it succeeds."""
    return pfl(*arguments).stdout


def failing(*arguments: object, status: int = 2) -> str:
    """All that `pfl` prints when it fails with `status`."""
    ended = pfl(*arguments, status=status)
    return ended.stdout + ended.stderr


def run_pfl(
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    program: Callable[[], object] = main,
) -> Ended:
    """Run `pfl` with this environment (the test's own where there is none) in this working folder.

    Another `program` is called in its place, with its arguments.
    """
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as printed:
        stdout, stderr = Path(printed, "stdout"), Path(printed, "stderr")
        process = Forked(
            program, ["pfl", *words], environment=environment, folder=folder, stdout=stdout, stderr=stderr
        )
        try:
            status = process.wait(TIMEOUT_S)
        finally:
            process.kill()
        ended = Ended(status, stdout.read_text(), stderr.read_text())
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended
