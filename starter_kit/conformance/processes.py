"""An examination in processes of its own, so that a method that hangs, crashes or exits ends in a coded error.

A second process makes the first round again, with the same synthetic data: noise that follows from a seed, or from a
generator that every process seeds alike, is the same in both. The processes have the rights of whoever started them,
except for limits of time and memory; on other people's code, run them in a sandbox.
"""

import json
import math
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.examinations import ConformanceTest, Verdict
from starter_kit.conformance.results import Inputs, Result
from starter_kit.conformance.statistics import judged, normal, not_made

TIMEOUT_S = 60.0
# A process that waits, or that others keep from computing, has so many times as long.
WAITING = 10
MEMORY_BYTES = 8 << 30
ERROR_CHARACTERS = 300


def examine_apart(inputs: Inputs, *, timeout_s: float = TIMEOUT_S) -> Result:
    """Examine a method in two fresh processes, of at most `timeout_s` seconds of computing each."""
    try:
        result = _in_process(inputs, timeout_s)
        again = result
        if result.sample:
            again = _in_process(inputs.model_copy(update={"only": []}), timeout_s)
    except ProblemError as error:
        return Result(method=inputs.method, seed=inputs.seed, problems=error.problems)
    if not result.tests:
        return result
    tests = [*result.tests, fresh_process_test(result.sample, again.sample)]
    return result.model_copy(
        update={
            "tests": tests,
            "problems": [*result.problems, *again.problems],
            "seconds": result.seconds + again.seconds,
        }
    )


def fresh_process_test(first: list[float], second: list[float]) -> ConformanceTest:
    """Return the test that two processes draw different noise, from the values of the first round in each."""
    name, measures = "noise-of-two-processes", "correlation of the first noise of two processes"
    if not first or len(first) != len(second):
        return not_made(name, measures, Verdict.NO_POWER, "no noise in the first round")
    left, right = np.array(first), np.array(second)
    product = float(np.linalg.norm(left) * np.linalg.norm(right))
    correlation = float(left @ right) / product if product else 1.0
    return judged(name, measures, correlation, normal(correlation * len(first) ** 0.5))


def _in_process(inputs: Inputs, timeout_s: float) -> Result:
    """Return the result of a fresh process.

    Raises:
        ProblemError: (`E_CONFORMANCE_TIMEOUT`) It took too long; (`E_CONFORMANCE_CRASHED`) it ended without a result.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "result.json")
        command = [
            *(sys.executable, "-m", "starter_kit.conformance.processes"),
            *(str(output), str(math.ceil(timeout_s))),
        ]
        try:
            ended = subprocess.run(
                command,
                input=inputs.model_dump_json(),
                capture_output=True,
                text=True,
                timeout=WAITING * timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise _too_long(inputs, timeout_s) from error
        if ended.returncode == -signal.SIGXCPU:
            raise _too_long(inputs, timeout_s)
        try:
            return Result.model_validate_json(output.read_bytes())
        except (OSError, ValidationError) as error:
            raise ProblemError.of(
                ErrorCode.CONFORMANCE_CRASHED,
                where=inputs.method,
                expected="a result",
                found=f"exit status {ended.returncode}. {ended.stderr[-ERROR_CHARACTERS:]}".strip(),
            ) from error


def _too_long(inputs: Inputs, timeout_s: float) -> ProblemError:
    return ProblemError.of(
        ErrorCode.CONFORMANCE_TIMEOUT,
        where=inputs.method,
        expected=f"a result within {timeout_s:g} s of computing, or {WAITING * timeout_s:g} s of waiting",
    )


def main() -> None:
    """Read `Inputs` from standard input, examine, and write the `Result` to a file.

    The arguments are the file's path and the seconds of computing.
    """
    seconds = int(sys.argv[2])
    for kind, limit in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
    ):
        # Above the first limit of computing time, the kernel ends the process with a signal of its own.
        resource.setrlimit(kind, (limit, limit + 5 if kind == resource.RLIMIT_CPU else limit))
    # What is imported counts as well.
    from starter_kit.conformance.examination import examine

    inputs = Inputs.model_validate(json.loads(sys.stdin.read()))
    Path(sys.argv[1]).write_text(examine(inputs).model_dump_json(), encoding="utf-8")


if __name__ == "__main__":
    main()
