"""What runs inside: each function tries something, and returns what it got."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Send = Callable[[object], None]


def attempt(action: Callable[[], object]) -> str:
    try:
        return f"did: {action()}"
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


def echo(inputs: Any, send: Send) -> Any:
    send({"done": 1})
    print("printed")
    return inputs


def surroundings(_: Any, __: Send) -> Any:
    return {
        "environment": dict(os.environ),
        "folder": sorted(os.listdir(".")),
        "cwd": os.getcwd(),
        "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
    }


def read(path: str, _: Send) -> Any:
    return attempt(lambda: Path(path).read_text())


def fail_if_readable(path: str, _: Send) -> Any:
    raise RuntimeError(attempt(Path(path).read_text))


def read_many(paths: list[str], _: Send) -> Any:
    return [attempt(Path(path).read_bytes) for path in paths]


def write(path: str, _: Send) -> Any:
    return attempt(lambda: Path(path).write_text("written"))


def fill(path: str, _: Send) -> Any:
    size = 0
    with Path(path).open("wb", buffering=0) as file:
        try:
            while count := file.write(bytes(2**20)):
                size += count
        except OSError:
            return size


def connect(port: int, _: Send) -> Any:
    return {
        "tcp": attempt(lambda: socket.create_connection(("127.0.0.1", port), timeout=5)),
        "udp": attempt(
            lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port))
        ),
        "unix": attempt(lambda: socket.socket(socket.AF_UNIX)),
        "listen": attempt(lambda: socket.create_server(("127.0.0.1", 0))),
        "name": attempt(lambda: socket.getaddrinfo("localhost.example", 80)),
    }


def start_processes(_: Any, __: Send) -> Any:
    threads = [threading.Thread(target=lambda: None) for _ in range(4)]
    for thread in threads:
        thread.start()
    return {
        "fork": attempt(os.fork),
        "program": attempt(lambda: subprocess.run([sys.executable, "-c", ""], check=True)),
        "shell": attempt(lambda: os.posix_spawn("/bin/true", ["true"], {})),
        "threads": len(threads),
    }


def run_program(_: Any, __: Send) -> Any:
    return subprocess.run(["/bin/echo", "hello"], check=True, capture_output=True, text=True).stdout


def leave_a_process(path: str, _: Send) -> Any:
    child = subprocess.Popen(["/bin/sleep", "3600"], start_new_session=True)
    return child.pid


def kill(pid: int, _: Send) -> Any:
    return attempt(lambda: os.kill(pid, signal.SIGKILL))


def forked_from(_: Any, __: Send) -> int:
    return os.getppid()


def gain_privileges(_: Any, __: Send) -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    return {
        "unshare": libc.unshare(0x10000000),
        "mount": libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
        "ptrace": libc.ptrace(16, os.getppid(), 0, 0),
        "limits": attempt(raise_limits),
    }


def raise_limits() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def take_memory(mebibytes: int, _: Send) -> Any:
    held = [b"x" * 1024**2 for _ in range(mebibytes)]
    time.sleep(3600)
    return len(held)


def take_address_space(mebibytes: int, _: Send) -> Any:
    return len(bytearray(mebibytes * 1024**2))


def spin(_: Any, __: Send) -> Any:
    while True:
        pass


def hang(_: Any, send: Send) -> Any:
    send(os.getpid())
    time.sleep(3600)


def write_much(mebibytes: int, _: Send) -> Any:
    with Path("big").open("wb") as file:
        return attempt(lambda: [file.write(bytes(1024**2)) or file.flush() for _ in range(mebibytes)])


def open_many(_: Any, __: Send) -> Any:
    return attempt(lambda: [os.open("/dev/null", os.O_RDONLY) for _ in range(10_000)])


def print_much(_: Any, __: Send) -> Any:
    for _ in range(40):
        print("x" * 1024**2)
    print("the end")
    return "printed"


def return_much(mebibytes: int, _: Send) -> Any:
    return "x" * (mebibytes * 1024**2)


def send_garbage(text: str, _: Send) -> Any:
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, text.encode())
        except OSError:
            continue
    time.sleep(3600)


def raise_error(_: Any, __: Send) -> Any:
    raise ValueError("not today")


def crash(_: Any, __: Send) -> Any:
    ctypes.string_at(0)


def leave(status: int, _: Send) -> Any:
    os._exit(status)
