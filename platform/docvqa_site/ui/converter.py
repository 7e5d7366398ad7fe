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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Converted:
    """The MathML of a formula; None with the `problem` if it isn't known TeX."""

    mathml: str | None
    problem: str = ""


class Converter:
    """The process that converts formulas, which starts with the first one and again after one that stopped it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def convert(
        self, formulas: Sequence[tuple[str, bool]], *, characters: int, prefix: str = ""
    ) -> list[Converted]:
        """Return what becomes of the formulas of one document: all of them, or those before one that was stopped.

        Args:
            formulas: The TeX of each, and whether it has a line of its own. A command that one defines is known to
                those after it.
            characters: How long their MathML may be together; what comes after isn't converted.
            prefix: The beginning of the ids of equations.
        """
        converted: list[Converted] = []
        with self._lock:
            try:
                request = {"formulas": formulas, "characters": characters, "prefix": prefix}
                lines = self._answers(json.dumps(request).encode() + b"\n", len(formulas))
                # Those that came before an error stay in the list.
                converted.extend(Converted(*json.loads(line)) for line in lines)
            except (OSError, ValueError):
                self._stop()
        return converted

    def close(self) -> None:
        with self._lock:
            self._stop()

    def forget(self) -> None:
        """Leave the process to the parent of this one: two that write to it would read each other's answers."""
        self._lock, self._process = Lock(), None

    def _answers(self, request: bytes, count: int) -> Iterator[bytes]:
        """Yield that many lines. Raises `OSError` if the process can't be started, was killed or isn't in time."""
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = _started()
        requests, answers = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        requests.write(request)
        buffered = b""
        for _ in range(count):
            while b"\n" not in buffered:
                buffered += _part_from(answers.fileno(), monotonic() + MAX_WAIT_S)
            line, _, buffered = buffered.partition(b"\n")
            yield line

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


def _part_from(descriptor: int, deadline: float) -> bytes:
    """Return what comes next. Raises `TimeoutError` at the deadline, and `OSError` at the end."""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        if not selector.select(max(0.0, deadline - monotonic())):
            raise TimeoutError
    if not (part := os.read(descriptor, CHUNK_BYTES)):
        raise ConnectionResetError
    return part


converter = Converter()
os.register_at_fork(after_in_child=converter.forget)
atexit.register(converter.close)
