"""The `pfl` command as a shell sees it: a process of its own, its output, its exit status, no tracebacks.

The process is forked from a server that has already imported the libraries, which takes longer than most commands do.
`PFL` starts one from nothing, for tests that need to watch or kill it.
"""

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from starter_kit.commands.main import main

PFL = [sys.executable, "-c", "from starter_kit.commands.main import main; main()"]
QUICK = ["--set", "rounds=1", "--set", "local.max_steps=1", "--set", "max_input_tokens=32"]

# A hung command ends its test; a slow machine doesn't.
TIMEOUT_S = 600

_server = multiprocessing.get_context("forkserver")
PRELOADED = [
    "evaluator.docvqa.vt5",
    "evaluator.pipeline",
    "evaluator.records.epsilon",
    "evaluator.scoring.predictions",
    "starter_kit.commands.base",
    "starter_kit.commands.check",
    "starter_kit.commands.compare",
    "starter_kit.commands.data",
    "starter_kit.commands.evaluate",
    "starter_kit.commands.report",
    "starter_kit.commands.submit",
    "starter_kit.commands.train",
    "starter_kit.data.forms.generation",
    "starter_kit.evaluation.scores",
    "starter_kit.methods.fedavg",
    "starter_kit.methods.fl_provider_dp",
    "starter_kit.reporting.report",
    "starter_kit.runs.setup",
    "starter_kit.runs.training",
    "tests.starter_kit.commands.pfl",
]
# The server skips what it can't find.
assert all(find_spec(module) for module in PRELOADED)
_server.set_forkserver_preload(PRELOADED)


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


def run_pfl(
    *arguments: object, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Ended:
    """Run `pfl` with this environment (the test's own where there is none) in this working folder."""
    with tempfile.TemporaryDirectory() as printed:
        process = _server.Process(
            target=_run,
            args=(
                [str(argument) for argument in arguments],
                dict(os.environ if environment is None else environment),
                folder or Path.cwd(),
                Path(printed),
            ),
        )
        process.start()
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"`pfl {' '.join(map(str, arguments))}` still runs after {TIMEOUT_S} s")
        stdout, stderr = ((Path(printed) / name).read_text() for name in ("stdout", "stderr"))
    assert "Traceback" not in stderr, stderr
    return Ended(process.exitcode, stdout, stderr)


def _run(arguments: list[str], environment: dict[str, str], folder: Path, printed: Path) -> None:
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        file = os.open(printed / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["pfl", *arguments]
    main()
