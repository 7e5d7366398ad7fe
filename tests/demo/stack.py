"""The processes of one site: web server, report intake, clock, mail and evaluation worker.

All of them are the production programs (gunicorn, Celery) with the back ends that the environment names; nothing
named means SQLite, a folder store and a broker file under the site's home.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import requests

from evaluator.messages.jobs import EVALUATOR_QUEUE, INTAKE_QUEUE, SCORING_QUEUE

START_TIMEOUT_S = 90
STOP_TIMEOUT_S = 20

PYTHON = sys.executable
ALL_QUEUES = f"{EVALUATOR_QUEUE},{SCORING_QUEUE}"
PROGRAMS: dict[str, list[str]] = {
    "intake": [
        PYTHON,
        "-m",
        "celery",
        "-A",
        "docvqa_site.celery",
        "worker",
        "-P",
        "solo",
        "-Q",
        INTAKE_QUEUE,
    ],
    "clock": [PYTHON, "-m", "celery", "-A", "docvqa_site.celery", "beat"],
    "mail": [PYTHON, "-m", "django", "deliver_mail"],
    "worker": [PYTHON, "-m", "celery", "-A", "evaluator.worker", "worker", "-P", "solo", "-Q", ALL_QUEUES],
}
# What a worker may know: how to reach the broker and where its own files are. No database, no secret key.
WORKER_VARIABLES = {
    "PFL_BROKER_URL",
    "PFL_EVALUATOR_HOME",
    "PFL_LOG_FORMAT",
    "PFL_LOG_LEVEL",
    "PFL_WORKER_NAME",
    "PFL_STEP_SECONDS",
    "PFL_SCORING_SECONDS",
    "PFL_SCORING_MEMORY_GB",
}


class StackError(Exception):
    """A process of the site did not start, or ended by itself."""


def free_port(preferred: int = 0) -> int:
    """`preferred` if nobody listens there, else any free port of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", preferred))
        except OSError:
            return free_port()
        return int(probe.getsockname()[1])


class Stack:
    """Start with `start()` or as a context manager; every process writes to `<home>/logs/<name>.log`."""

    def __init__(self, home: Path, *, port: int = 0, variables: Mapping[str, str] | None = None) -> None:
        self.home = home.resolve()
        self.port = free_port(port)
        self.url = f"http://127.0.0.1:{self.port}"
        self.evaluator_home = self.home / "evaluator"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PFL_")},
            "PFL_HOME": str(self.home),
            "PFL_SITE_URL": self.url,
            "PFL_BROKER_URL": f"sqlite:///{self.home}/broker.sqlite3",
            "PFL_EVALUATOR_HOME": str(self.evaluator_home),
            "DJANGO_SETTINGS_MODULE": "docvqa_site.settings",
            **(variables or {}),
        }
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._logs: dict[str, IO[bytes]] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def manage(self, *arguments: str, **variables: str) -> str:
        """Run one of the site's management commands and return what it printed."""
        (printed,) = self.manage_all([arguments], **variables)
        return printed

    def manage_all(self, commands: Sequence[Sequence[str]], **variables: str) -> list[str]:
        """Run management commands one after another in one process; return what each printed.

        Raises:
            StackError: One failed; those before it are done, those after it aren't.
        """
        result = subprocess.run(
            [PYTHON, Path(__file__).with_name("management.py")],
            input=json.dumps(commands),
            env={**self.environment, **variables},
            text=True,
            capture_output=True,
            check=False,
        )
        if result.returncode:
            raise StackError(result.stderr.strip()[-4000:])
        printed: list[str] = json.loads(result.stdout)
        return printed

    def start(self, *commands: Sequence[str], **variables: str) -> list[str]:
        """Bring the database up to date, start every process and wait until the site answers.

        Args:
            commands: Management commands that follow the migrations.

        Returns:
            What `commands` printed.
        """
        (self.home / "logs").mkdir(parents=True, exist_ok=True)
        self.evaluator_home.mkdir(parents=True, exist_ok=True)
        _, *printed = self.manage_all([["migrate", "--verbosity", "0"], *commands], **variables)
        for name in ("web", *PROGRAMS):
            self.start_process(name)
        self._wait_until_ready()
        return printed

    def start_process(self, name: str) -> None:
        """Start one process: `web`, `intake`, `clock`, `mail` or `worker`; further workers are `worker-2` and so on."""
        program = name.partition("-")[0]
        web = [
            *(PYTHON, "-m", "gunicorn", "-c", "python:docvqa_site.web_server", "docvqa_site.wsgi"),
            # One process: without a database server, each would have throttles of its own.
            *("--bind", f"127.0.0.1:{self.port}", "--workers", "1", "--threads", "8"),
        ]
        environment = self.environment
        if program == "worker":
            environment = {
                key: value
                for key, value in environment.items()
                if not key.startswith(("PFL_", "DJANGO_")) or key in WORKER_VARIABLES
            }
        log = self._logs[name] = self.log_path(name).open("ab")
        # A session of its own: Ctrl-C in the terminal reaches this program only, which then stops them in order.
        self.processes[name] = subprocess.Popen(
            PROGRAMS.get(program, web),
            env=environment,
            cwd=self.home,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def kill_process(self, name: str) -> None:
        """End one process at once, as a power cut would."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()
        self._logs.pop(name).close()

    def stop_process(self, name: str) -> None:
        """End one process when it has finished what it holds."""
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        process.wait()
        self._logs.pop(name).close()

    def stop(self) -> None:
        """End all processes, each given time to finish what it holds."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in self.processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for log in self._logs.values():
            log.close()
        self.processes.clear()
        self._logs.clear()

    def check(self) -> None:
        """Raise `StackError` if a process has ended by itself."""
        for name, process in self.processes.items():
            if (code := process.poll()) is not None:
                raise StackError(f"The {name} process ended with code {code}:\n{self.log_tail(name)}")

    def log_path(self, name: str) -> Path:
        return self.home / "logs" / f"{name}.log"

    def log_tail(self, name: str, lines: int = 25) -> str:
        return "\n".join(self.log_path(name).read_text(errors="replace").splitlines()[-lines:])

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            self.check()
            try:
                if requests.get(f"{self.url}/readyz", timeout=5).ok:
                    return
            except (requests.ConnectionError, requests.Timeout):
                pass
            time.sleep(0.2)
        raise StackError(f"The site did not answer within {START_TIMEOUT_S} s:\n{self.log_tail('web')}")
