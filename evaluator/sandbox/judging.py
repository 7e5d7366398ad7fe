"""A process that judges untrusted code: it asks sandboxed processes, and never loads that code itself."""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from evaluator.sandbox.sandbox import Sandbox

Asked = TypeVar("Asked", bound=BaseModel)


def run_judge(asked: type[Asked], examine: Callable[[Asked, Sandbox], BaseModel]) -> None:
    """Read what is asked as JSON from standard input, examine it, and write the result to the file of the argument.

    Raises:
        UnconfinedError: This kernel would not confine the code. Nothing of it was run.
    """
    # A dump of this process's memory would have what it compares with.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given = asked.model_validate_json(sys.stdin.read())
    with Sandbox() as sandbox:
        sandbox.require_confinement()
        result = examine(given, sandbox)
    Path(sys.argv[1]).write_text(result.model_dump_json(), encoding="utf-8")
