"""A node: some clients of a federation on this machine, and the SuperNode that connects them to the server.

Flower would start a process for every message, and run in it whatever code the server has sent. Here one process, which
has read its clients' pages once, answers all messages, with the kit that its operator installed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

import httpx
from flwr.common.constant import SubStatus
from flwr.supercore.constant import TaskType
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.flower import client_app
from starter_kit.engines.flower.address import Address, free_port
from starter_kit.engines.flower.child import LOG, last_line, started
from starter_kit.engines.flower.roll import POLL_S, Tell
from starter_kit.engines.flower.tasks import Tasks, claimed, new_secret

CLIENT = "flwr-clientapp"
LEAVING_S = 2.0  # in which the SuperNode sends the last answer


@dataclass(frozen=True)
class Calling:
    """How the server is reached.

    Attributes:
        authority: PEM file of who signed the server's certificate; None for the system's, or at a loopback address for
            a server without encryption.
        key: The node's private key, as OpenSSH writes it, where the server must know its nodes.
        wait_s: How long a server that can't be reached is tried again.
    """

    server: Address
    authority: Path | None = None
    key: Path | None = None
    wait_s: float = 600.0

    @property
    def options(self) -> list[str]:
        """For `flower-supernode`."""
        options = ["--superlink", str(self.server), "--max-wait-time", str(self.wait_s)]
        if self.authority:
            options += ["--root-certificates", str(self.authority)]
        elif self.server.is_loopback:
            options += ["--insecure"]
        return [*options, "--auth-supernode-private-key", str(self.key)] if self.key else options


def serve(host: client_app.Host, calling: Calling, home: Path, tell: Tell) -> None:
    """Answer for the clients of `host` until the run is complete, or the server can't be reached for `calling.wait_s`.

    Args:
        home: A folder for the SuperNode's files; made here.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The SuperNode doesn't start.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    client_app.host(host)
    clients = ", ".join(map(str, host.participant.clients))
    tell(f"client {clients}: waiting for the server at {calling.server}")
    while calling.server.answers(calling.wait_s):
        with _supernode(calling, home) as (process, tasks):
            if not _answer_all(process, tasks, tell):
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    where=f"the node of client {clients}",
                    expected=f"to be let in by the server at {calling.server}",
                    found=last_line(home),
                    next_step=f"See {home / LOG}, and compare certificates and keys with the server's.",
                )
        if client_app.dismissed.is_set():
            tell(f"client {clients}: the run is complete")
            return
        tell(f"client {clients}: the server at {calling.server} is gone")


@contextmanager
def _supernode(calling: Calling, home: Path) -> Iterator[tuple["Popen[bytes]", Tasks]]:
    """A SuperNode, and access to its tasks."""
    secret = home / "secret"
    tasks = Tasks(Address("127.0.0.1", free_port()), new_secret(secret))
    options = ["--isolation", "process", "--superexec-auth-secret-file", str(secret)]
    options += ["--host", tasks.address.host, "--port", str(tasks.address.port)]
    with started("flwr.supernode.cli:flower_supernode", [*calling.options, *options], home) as process:
        yield process, tasks


def _answer_all(process: "Popen[bytes]", tasks: Tasks, tell: Tell) -> int:
    """Answer messages, one after another, while the SuperNode runs and the run goes on; how many.

    Ends as well where a message was taken over and is lost, for the SuperNode would wait for its answer for good.
    """
    answered = 0
    with tasks.claims() as claims:
        while process.poll() is None and not client_app.dismissed.is_set():
            try:
                task = claimed(claims, TaskType.CLIENT_APP)
            except httpx.TransportError:  # not up yet, or ending
                task = None
            if task is None:
                time.sleep(POLL_S)
                continue
            try:
                _answer(tasks, task[1])
            except (httpx.HTTPError, ObjectPullError) as error:
                tell(f"a message is lost: {error}")
                break
            answered += 1
    if client_app.dismissed.is_set():
        time.sleep(LEAVING_S)
    return answered


def _answer(tasks: Tasks, token: str) -> None:
    with tasks.held(token, CLIENT) as task:
        message, context, _, _ = pull_task_input(task)
        reply = client_app.app(message, context)
        push_message(task, reply, context)
        push_task_output(task, context, SubStatus.COMPLETED, "")
