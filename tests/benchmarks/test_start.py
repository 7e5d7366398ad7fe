"""CPU time of `pfl --help`, compared with starting Python and importing typer."""

import resource
import subprocess
import sys

import pytest

REPEATS = 10
MOST_RATIO = 2.0  # about 1.1 is measured
PROGRAMS = {
    "python": "pass",
    "import typer": "import typer",
    "pfl --help": "import sys; sys.argv = ['pfl', '--help']; from starter_kit.commands.main import main; main()",
}

pytestmark = pytest.mark.benchmark


def cpu_s(program: str) -> float:
    """User and system time of one run of `program`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, timeout=60, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_costs_little_more_than_typer() -> None:
    least = dict.fromkeys(PROGRAMS, float("inf"))
    for _ in range(REPEATS):
        for name, program in PROGRAMS.items():
            least[name] = min(least[name], cpu_s(program))
    reference = least["import typer"]
    print(f"least CPU time of {REPEATS} runs, relative to `import typer`")
    for name, seconds in least.items():
        print(f"    {name:<14}{seconds:.3f} s{seconds / reference:>8.2f}")
    assert least["pfl --help"] / reference < MOST_RATIO
