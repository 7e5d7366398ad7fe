"""The only way from the site to code that nobody vouches for: a judge of the starter kit, in a process of its own.

The site imports nothing of the kit: the judge is started by name, with the rights of this process and without its
environment, gets a job as JSON and writes its answer to a file. It confines by itself whatever it doesn't trust.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from evaluator.messages.examinations import ExaminationJob, JudgeAnswer, Report
from evaluator.sandbox.sandbox import KEPT_VARIABLES

JUDGES = "starter_kit.examining"
LOOK_S = 1.0
ERROR_CHARACTERS = 2000
PROGRESS_CHARACTERS = 200


class CannotExamineError(RuntimeError):
    """Nothing can be examined on this machine; the message says why, for the organizers."""


def judge(job: ExaminationJob, *, longest_s: float, on_progress: Callable[[str], None]) -> Report:
    """Return the report of the job's judge.

    Args:
        longest_s: Seconds until the judge is stopped.
        on_progress: Called about once a second with what the judge says of its progress. If it raises, the judge is
            stopped.

    Raises:
        CannotExamineError: The kit isn't installed beside the site, or there is no report.
    """
    kit = _kit()
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="judge-") as temporary:
        folder = Path(temporary)
        answer, progress, errors = folder / "answer.json", folder / "progress.txt", folder / "errors.txt"
        with progress.open("wb") as progress_file, errors.open("wb") as errors_file:
            process = subprocess.Popen(
                [sys.executable, "-m", JUDGES, str(answer), str(os.getpid())],
                env=kept | {"PYTHONPATH": str(kit.parent)},
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=progress_file,
                stderr=errors_file,
            )
        try:
            _send(process, job)
            _wait(process, longest_s, lambda: on_progress(_last_line(progress)))
        finally:
            process.kill()
            process.wait()
        return _report(answer, process.returncode, errors)


def _kit() -> Path:
    """Return the folder of the kit."""
    found = importlib.util.find_spec("starter_kit")
    if found is None or found.origin is None or importlib.util.find_spec("torch") is None:
        raise CannotExamineError(
            "Examinations need the starter kit and torch: install the package with its extras worker and kit."
        )
    return Path(found.origin).parent


def _send(process: subprocess.Popen[bytes], job: ExaminationJob) -> None:
    assert process.stdin is not None  # noqa: S101  (a pipe)
    try:
        with process.stdin as pipe:
            pipe.write(job.model_dump_json().encode())
    except BrokenPipeError:
        # It has ended, and its errors say why.
        return


def _wait(process: subprocess.Popen[bytes], longest_s: float, look: Callable[[], None]) -> None:
    deadline = time.monotonic() + longest_s
    while True:
        try:
            process.wait(LOOK_S)
            return
        except subprocess.TimeoutExpired:
            if time.monotonic() > deadline:
                raise CannotExamineError(f"The judge took more than {longest_s:g} s.") from None
            look()


def _report(answer: Path, status: int, errors: Path) -> Report:
    try:
        answered = JudgeAnswer.model_validate_json(answer.read_bytes())
    except (OSError, ValidationError) as error:
        printed = errors.read_text(errors="replace")[-ERROR_CHARACTERS:]
        raise CannotExamineError(f"The judge ended with status {status}. {printed}") from error
    if answered.report is None:
        raise CannotExamineError(answered.reason)
    return answered.report


def _last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").splitlines()
    return lines[-1][:PROGRESS_CHARACTERS] if lines else ""
