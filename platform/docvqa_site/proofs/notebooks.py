"""Jupyter notebooks as the site shows them: read by nbformat in a sandboxed process, and validated here.

The process starts with the first notebook and stays, since loading nbformat takes longer than reading a notebook.
"""

import atexit
import json
import os
import re
from collections.abc import Iterator
from itertools import groupby
from threading import Lock
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from docvqa_site.proofs.upgrading import LIBRARIES, UPGRADING_LIMITS
from evaluator.errors import ErrorCode, ProblemError
from evaluator.sandbox.sandbox import Ending, Sandbox, SandboxError

MAX_CELLS = 1_000
# Each takes many times its own size in HTML.
MAX_OUTPUTS = 10_000
# Colors, movements of the cursor and the like, which are meant for terminals.
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
EXPECTED = "a Jupyter notebook"
FAULTS = {
    Ending.CPU_TIME: f"one that takes more than {UPGRADING_LIMITS.cpu_s} s to read",
    Ending.TIME: f"one that takes more than {UPGRADING_LIMITS.wall_s:g} s to read",
    Ending.MEMORY: "one that takes more memory to read than allowed",
    Ending.OUTPUT: "one that is too large",
}

# A notebook has its texts as a whole or in lines.
Text = str | list[str]
# By the type of the content, such as `text/plain`.
Bundle = dict[str, Any]


def joined(text: Any) -> str:
    """Return a text of a notebook; empty if it is something else."""
    return text if isinstance(text, str) else "".join(part for part in text or [] if isinstance(part, str))


class Output(BaseModel):
    """What a cell has printed (`text`), displayed (`data`) or raised (`ename`, `evalue`)."""

    output_type: str
    name: str = ""
    text: Text = ""
    data: Bundle = {}
    ename: str = ""
    evalue: str = ""

    def content(self, kind: str) -> str:
        """Return what it displays in this type."""
        found = self.data.get(kind, "")
        return joined(found) if isinstance(found, str | list) else ""


class Cell(BaseModel):
    cell_type: Literal["markdown", "code", "raw"]
    source: Text
    execution_count: int | None = None
    outputs: list[Output] = []
    attachments: dict[str, Bundle] = {}

    def merged_outputs(self) -> Iterator[Output]:
        """Yield the outputs, what was printed in a row as one: a progress bar is many."""
        for is_stream, group in groupby(
            self.outputs, lambda output: output.name if output.output_type == "stream" else ""
        ):
            outputs = list(group)
            if not is_stream:
                yield from outputs
                continue
            text = "".join(joined(output.text) for output in outputs)
            yield outputs[0].model_copy(update={"text": as_terminal(text)})


class Notebook(BaseModel):
    """What is read of a notebook of format 4."""

    cells: list[Cell] = Field(max_length=MAX_CELLS)

    @model_validator(mode="after")
    def _has_no_more_outputs_than_a_page_shows(self) -> Self:
        outputs = sum(len(cell.outputs) for cell in self.cells)
        if outputs > MAX_OUTPUTS:
            raise PydanticCustomError(
                "outputs",
                "The notebook has {outputs} outputs; at most {limit} are allowed",
                {"outputs": outputs, "limit": MAX_OUTPUTS},
            )
        return self


class _Reader:
    """The sandbox in which notebooks are read, one after the other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sandbox = Sandbox()

    def read(self, text: str) -> object:
        """Return what `upgrade` makes of the text. Raises `SandboxError`."""
        with self._lock:
            return self._sandbox.run(
                "docvqa_site.proofs.upgrading", "upgrade", text, preload=LIBRARIES, limits=UPGRADING_LIMITS
            )

    def close(self) -> None:
        self._sandbox.close()

    def forget(self) -> None:
        """Leave the process to the parent of this one: two that write to it would read each other's answers."""
        self._lock, self._sandbox = Lock(), Sandbox()


def read_notebook(text: str, filename: str) -> Notebook:
    """Return the notebook with this JSON text, of any format. Raises `ProblemError`: `E_PROOF_FORMAT`."""
    try:
        found = _reader.read(text)
    except SandboxError as error:
        raise _problem(filename, FAULTS.get(error.ending, "one that nbformat can't read")) from error
    if isinstance(found, str):
        raise _problem(filename, found)
    try:
        # As JSON: its parser rejects what can't be encoded again, such as half a character.
        return Notebook.model_validate_json(json.dumps(found))
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in detail["loc"])
        raise _problem(f"{filename}: {place}".removesuffix(": "), detail["msg"]) from error


def as_terminal(text: str) -> str:
    """Return a printed text as a terminal shows it in the end: of a progress bar, its last state."""
    return "\n".join(map(_last_state, ESCAPES.sub("", text).split("\n")))


def _last_state(line: str) -> str:
    """Return a line after its returns and backspaces: at each place is what was printed there last."""
    shown = ""
    for part in reversed(line.split("\r")):
        shown += part[len(shown) :]
    if "\b" not in shown:
        return shown
    kept: list[str] = []
    for character in shown:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


def _problem(where: str, found: str) -> ProblemError:
    return ProblemError.of(ErrorCode.PROOF_FORMAT, where=where, expected=EXPECTED, found=found)


_reader = _Reader()
os.register_at_fork(after_in_child=_reader.forget)
atexit.register(_reader.close)
