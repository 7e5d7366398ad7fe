"""A command of Flower as a child process that ends when its parent does, however that ends.

`python -m starter_kit.engines.flower.child PARENT MODULE:FUNCTION ARGUMENTS…` runs the command that FUNCTION is the
entry point of.
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
from pathlib import Path

from starter_kit.engines.flower import QUIET

LOG = "log"
COLOR = re.compile("\x1b\\[[0-9;]*m")
STOPPING_S = 10.0
WATCH_S = 0.5


@contextmanager
def started(command: str, arguments: Sequence[str], home: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run `command`, as `module:function`, for as long as the context is open.

    Args:
        home: A folder of this command's own: Flower's files go there, and what it prints, into `LOG`.
    """
    environment = {**os.environ, **QUIET, "FLWR_HOME": str(home / "flwr")}
    environment["PYTHONPATH"] = os.pathsep.join(str(Path(folder).absolute()) for folder in sys.path)
    with (home / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(os.getpid()), command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,  # an interrupt is for the parent, which then ends the child
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


def last_line(home: Path) -> str:
    """Of what the command in `home` printed, without its colors."""
    text = COLOR.sub("", (home / LOG).read_text(encoding="utf-8", errors="replace"))
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "nothing")


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2]
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    module, _, function = command.partition(":")
    sys.argv = [function, *sys.argv[3:]]
    getattr(import_module(module), function)()
    os._exit(0)  # threads that Flower leaves behind would keep the process


def _end_with(parent: int) -> None:
    """Interrupt this process once it has another parent; kill it where that isn't enough."""
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(STOPPING_S)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
