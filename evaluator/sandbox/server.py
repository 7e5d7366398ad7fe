"""The process that sandboxed processes are forked from: `python -m evaluator.sandbox.server <file descriptor>`.

It starts with an empty environment and loads the modules that are asked for once, so that a process starts in
milliseconds and has never shared memory with whoever holds secrets. It runs one at a time, and ends what that leaves
behind before the next one. Where the kernel allows it, it is the first process of a process namespace.

On the socket it sends its process id. Then it receives requests with two file descriptors, for messages and for
output, sends an empty line when a process begins, and its exit status when it has ended and nothing that it started is
left.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import psutil

from evaluator.sandbox.confinement import (
    adopt_orphans,
    confine,
    die_with_parent,
    enter_process_namespace,
    have_own_proc,
)
from evaluator.sandbox.limits import Limits

MAX_REQUEST_BYTES = 1024**2
PROC = "/proc"


class Request(TypedDict):
    """What to run: `function` of `module` on `inputs`, both JSON, in `folder`, where it may write."""

    module: str
    function: str
    inputs: Any
    preload: list[str]
    folder: str
    readable: list[str]
    listable: list[str]
    proc: list[str]
    writable: list[str]
    devices: list[str]
    limits: dict[str, Any]


class Messages:
    """The sandboxed process's way to whoever waits for it: one JSON document a line."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def send(self, kind: str, content: object) -> None:
        """Send `content`, which is one of `protection`, `message`, `result` and `error`."""
        self._file.write(json.dumps({kind: content}) + "\n")
        self._file.flush()


def start(connection: socket.socket) -> None:
    """Serve in a process namespace of its own, or in this process where the kernel allows none."""
    if not enter_process_namespace():
        adopt_orphans()
        connection.sendall(f"{os.getpid()}\n".encode())
        serve(connection, own_processes=False)
        return
    server = os.fork()
    if server == 0:
        # In its namespace it has no parent.
        die_with_parent(0)
        serve(connection, own_processes=have_own_proc())
        os._exit(0)
    connection.sendall(f"{server}\n".encode())
    connection.close()
    os.waitpid(server, 0)


def serve(connection: socket.socket, *, own_processes: bool) -> None:
    """Run what is requested, one after the other, until the other side closes the connection.

    Args:
        own_processes: Whether this is the first process of its namespace, with a `/proc` of that namespace.
    """
    while received := _receive(connection):
        request, descriptors = received
        importlib.import_module(request["module"])
        for module in request["preload"]:
            # The function finds out itself, where it can report it.
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        # A garbage collection in the process would write to all that is loaded, and so copy memory that both share.
        gc.freeze()
        server, process = os.getpid(), os.fork()
        if process == 0:
            connection.close()
            _run(request, *descriptors, server=server, own_processes=own_processes)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(b"\n")
        status = _status(process)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _status(process: int) -> int:
    """Return the exit status of a process, once nothing is left of what it started."""
    _, status = os.waitpid(process, 0)
    while True:
        # The first process of a namespace ends all others at once.
        for orphan in [-1] if os.getpid() == 1 else [child.pid for child in psutil.Process().children()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(orphan, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return status


def _receive(connection: socket.socket) -> tuple[Request, list[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 2)
    if not data:
        return None
    while not data.endswith(b"\n"):
        data += connection.recv(MAX_REQUEST_BYTES)
    request: Request = json.loads(data)
    return request, descriptors


def _run(request: Request, messages_to: int, output: int, *, server: int, own_processes: bool) -> None:
    """Be the sandboxed process, to its end."""
    status = 1
    try:
        os.setsid()
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        os.chdir(request["folder"])
        os.environ.update(HOME=request["folder"], TMPDIR=request["folder"], LOGNAME="sandbox")
        tempfile.tempdir = request["folder"]
        messages = Messages(messages_to)
        limits = Limits(**request["limits"])
        proc = [PROC] if own_processes else request["proc"]
        protection = confine(
            readable=map(Path, [*request["readable"], *proc]),
            listable=map(Path, request["listable"]),
            writable=map(Path, [*request["writable"], request["folder"]]),
            devices=map(Path, request["devices"]),
            processes=bool(limits.processes),
            server=server,
            own_processes=own_processes,
        )
        limits.apply()
        messages.send("protection", vars(protection))
        status = _call(request, messages)
    except BaseException:  # noqa: BLE001 - the process ends here, and this is all that anyone learns
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _call(request: Request, messages: Messages) -> int:
    function: Callable[[Any, Callable[[object], None]], object] = getattr(
        sys.modules[request["module"]], request["function"]
    )
    try:
        result = function(request["inputs"], lambda message: messages.send("message", message))
        messages.send("result", result)
    except MemoryError:
        messages.send("error", {"memory": True, "trace": ""})
        return 1
    except Exception:  # noqa: BLE001 - whatever it is, the other side decides what it means
        messages.send("error", {"memory": False, "trace": traceback.format_exc()})
        return 1
    return 0


def nothing(_: Any, __: Callable[[object], None]) -> None:
    """Do nothing, in a sandbox: to see what the kernel enforces."""


if __name__ == "__main__":
    die_with_parent(int(sys.argv[2]))
    start(socket.socket(fileno=int(sys.argv[1])))
