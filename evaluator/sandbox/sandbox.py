"""Runs functions in sandboxed processes: this is the side that has the secrets.

    with Sandbox() as sandbox:
        result = sandbox.run("package.module", "function", inputs, readable=[checkpoint])

The function takes JSON `inputs` and a callable that sends messages, and returns JSON. Its process has no environment,
no network, and no files but the interpreter, this package, `readable`, `writable` and a folder of its own; see
`confinement` and `limits`. What it sends is data from an untrusted process: validate it.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import psutil

import evaluator
from evaluator.sandbox.confinement import Protection, hide_from_others
from evaluator.sandbox.limits import Limits

SYSTEM = [Path(path) for path in ("/usr", "/lib", "/lib64", "/bin", "/etc", "/sys", "/proc")]
DEVICES = Path("/dev")
# What processes leave there others find: a process gets shared memory of its own instead, where the kernel allows it.
SHARED = {"shm", "mqueue", "hugepages"}
CODE = [Path(sys.prefix), Path(sys.base_prefix), Path(evaluator.__file__).parent]
# What a process may know of its surroundings: how to use the hardware. Other instructions round sums otherwise.
KEPT_VARIABLES = (
    "PATH",
    "LANG",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "CUDA_VISIBLE_DEVICES",
    "HF_HUB_OFFLINE",
    # Which instructions are used, by which results round: a replay compares its own with those of another process.
    "ATEN_CPU_CAPABILITY",
    "ONEDNN_MAX_CPU_ISA",
    "MKL_ENABLE_INSTRUCTIONS",
    "OPENBLAS_CORETYPE",
    "NPY_DISABLE_CPU_FEATURES",
)

DEFAULT_LIMITS = Limits()
WATCH_S = 0.5
START_TIMEOUT_S = 300.0
MAX_OUTPUT_CHARACTERS = 20_000
CHUNK_BYTES = 64 * 1024


class UnconfinedError(RuntimeError):
    """The kernel would not confine a process as `confinement` describes."""


class Ending(StrEnum):
    """How a sandboxed process ended that returned nothing."""

    RAISED = "raised an exception"
    CRASHED = "crashed"
    TIME = "took longer than allowed"
    CPU_TIME = "used more CPU time than allowed"
    MEMORY = "used more memory than allowed"
    OUTPUT = "sent more than allowed"
    GARBLED = "sent what isn't a message"


class SandboxError(Exception):
    """A sandboxed process returned nothing. `output` is the end of what it wrote, and not to be trusted."""

    def __init__(self, ending: Ending, detail: str, output: str = "") -> None:
        super().__init__(f"the process {ending}: {detail}")
        self.ending = ending
        self.output = output


@dataclass
class _Process:
    """A running sandboxed process, as its pipes and its end are watched."""

    limits: Limits
    on_message: Callable[[Any], None]
    pid: int = 0
    status: int | None = None
    result: list[Any] = field(default_factory=list)
    error: SandboxError | None = None
    protection: Protection | None = None
    line: bytearray = field(default_factory=bytearray)
    output: str = ""

    def receive(self, data: bytes) -> None:
        """Take a part of the stream of messages."""
        self.line += data
        while b"\n" in self.line:
            line, _, rest = bytes(self.line).partition(b"\n")
            self.line = bytearray(rest)
            self._receive_line(line)
        if len(self.line) > self.limits.result_bytes:
            raise SandboxError(Ending.OUTPUT, f"a message of more than {self.limits.result_bytes} bytes")

    def _receive_line(self, line: bytes) -> None:
        try:
            ((kind, content),) = json.loads(line).items()
        except (ValueError, AttributeError, RecursionError):
            raise SandboxError(Ending.GARBLED, "no JSON object with one member") from None
        match kind:
            case "message":
                self.on_message(content)
            case "result":
                self.result = [content]
            case "protection" if self.protection is None:
                self.protection = Protection(**content)
            case "error":
                self.error = _error(content)
            case _:
                raise SandboxError(Ending.GARBLED, "a message of no known kind")

    def check_memory(self) -> None:
        """Raise `SandboxError` if the process and its children hold more memory than allowed."""
        used = sum(_resident_bytes(process) for process in _family(self.pid))
        if used > self.limits.memory_bytes:
            raise SandboxError(Ending.MEMORY, f"{used} bytes, {self.limits.memory_bytes} are allowed")

    def kill(self) -> None:
        """End it and its children."""
        for process in _family(self.pid):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def ended(self) -> Any:
        """Return the result. Raises `SandboxError` if there is none."""
        if self.error is not None:
            raise self.error
        if self.status == 0 and self.result:
            return self.result[0]
        if self.status == -signal.SIGXCPU:
            raise SandboxError(Ending.CPU_TIME, f"{self.limits.cpu_s} s", self.output)
        status = self.status or 0
        how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        raise SandboxError(Ending.CRASHED, how, self.output)


def _error(content: Any) -> SandboxError:
    match content:
        case {"memory": True}:
            return SandboxError(Ending.MEMORY, "it could not allocate more")
        case {"trace": str(trace)}:
            return SandboxError(Ending.RAISED, "its trace follows", trace[-MAX_OUTPUT_CHARACTERS:])
        case _:
            return SandboxError(Ending.GARBLED, "an error without a trace")


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _devices() -> list[Path]:
    """Return the devices: some, such as GPUs, are opened for writing, and the file system says who may."""
    # A link leads to this process's own descriptors.
    return [path for path in DEVICES.iterdir() if path.name not in SHARED and not path.is_symlink()]


class Sandbox:
    """A place to run functions in, one at a time; starts its server when the first one is run."""

    def __init__(self) -> None:
        self.protection: Protection | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        module: str,
        function: str,
        inputs: object,
        *,
        preload: Iterable[str] = (),
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        limits: Limits = DEFAULT_LIMITS,
        on_message: Callable[[Any], None] = lambda _: None,
        on_output: Callable[[str], None] = lambda _: None,
    ) -> Any:
        """Return what the function returns.

        Args:
            module: The function's module, which is loaded outside of the sandbox: it must be trusted.
            function: Its name.
            inputs: Its argument, which must be JSON.
            preload: Modules that it imports later, which are loaded once for all.
            readable: Files and folders that it may read.
            writable: Folders that it may change, beside the one where it runs, which is removed afterwards.
            limits: What it may use.
            on_message: Called with each message that it sends.
            on_output: Called with the end of what it printed, once.

        Raises:
            SandboxError: It returned nothing.
        """
        with tempfile.TemporaryDirectory(prefix="sandbox-") as temporary:
            request = {
                "module": module,
                "function": function,
                "inputs": inputs,
                "preload": list(preload),
                "folder": str(Path(temporary).resolve()),
                "readable": [str(path.resolve()) for path in [*SYSTEM, *CODE, *readable]],
                "writable": [*map(str, _devices()), *(str(path.resolve()) for path in writable)],
                "limits": asdict(limits),
            }
            process = _Process(limits, on_message)
            try:
                return self._watch(process, request)
            except SandboxError as error:
                error.output = error.output or process.output
                raise
            finally:
                self.protection = process.protection or self.protection
                on_output(process.output)

    def probe(self) -> Protection:
        """Return what the kernel enforces here. Raises `SandboxError` if nothing can be run at all."""
        self.run("evaluator.sandbox.server", "nothing", None)
        assert self.protection is not None  # noqa: S101 - whatever returns has reported it
        return self.protection

    def require_confinement(self) -> None:
        """Raise `UnconfinedError` unless the kernel enforces everything here."""
        if missing := self.probe().missing:
            raise UnconfinedError(
                f"This kernel doesn't enforce: {', '.join(missing)}. Other people's code isn't run here."
            )

    def close(self) -> None:
        """End the server, and whatever still runs."""
        if self._server is not None and self._connection is not None:
            self._connection.close()
            self._server.kill()
            self._server.wait()
        self._server = self._connection = None

    def _watch(self, process: _Process, request: dict[str, Any]) -> Any:
        connection = self._connected()
        with _Pipe() as messages, _Pipe() as output:
            data = json.dumps(request).encode() + b"\n"
            try:
                # From the second request on, the socket has a time limit, and then takes what its buffer holds.
                sent = socket.send_fds(connection, [data], [messages.writer, output.writer])
                connection.sendall(data[sent:])
                messages.close_writer()
                output.close_writer()
                connection.settimeout(START_TIMEOUT_S)
                process.pid = int(_line(connection))
                _Watch(process, connection, messages.reader, output.reader).run()
            except (OSError, ValueError) as error:
                self.close()
                raise SandboxError(Ending.CRASHED, f"its server ended ({error})") from error
            except BaseException:
                # Also if `on_message` rejects what was sent: the server runs one process at a time, and would answer
                # the next request with the end of this one.
                process.kill()
                self.close()
                raise
        return process.ended()

    def _connected(self) -> socket.socket:
        if self._connection is None or self._server is None or self._server.poll() is not None:
            hide_from_others()
            self._connection, theirs = socket.socketpair()
            kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
            with theirs:
                self._server = subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "evaluator.sandbox.server",
                        str(theirs.fileno()),
                        str(os.getpid()),
                    ],
                    env=kept | {"PYTHONPATH": str(CODE[-1].parent)},
                    stdin=subprocess.DEVNULL,
                    # Ctrl-C in a terminal is for whoever waits, who may want a result first.
                    start_new_session=True,
                    pass_fds=[theirs.fileno()],
                )
        return self._connection


class _Pipe:
    """Both ends of a pipe, closed at the end of a `with` block."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.reader)
        self.close_writer()

    def close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1


def _line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise ConnectionResetError("no answer")
        line += byte
    return line


class _Watch:
    """Reads what a process sends until it has ended, and ends it where it goes beyond its limits."""

    def __init__(self, process: _Process, connection: socket.socket, messages: int, output: int) -> None:
        self.process = process
        self.connection = connection
        self.messages = messages
        self.output = output
        self.deadline = time.monotonic() + process.limits.wall_s
        self.next_look = 0.0

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for source in (self.connection.fileno(), self.messages, self.output):
                selector.register(source, selectors.EVENT_READ)
            while self.process.status is None:
                for key, _ in selector.select(WATCH_S):
                    self._read(key.fd, selector)
                self._check_limits()
            # What it sent last is still in the pipes; a child that outlives it may hold them open.
            while ready := [key.fd for key, _ in selector.select(0) if key.fd != self.connection.fileno()]:
                for source in ready:
                    self._read(source, selector)
        self.process.kill()

    def _check_limits(self) -> None:
        now = time.monotonic()
        if now > self.deadline:
            raise SandboxError(Ending.TIME, f"{self.process.limits.wall_s:g} s")
        # To look at memory means to look at all of the machine's processes: not after every piece of output.
        if now >= self.next_look:
            self.process.check_memory()
            self.next_look = now + WATCH_S

    def _read(self, source: int, selector: selectors.BaseSelector) -> None:
        if source == self.connection.fileno():
            self.process.status = int(_line(self.connection))
            return
        data = os.read(source, CHUNK_BYTES)
        if not data:
            selector.unregister(source)
        elif source == self.messages:
            self.process.receive(data)
        else:
            text = self.process.output + data.decode("utf-8", "replace")
            self.process.output = text[-MAX_OUTPUT_CHARACTERS:]
