"""Runs functions in sandboxed processes: this is the side that has the secrets.

    with Sandbox() as sandbox:
        result = sandbox.run("package.module", "function", inputs, readable=[checkpoint])

The function takes JSON `inputs` and a callable that sends messages, and returns JSON. Its process has no environment,
no network, and no files but the interpreter, this package, `readable`, `writable` and a folder of its own; see
`confinement` and `limits`. What it sends is data from an untrusted process: validate it.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import psutil

import evaluator
from evaluator.sandbox.confinement import Protection, hide_from_others
from evaluator.sandbox.limits import Limits, container_memory_bytes

_PYTHON = f"/etc/python{sys.version_info.major}.{sys.version_info.minor}"
# How libraries are found, certificates, the time zone, and the processors.
MACHINE = [
    *map(
        Path,
        ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types"),
    ),
    *map(Path, ("/etc/ssl/certs", "/etc/ssl/openssl.cnf", _PYTHON)),
    *map(Path, ("/sys/devices/system", "/sys/kernel/mm/transparent_hugepage")),
]
# Programs and libraries.
PROGRAMS = [*map(Path, ("/usr", "/lib", "/lib64", "/bin"))]
# Without a `/proc` of its own: of itself and of the machine, not of other processes.
PROC = [
    Path("/proc", name) for name in ("self", "cpuinfo", "meminfo", "stat", "filesystems", "sys/vm", "version")
]
DEVICES = [Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom")]
GPUS = ("nvidia*", "dri", "kfd")
# The drivers of GPUs find them there.
GPU_SYSTEM = Path("/sys")
CODE = [Path(sys.prefix), Path(sys.base_prefix), Path(evaluator.__file__).parent]
SYSTEM = [*PROGRAMS, *MACHINE, *CODE]
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
BLOCK_BYTES, PAGE_BYTES = 512, 4096


class UnconfinedError(RuntimeError):
    """A process would not be confined as `confinement` describes."""


class Ending(StrEnum):
    """How a sandboxed process ended that returned nothing."""

    RAISED = "raised an exception"
    CRASHED = "crashed"
    TIME = "took longer than allowed"
    CPU_TIME = "used more CPU time than allowed"
    MEMORY = "used more memory than allowed"
    DISK = "used more disk space than allowed"
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
    writable: list[Path]
    server: int
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

    def __post_init__(self) -> None:
        self.disk_bytes_before = self._disk_bytes([])

    def check_use(self) -> None:
        """Raise `SandboxError` if the process and all that it started hold more than allowed."""
        family = _family(self.server)
        used = sum(_resident_bytes(process) for process in family)
        if used > self.limits.memory_bytes:
            raise SandboxError(Ending.MEMORY, f"{used} bytes, {self.limits.memory_bytes} are allowed")
        written = self._disk_bytes(family) - self.disk_bytes_before
        if written > self.limits.disk_bytes:
            raise SandboxError(Ending.DISK, f"{written} bytes, {self.limits.disk_bytes} are allowed")

    def _disk_bytes(self, family: Iterable[psutil.Process]) -> int:
        try:
            named = sum(_disk_bytes(folder) for folder in self.writable)
        except PermissionError:
            raise SandboxError(Ending.DISK, "a folder that can't be looked into") from None
        return named + sum(
            {key: size for process in family for key, size in _deleted_files(process)}.values()
        )

    def kill(self) -> None:
        """End it and all that it started."""
        while running := [process for process in _family(self.server) if _is_running(process)]:
            for process in running:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(running, timeout=WATCH_S)

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


def _family(server: int) -> list[psutil.Process]:
    """Return all processes of a server, which adopts those whose parents have ended."""
    try:
        return psutil.Process(server).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _disk_bytes(folder: Path) -> int:
    """Return what the files below a folder take; each at least a page, as names do."""
    taken = 0
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                taken += max(PAGE_BYTES, entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES)
                if entry.is_dir(follow_symlinks=False):
                    taken += _disk_bytes(Path(entry))
    return taken


def _deleted_files(process: psutil.Process) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield what each open file without a name takes, by its identity."""
    with contextlib.suppress(OSError), os.scandir(f"/proc/{process.pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                found = entry.stat()
                if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    yield (found.st_dev, found.st_ino), found.st_blocks * BLOCK_BYTES


def _gpus() -> list[Path]:
    return [path for pattern in GPUS for path in Path("/dev").glob(pattern)]


class Sandbox:
    """A place to run functions in, one at a time; starts its server when the first one is run."""

    def __init__(self) -> None:
        self.protection: Protection | None = None
        self._pid = 0
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
        system: Iterable[Path] = SYSTEM,
        listable: Iterable[Path] = (),
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        limits: Limits = DEFAULT_LIMITS,
        gpus: bool = False,
        on_message: Callable[[Any], None] = lambda _: None,
        on_output: Callable[[str], None] = lambda _: None,
    ) -> Any:
        """Return what the function returns.

        Args:
            module: The function's module, which is loaded outside of the sandbox: it must be trusted.
            function: Its name.
            inputs: Its argument, which must be JSON.
            preload: Modules that it imports later, which are loaded once for all.
            system: The programs, libraries and code that it may read. What its server has loaded for earlier ones is
                in its memory regardless: code that must not have that needs a sandbox of its own.
            listable: Folders below which it may see the names of files.
            readable: Files and folders that it may read.
            writable: Folders that it may change, beside the one where it runs, which is removed afterwards.
            limits: What it may use; of memory, no more than fits into this process's container.
            gpus: Whether it may use the machine's GPUs.
            on_message: Called with each message that it sends.
            on_output: Called with the end of what it printed, once.

        Raises:
            SandboxError: It returned nothing.
        """
        with tempfile.TemporaryDirectory(prefix="sandbox-") as temporary:
            connection, limits = self._connected(), limits.within(container_memory_bytes())
            folder, changeable = Path(temporary).resolve(), [path.resolve() for path in writable]
            given = [*system, *readable, *([GPU_SYSTEM] if gpus else [])]
            request = {
                "module": module,
                "function": function,
                "inputs": inputs,
                "preload": list(preload),
                "folder": str(folder),
                "readable": [str(path.resolve()) for path in given],
                "listable": [str(path.resolve()) for path in listable],
                # Those that it starts have entries there of their own, which none can name before.
                "proc": ["/proc"] if limits.processes else [str(path) for path in PROC],
                "writable": [str(path) for path in changeable],
                "devices": [str(path) for path in [*DEVICES, *(_gpus() if gpus else [])]],
                "limits": asdict(limits),
            }
            process = _Process(limits, on_message, [folder, *changeable], self._pid)
            try:
                return self._watch(connection, process, request)
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
        """Raise `UnconfinedError` unless other people's code can be run here."""
        protection = self.probe()
        if protection.missing:
            raise UnconfinedError(
                f"This kernel doesn't enforce: {', '.join(protection.missing)}. Other people's code isn't run here."
            )
        if protection.is_root:
            raise UnconfinedError(
                "Other people's code isn't run as root, and root can't change to another account here. Run this as an "
                "account of its own, such as the site's."
            )

    def close(self) -> None:
        """End the server, and whatever still runs."""
        if self._server is not None and self._connection is not None:
            self._connection.close()
            self._server.kill()
            self._server.wait()
        self._server = self._connection = None

    def _watch(self, connection: socket.socket, process: _Process, request: dict[str, Any]) -> Any:
        with _Pipe() as messages, _Pipe() as output:
            data = json.dumps(request).encode() + b"\n"
            try:
                # A socket with a time limit takes what its buffer holds.
                sent = socket.send_fds(connection, [data], [messages.writer, output.writer])
                connection.sendall(data[sent:])
                messages.close_writer()
                output.close_writer()
                _line(connection)
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
            self._connection.settimeout(START_TIMEOUT_S)
            try:
                self._pid = int(_line(self._connection))
            except (OSError, ValueError) as error:
                self.close()
                raise SandboxError(Ending.CRASHED, f"its server didn't start ({error})") from error
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
            self.process.check_use()
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
