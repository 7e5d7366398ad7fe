"""Programs in processes of their own, forked from one that has imported their libraries.

To import them takes longer than most programs of the tests run. The process to fork from starts with the first program
of a test run; what it has imported must not read the environment, which is each program's own.
"""

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

PRELOADED = [
    "billiard.pool",
    "celery.__main__",
    "celery.app.amqp",
    "celery.app.events",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.solo",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.strategy",
    "evaluator.messages.jobs",
    "evaluator.docvqa.vt5",
    "evaluator.pipeline",
    "evaluator.records.epsilon",
    "evaluator.scoring.predictions",
    "evaluator.worker.broker",
    "kombu.transport.pyamqp",
    "kombu.transport.redis",
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
    "tests.services.forked",
    "tests.services.forked_memory",
]
# The server skips what it can't find.
assert all(find_spec(module) for module in PRELOADED)
server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(PRELOADED)


class Forked:
    """A running program, with the methods of `subprocess.Popen` that the tests use.

    Args:
        program: The function that a script of the program calls.
        arguments: What `sys.argv` is, with the program's name.
        environment: The test's own where there is none.
        stdout, stderr: Files that what it prints is appended to; they may be one.
    """

    def __init__(
        self,
        program: Callable[[], object],
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        stdout: Path,
        stderr: Path,
    ) -> None:
        environment = dict(os.environ if environment is None else environment)
        self._process = server.Process(
            target=_run,
            args=(program, list(arguments), environment, folder or Path.cwd(), stdout, stderr),
        )
        self._process.start()
        self.pid = self._process.pid or 0

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status, negative for a signal; `TimeoutError` after so many seconds."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} still runs after {timeout} s")
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.is_alive():
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _run(
    program: Callable[[], object],
    arguments: list[str],
    environment: dict[str, str],
    folder: Path,
    stdout: Path,
    stderr: Path,
) -> None:
    for path, descriptor in ((stdout, 1), (stderr, 2)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = arguments
    program()
