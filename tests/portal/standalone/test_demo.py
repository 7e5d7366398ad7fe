import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demonstration_that_is_told_to_end_stops_what_it_started(
    tmp_path: Path, ending: signal.Signals
) -> None:
    command = [sys.executable, "-m", "portal.standalone.demo", "--home", tmp_path / "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        assert demo.stdout is not None
        assert any(line.startswith("[2/9]") for line in demo.stdout)  # pre-training takes a minute
        demo.send_signal(ending)
        assert "Stopping." in demo.stdout.read()
        assert demo.wait(timeout=30) == 0
