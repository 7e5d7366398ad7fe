"""Code that nobody vouches for, in sandboxed processes that answer questions: how all judges run it.

A process has no network, no environment and no files but the kit and those that are named, and whatever it sends is
validated here. Every way in which it fails is one exception, so that a judge turns it into a coded problem.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from evaluator.pipeline import StepInputs, with_decoded
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import Ending, Sandbox, SandboxError

KIT = Path(__file__).parents[1]
HOUR_S = 3600
GIB = 1024 * MIB
# Of the data folder, what a training reads. A test set that is there as well stays out of reach.
TRAINING_DATA = ("dataset.json", "train", "valid", "images")
DETAIL_CHARACTERS = 300

Answer = TypeVar("Answer")


class CannotExamineError(RuntimeError):
    """Nothing can be examined on this machine: the kernel confines nothing, or a folder isn't that of the run."""


class Confined:
    """A sandbox whose processes can read the kit's sources; they run one at a time."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def ask(
        self,
        answer: type[Answer],
        module: str,
        function: str,
        question: object,
        *,
        limits: Limits,
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        on_message: Callable[[Any], None] = lambda _: None,
        on_output: Callable[[str], None] = lambda _: None,
    ) -> Answer:
        """Return what the function answers in a fresh process, as the type `answer`; see `Sandbox.run`.

        The module is loaded before the process is confined, so it must not load a method file when it is imported.

        Raises:
            SandboxError: It answered nothing, or something else.
        """
        try:
            raw = self._sandbox.run(
                module,
                function,
                question,
                readable=[KIT, *readable],
                writable=writable,
                limits=limits,
                on_message=on_message,
                on_output=on_output,
            )
            return TypeAdapter(answer).validate_json(json.dumps(raw))
        except ValidationError as error:
            # Its own text would quote what was sent.
            raise SandboxError(Ending.GARBLED, "a message of another form") from error

    def decoded(self, inputs: StepInputs, folder: Path) -> StepInputs:
        """Return a step's inputs with the messages of a codec plug-in decoded into `folder`, as a worker does it.

        Raises:
            ProblemError: ``E_TRANSCRIPT_*``: the messages can't be decoded.
        """
        return with_decoded(inputs, self._sandbox, folder)


def training_limits(hours: float) -> Limits:
    """Return the limits of a process that trains for at most so many hours."""
    return Limits(
        wall_s=hours * HOUR_S,
        cpu_s=1000 * HOUR_S,
        memory_bytes=64 * GIB,
        file_bytes=16 * GIB,
        disk_bytes=64 * GIB,
        open_files=4096,
    )


def training_data(folder: Path) -> list[Path]:
    """Return what a training may read of a data folder."""
    return [path for name in TRAINING_DATA if (path := folder / name).exists()]


def in_brief(error: SandboxError) -> str:
    """Return how a process failed, with the end of what it printed: for the problems of a report."""
    return f"{error}. {error.output[-DETAIL_CHARACTERS:]}".strip()
