"""A command of Flower as a child process that ends when its parent does, for whatever reason that ends.

`python -m starter_kit.engines.flower.child_process PARENT MODULE:FUNCTION ARGUMENTS…` runs the command with FUNCTION as
its entry point.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import BinaryIO

from starter_kit.engines.flower import QUIET

LOG = "log"
# The line in a log that begins what a command prints.
START = "--- started: "
# What Flower prints -> what it means here.
CAUSES = {
    "CERTIFICATE_VERIFY_FAILED": "the server's certificate isn't signed by this node's --authority, or names "
    "another address",
    "[code: 2001]": "the server's --node-keys lack the key of this node, or the node has no --node-key",
    "[code: 2004]": "another node with the same key is connected",
    "WRONG_VERSION_NUMBER": "the server doesn't encrypt the connection, or isn't one of Flower",
    "incompatible": "the server and this node have different versions of Flower",
}
COLOR = re.compile("\x1b\\[[0-9;]*m")
STOPPING_S = 10.0
WATCH_S = 0.5


def entry_point(command: str) -> str:
    """Return the entry point of one of Flower's commands, such as `flower-supernode`, as `module:function`."""
    (found,) = distribution("flwr").entry_points.select(group="console_scripts", name=command)
    return found.value


@contextmanager
def running(function: str, arguments: Sequence[str], home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a command in the background for as long as the context is open.

    Args:
        function: The command's entry point, as `module:function`.
        home: A folder of this command's own, for Flower's files; what the command prints is appended to `LOG` there.
    """
    with _log(function, home) as log:
        process = subprocess.Popen(
            _command_line(function, arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(home),
            # An interrupt is for the parent, which then ends the child.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOPPING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def output_of(function: str, arguments: Sequence[str], home: Path) -> str:
    """Run a command to its end and return its standard output; what else it prints is appended to `LOG` in `home`.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    with _log(function, home) as log:
        completed = subprocess.run(
            _command_line(function, arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=_environment(home),
            text=True,
            check=False,
        )
        log.write(completed.stdout.encode())
    completed.check_returncode()
    return completed.stdout


@contextmanager
def _log(function: str, home: Path) -> Iterator[BinaryIO]:
    """Open the log of the commands in `home`, with a line that says which one is started."""
    with (home / LOG).open("ab") as log:
        log.write(f"{START}{function}\n".encode())
        log.flush()
        yield log


def _command_line(function: str, arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", __name__, str(os.getpid()), function, *arguments]


def _environment(home: Path) -> dict[str, str]:
    """Return this process's environment, with its import path, and with `home` for Flower's files."""
    path = os.pathsep.join(str(Path(folder).absolute()) for folder in sys.path)
    return {**os.environ, **QUIET, "FLWR_HOME": str(flower_home(home)), "PYTHONPATH": path}


def flower_home(home: Path) -> Path:
    """Return the folder in `home` in which Flower's commands look for their configuration."""
    return home.absolute() / "flwr"


def reason(home: Path) -> str:
    """Return why the command that was started last in `home` failed, as far as what it printed says so.

    That is a known cause in words, with what Flower says of it; or what follows its exit code; or the last line that is
    more than information, without colors.
    """
    text = COLOR.sub("", (home / LOG).read_text(encoding="utf-8", errors="replace")).rpartition(START)[2]
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for mark, cause in CAUSES.items():
        if said := next((line for line in lines if mark in line), None):
            return f"{cause} ({said})"
    exits = [number for number, line in enumerate(lines) if "Exit Code:" in line]
    if exits and (said := " ".join(lines[exits[-1] + 1 : exits[-1] + 3])):
        return said
    telling = [line for line in lines if not line.startswith("INFO")]
    return (telling or lines or ["nothing"])[-1]


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    module, _, function = command.partition(":")
    sys.argv = [function, *sys.argv[3:]]
    getattr(import_module(module), function)()
    # Threads that Flower leaves behind would keep the process running.
    os._exit(0)


def _end_with(parent: int) -> None:
    """Interrupt this process once it has another parent, and kill it if that isn't enough."""
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(STOPPING_S)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
