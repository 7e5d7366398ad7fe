"""Converts formulas in a process that the system can stop, since one of 43 characters can take forever.

A conversion takes 0.1 ms longer than in this process. The other process takes 40 ms to start and 13 MB, once for each
process of the site that shows a formula.
"""

import atexit
import json
import os
import selectors
import subprocess
import sys
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import IO, cast

PROGRAM = Path(__file__).with_name("formula_process.py")
# The system stops a formula by its CPU time. This only ends the wait for a process that gets none.
MAX_WAIT_S = 10.0
# The process reads what participants wrote, so it gets none of the site's secrets.
KEPT_VARIABLES = {"LD_LIBRARY_PATH", "LANG"}
CHUNK_BYTES = 64 * 1024


class StoppedError(Exception):
    """A formula whose conversion was stopped: it takes too long or too much memory, or no process can be started."""


class Converter:
    """The process that converts formulas, which starts with the first one and again after one that stopped it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def convert(self, formula: str, *, display: bool) -> str | None:
        """Return the formula as MathML; None if it isn't known TeX. Raises `StoppedError`."""
        with self._lock:
            try:
                return self._answer(json.dumps([formula, display]).encode() + b"\n")
            except (OSError, ValueError) as error:
                self._stop()
                raise StoppedError from error

    def close(self) -> None:
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """Leave the process to the parent of this one: two that write to it would read each other's answers."""
        self._lock, self._process = Lock(), None

    def _answer(self, request: bytes) -> str | None:
        """Raises `OSError` or `ValueError` if the process can't be started, was killed or doesn't answer in time."""
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = _started()
        requests, answers = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        requests.write(request)
        line = _line_from(answers.fileno(), monotonic() + MAX_WAIT_S)
        answer: str | None = json.loads(line)
        return answer

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            # Closes the pipes as well.
            process.communicate()


def _started() -> subprocess.Popen[bytes]:
    # With -P, the modules beside the program don't hide those of the standard library.
    return subprocess.Popen(
        [sys.executable, "-P", str(PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={name: value for name, value in os.environ.items() if name in KEPT_VARIABLES},
    )


def _line_from(descriptor: int, deadline: float) -> bytes:
    """Return what comes up to the end of a line, or of the output. Raises `TimeoutError` at the deadline."""
    line = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - monotonic())):
                raise TimeoutError
            if not (part := os.read(descriptor, CHUNK_BYTES)):
                break
            line += part
    return line


converter = Converter()
os.register_at_fork(after_in_child=converter.forget)
atexit.register(converter.close)
