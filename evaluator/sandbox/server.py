"""The process that sandboxed processes are forked from: `python -m evaluator.sandbox.server <file descriptor>`.

It starts with an empty environment and loads the modules that are asked for once, so that a process starts in
milliseconds and has never shared memory with whoever holds secrets. It runs one at a time.

On the socket it receives requests with two file descriptors, for messages and for output, and sends the process's id
and, when that has ended, its exit status.
"""

import contextlib
import gc
import importlib
import json
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from evaluator.sandbox.confinement import confine, die_with_parent
from evaluator.sandbox.limits import Limits

MAX_REQUEST_BYTES = 1024**2


class Request(TypedDict):
    """What to run: `function` of `module` on `inputs`, both JSON, in `folder`, where it may write."""

    module: str
    function: str
    inputs: Any
    preload: list[str]
    folder: str
    readable: list[str]
    writable: list[str]
    limits: dict[str, Any]


class Messages:
    """The sandboxed process's way to whoever waits for it: one JSON document a line."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def send(self, kind: str, content: object) -> None:
        """Send `content`, which is one of `protection`, `message`, `result` and `error`."""
        self._file.write(json.dumps({kind: content}) + "\n")
        self._file.flush()


def serve(connection: socket.socket) -> None:
    """Run what is requested, one after the other, until the other side closes the connection."""
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
            _run(request, *descriptors, server=server)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(f"{process}\n".encode())
        _, status = os.waitpid(process, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _receive(connection: socket.socket) -> tuple[Request, list[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(connection, MAX_REQUEST_BYTES, 2)
    if not data:
        return None
    while not data.endswith(b"\n"):
        data += connection.recv(MAX_REQUEST_BYTES)
    request: Request = json.loads(data)
    return request, descriptors


def _run(request: Request, messages_to: int, output: int, *, server: int) -> None:
    """Be the sandboxed process, to its end."""
    status = 1
    try:
        os.setsid()
        for standard in (1, 2):
            os.dup2(output, standard)
        os.close(output)
        os.chdir(request["folder"])
        os.environ.update(HOME=request["folder"], TMPDIR=request["folder"])
        tempfile.tempdir = request["folder"]
        messages = Messages(messages_to)
        limits = Limits(**request["limits"])
        protection = confine(
            readable=map(Path, request["readable"]),
            writable=map(Path, [*request["writable"], request["folder"]]),
            processes=bool(limits.processes),
        )
        # A change of namespaces or capabilities forgets it.
        die_with_parent(server)
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
    serve(socket.socket(fileno=int(sys.argv[1])))
