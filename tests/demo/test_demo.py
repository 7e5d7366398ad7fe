import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PREPARING, TRAINING = "[1/7]", "[4/7]"


@pytest.mark.parametrize(
    ("step", "ending"),
    [
        (PREPARING, signal.SIGINT),
        (PREPARING, signal.SIGHUP),
        pytest.param(TRAINING, signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_demonstration_that_is_interrupted_stops_what_it_started(
    tmp_path: Path, step: str, ending: signal.Signals
) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.demo.demo",
        "--home",
        str(tmp_path / "demo"),
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        assert demo.stdout is not None
        assert any(line.startswith(step) for line in demo.stdout)
        demo.send_signal(ending)
        assert "Stopping." in demo.stdout.read()
        assert demo.wait(timeout=30) == 0
    # Trainings are of the demonstration's group. What was killed last is gone when the system has reaped it.
    deadline = time.monotonic() + 60
    while group_exists(demo.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not group_exists(demo.pid)


def group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
