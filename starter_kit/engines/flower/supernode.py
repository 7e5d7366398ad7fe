"""The node of `pfl federate`: some clients on this machine, and a SuperNode that connects them to the server.

Flower would start a process for every message, and run in it whatever code the server has sent. Here one process, which
has read its clients' pages once, answers all messages, with the kit that its operator installed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from filelock import FileLock, Timeout

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.flower import client_app
from starter_kit.engines.flower.address import Address, free_port
from starter_kit.engines.flower.child_process import LOG, entry_point, reason, running
from starter_kit.engines.flower.flower_internals import (
    MessageLostError,
    TaskInterface,
    UnreachableError,
    answering,
)
from starter_kit.engines.flower.node_registry import POLL_S, Log

LEAVING_S = 2.0  # in which the SuperNode sends the last reply


@dataclass(frozen=True)
class NodeOptions:
    """The server's address, and how server and node authenticate each other.

    Attributes:
        authority: PEM file of the authority that signed the server's certificate. None stands for the authorities of
            the system, and at a loopback address for a server without encryption.
        key: The node's private key, as OpenSSH writes it, where the server admits known nodes only.
        wait_s: How long the connection to a server that can't be reached is tried again.
    """

    server: Address
    authority: Path | None = None
    key: Path | None = None
    wait_s: float = 600.0

    @property
    def for_supernode(self) -> list[str]:
        """The options of `flower-supernode`."""
        options = ["--superlink", str(self.server), "--max-wait-time", str(self.wait_s)]
        if self.authority:
            options += ["--root-certificates", str(self.authority)]
        elif self.server.is_loopback:
            options += ["--insecure"]
        return [*options, "--auth-supernode-private-key", str(self.key)] if self.key else options


def serve(host: client_app.ClientHost, options: NodeOptions, home: Path, log: Log) -> None:
    """Answer for the clients of `host` until the run is complete, or the server can't be reached for `options.wait_s`.

    Args:
        home: A folder for the SuperNode's files, which is made here.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The SuperNode doesn't start, or the server doesn't admit it.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    client_app.answer_for(host)
    clients = ", ".join(map(str, host.participant.clients))
    log(f"client {clients}: waiting for the server at {options.server}")
    while options.server.accepts_connections(options.wait_s):
        with _supernode(options, home) as (process, interface):
            if not _answer_all(process, interface, log):
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    message="The node can't take part.",
                    where=f"the node of client {clients}",
                    expected=f"a node that the server at {options.server} admits",
                    found=reason(home),
                    next_step=f"See {home / LOG}, and compare certificates and keys with the server's.",
                )
        if client_app.run_completed.is_set():
            log(f"client {clients}: the run is complete")
            return
        log(f"client {clients}: the server at {options.server} is gone")


@contextmanager
def only_process(home: Path) -> Iterator[None]:
    """Inside the block, no other process runs a node in this folder.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) One does.
    """
    home.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(home.with_name(f"{home.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER,
            message="Another process runs this node.",
            where=str(home),
            expected="a folder that no other process uses",
            found="a node that is running",
            next_step="Wait for it, or name another folder with --home for other clients.",
        ) from error
    try:
        yield
    finally:
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


@contextmanager
def _supernode(options: NodeOptions, home: Path) -> Iterator[tuple["Popen[bytes]", TaskInterface]]:
    """Start a SuperNode that gives its tasks to this process only."""
    secret = home / "secret"
    interface = TaskInterface.with_new_secret(Address("127.0.0.1", free_port()), secret)
    arguments = [*options.for_supernode, "--isolation", "process"]
    arguments += ["--superexec-auth-secret-file", str(secret)]
    arguments += ["--host", interface.address.host, "--port", str(interface.address.port)]
    with running(entry_point("flower-supernode"), arguments, home) as process:
        yield process, interface


def _answer_all(process: "Popen[bytes]", interface: TaskInterface, log: Log) -> int:
    """Answer messages, one after another, while the SuperNode and the run last, and return how many there were.

    It also ends where a message that was claimed is lost, as the SuperNode would wait for the reply for good.
    """
    answered = 0
    with answering(interface, client_app.app) as answer_next:
        while process.poll() is None and not client_app.run_completed.is_set():
            try:
                if answer_next():
                    answered += 1
                    continue
            except UnreachableError:
                # The SuperNode is starting or ending.
                pass
            except MessageLostError as error:
                log(f"a message is lost: {error}")
                break
            time.sleep(POLL_S)
    if client_app.run_completed.is_set():
        time.sleep(LEAVING_S)
    return answered
