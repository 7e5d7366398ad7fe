import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PREPARING, TRAINING = "[1/7]", "[4/7]"


@pytest.mark.parametrize(
    ("step", "ending"),
    [(PREPARING, signal.SIGINT), (PREPARING, signal.SIGHUP), (TRAINING, signal.SIGTERM)],
)
def test_a_demonstration_that_is_told_to_end_stops_what_it_started(
    tmp_path: Path, step: str, ending: signal.Signals
) -> None:
    command = [
        sys.executable,
        "-m",
        "portal.standalone.demo",
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
    with pytest.raises(ProcessLookupError):  # trainings are of the demonstration's group
        os.killpg(demo.pid, 0)
