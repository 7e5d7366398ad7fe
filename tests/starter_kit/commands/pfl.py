"""The `pfl` command as a shell sees it: output, exit status, no tracebacks."""

import subprocess
import sys

PFL = [sys.executable, "-c", "from starter_kit.commands.main import main; main()"]
QUICK = ["--set", "rounds=1", "--set", "local.max_steps=1", "--set", "max_input_tokens=32"]


def pfl(*arguments: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `pfl`, which must end with `status`."""
    result = subprocess.run(
        [*PFL, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == status, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    return result
