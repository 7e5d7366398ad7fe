"""A judge's process: reads a job, reports progress on its standard output, writes the answer to a file."""

import resource
import sys
from pathlib import Path

from evaluator.messages.examinations import ExaminationJob
from evaluator.sandbox.confinement import die_with_parent
from starter_kit.examining.judging import judge


def main() -> None:
    """Judge the job on the standard input; the arguments are the file to write and the parent's process id."""
    die_with_parent(int(sys.argv[2]))
    # A dump of this process's memory would have what it compares with.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answer = judge(ExaminationJob.model_validate_json(sys.stdin.read()), _report)
    Path(sys.argv[1]).write_text(answer.model_dump_json(), encoding="utf-8")


def _report(progress: str) -> None:
    sys.stdout.write(f"{progress}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
