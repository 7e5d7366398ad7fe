"""A process without network, for reading files that nobody vouches for.

Guarantees: the module that runs in it can reach no other machine and no server on this one by TCP or UDP, and has none
of the caller's tokens in its environment. On Linux the process moves to a network and a user namespace, in which
not even the loopback interface is up; on macOS the system's sandbox denies it every network operation. It is tried out
each time: the process must fail to connect to a listener of the caller's, to which the caller itself can connect.

Assumes: the files that its user may read and write, sockets in the file system among them, stay within its reach.
"""

import ctypes
import os
import runpy
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NOT_ISOLATED = 77  # exit status
TIMEOUT_S = 5.0

_CLONE_NEWUSER, _CLONE_NEWNET = 0x1000_0000, 0x4000_0000
_PR_SET_NO_NEW_PRIVS = 38
_MACOS_SANDBOX = ("sandbox-exec", "-p", "(version 1)(allow default)(deny network*)")
_ENVIRONMENT = ("DYLD_LIBRARY_PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TMPDIR")


class NotIsolatedError(Exception):
    """Raised where the system doesn't let the process give up the network; the message says why."""


@dataclass(frozen=True)
class Ended:
    """The end of a process; `last_line` is the last of its standard error."""

    status: int
    last_line: str


def run_without_network(module: str, text: str) -> Ended:
    """Run `python -m module` without network, with `text` as its standard input.

    Raises:
        NotIsolatedError: The module was not run.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), TIMEOUT_S).close()
        listener.accept()[0].close()
        sandbox = _MACOS_SANDBOX if sys.platform == "darwin" else ()
        try:
            ended = _run([*sandbox, *_python("starter_kit.weights.isolation"), str(port), module], text)
        except FileNotFoundError as error:
            raise NotIsolatedError(f"{sandbox[0]} is missing" if sandbox else str(error)) from error
        listener.setblocking(False)
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            pass
        else:
            raise NotIsolatedError("the process reached a server of this machine")
    if ended.status == NOT_ISOLATED:
        raise NotIsolatedError(ended.last_line)
    return ended


def run_with_network(module: str, text: str) -> Ended:
    """Run `python -m module` like `run_without_network`, but with network access."""
    return _run(_python(module), text)


def _python(module: str) -> list[str]:
    return [sys.executable, "-P", "-m", module]


def _run(command: list[str], text: str) -> Ended:
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = os.pathsep.join(str(Path(folder).absolute()) for folder in sys.path)
    finished = subprocess.run(command, input=text.encode(), capture_output=True, env=environment, check=False)
    lines = finished.stderr.decode(errors="replace").strip().splitlines()
    return Ended(finished.returncode, lines[-1] if lines else "")


def main() -> None:
    """Leave the network, make sure of it, and become another module: `PORT MODULE` on the command line."""
    port, module = int(sys.argv[1]), sys.argv[2]
    try:
        if sys.platform == "linux":
            _leave_network()
        _make_sure(port)
    except NotIsolatedError as error:
        print(error, file=sys.stderr)  # noqa: T201 - read by the process that started this one
        sys.exit(NOT_ISOLATED)
    sys.argv = [module]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _leave_network() -> None:
    """Move to an empty network namespace. Must come before any thread is started, so before torch is loaded."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        return
    reason = os.strerror(ctypes.get_errno())
    if libc.unshare(_CLONE_NEWNET) != 0:  # an administrator needs no user namespace, which may be forbidden
        raise NotIsolatedError(f"no network namespace: {reason}")


def _make_sure(port: int) -> None:
    try:
        socket.create_connection(("127.0.0.1", port), TIMEOUT_S).close()
    except OSError:
        return
    raise NotIsolatedError("the process still has network")


if __name__ == "__main__":
    main()
