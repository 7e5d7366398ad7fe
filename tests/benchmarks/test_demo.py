"""How long `make demo` takes, step by step, in units of its own trainings (the named reference)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.benchmark

REFERENCE = "Training 9 runs, as many at once as there are cores"
TARGET_S = 240  # on two cores, after the downloads
STEP = re.compile(r"^\[\d+/(\d+)\] (.+?)\n(?:.*\n)*?      done in (\d+) s \((\d+) s since", re.MULTILINE)


@pytest.mark.timeout(1200)
def test_the_demonstration(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.demo.demo",
        "--home",
        str(tmp_path / "demo"),
        "--port",
        "0",
    ]
    result = subprocess.run(
        command, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=1200, check=True
    )
    found = STEP.findall(result.stdout)
    steps = {title: int(seconds) for _, title, seconds, _ in found}
    reference = steps[REFERENCE]
    print(f"\n{'step':<70} seconds  × {REFERENCE}")
    for title, seconds in steps.items():
        print(f"{title:<70} {seconds:>7}  {seconds / reference:5.2f}")
    total = sum(steps.values())
    print(f"{'all of it':<70} {total:>7}  {total / reference:5.2f}  (target: {TARGET_S} s on two cores)")
    assert {planned for planned, *_ in found} == {str(len(steps))}
