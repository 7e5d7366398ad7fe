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


def leave_processes(mebibytes: int, _: Send) -> Any:
    """Leave an orphan in a session of its own, which takes memory, and end."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            held = [b"x" * 1024**2 for _ in range(mebibytes)]
            os.write(writer, b"x")
            time.sleep(3600)
            os._exit(len(held))
        os._exit(0)
    os.wait()
    os.read(reader, 1)
    if mebibytes:
        time.sleep(3600)
    return "left"


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


def reach_for_more(_: Any, __: Send) -> Any:
    """Make calls that lead to namespaces, mounts, keys, other memory, or other processes; return which succeed."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_user = 0x10000000
    calls: dict[str, tuple[Any, ...]] = {
        "clone": (56, new_user | signal.SIGCHLD, 0, 0, 0, 0),
        "clone3": (435, bytes(88), 88),
        "unshare": (272, new_user),
        "fsopen": (430, b"tmpfs", 0),
        "open_tree": (428, -100, b"/", 1),
        "userfaultfd": (323, 1),
        "add_key": (248, b"user", b"name", b"x", 1, -3),
        "io_uring_setup": (425, 1, bytes(120)),
        "shmget": (29, 0, 4096, 0o1600),
        "tiocsti": (16, 0, 0x5412, b"x"),
        "open_by_handle_at": (304, -100, bytes(8), 0),
        "inotify_init": (253,),
        "socketpair of another family": (53, 30, 1, 0, (ctypes.c_int * 2)()),
    }
    found = {}
    for name, call in calls.items():
        result = libc.syscall(*call)
        if result == 0 and name.startswith("clone"):
            os._exit(0)
        found[name] = (result, ctypes.get_errno())
    return {name: errno for name, (result, errno) in found.items() if result >= 0 or errno not in (1, 38)}


def look_around(_: Any, __: Send) -> Any:
    devices = [
        "/dev/pts/0",
        "/dev/tty",
        "/dev/tty0",
        "/dev/console",
        "/dev/kmsg",
        "/dev/fuse",
        "/dev/loop-control",
    ]
    devices += ["/dev/null", "/dev/urandom", *map(str, Path("/dev").glob("[kv]*"))]
    return {
        "account": (os.geteuid(), os.getegid()),
        "devices": sorted(path for path in devices if can_open(Path(path))),
        "commands": [
            path.read_bytes().decode(errors="replace")
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if attempt(path.read_bytes).startswith("did")
        ],
        "etc": sorted(
            name
            for name in ("passwd", "shadow", "hosts", "ssh", "machine-id")
            if can_open(Path("/etc", name))
        ),
        "certificates": can_open(Path("/etc/ssl/certs")),
    }


def can_open(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        return False
    return True


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


def write_many(options: dict[str, bool], _: Send) -> Any:
    """Write files of a mebibyte each, without an end; deleted ones stay open."""
    files = []
    for number in range(101):
        path = Path(f"file-{number}")
        files.append(path.open("wb", buffering=0))
        files[-1].write(bytes(1024**2))
        if options["deleted"]:
            path.unlink()
        if number == 100:
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
