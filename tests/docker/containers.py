"""The images' programs without a container engine: as their user, on a read-only system, in a folder of their own.

Where the tests run as root, each process gets a mount namespace in which the root file system is read-only but for its
own folder, and the images' unprivileged user without any capability. Elsewhere it runs as whoever runs the tests.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

USER = 10001
BIN = Path(sys.executable).parent
# A program that hangs ends the test; a busy machine doesn't.
START_TIMEOUT_S = 500
ISOLATED = """
set -e
# A container starts with this one, whatever the tests have.
umask 022
mount --rbind / "$PFL_ROOT"
mount -o remount,ro,bind "$PFL_ROOT"
mount --bind "$PFL_WRITABLE" "$PFL_ROOT$PFL_WRITABLE"
# A Python that root has installed for itself is shown to the user as well, and nothing else of root's.
if [ -n "$PFL_HIDDEN" ]; then
    mount -t tmpfs -o mode=755 tmpfs "$PFL_ROOT$PFL_HIDDEN"
    mkdir -p "$PFL_ROOT$PFL_PYTHON"
    mount --bind "$PFL_PYTHON" "$PFL_ROOT$PFL_PYTHON"
fi
exec chroot "$PFL_ROOT" setpriv --reuid={user} --regid={user} --clear-groups --no-new-privs \
    --inh-caps=-all --bounding-set=-all -- env --chdir="$PFL_WRITABLE" "$@"
"""


def can_isolate() -> bool:
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "setpriv", "chroot"))):
        return False
    return (
        subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    )


def hidden_folder(path: Path) -> str:
    """The topmost folder on the way to `path` that only its owner may enter; empty if there is none."""
    return next((str(p) for p in reversed(path.parents) if not p.stat().st_mode & 0o001), "")


class Containers:
    """Starts programs that share one writable folder, as a volume; use as a context manager."""

    def __init__(self) -> None:
        self.isolated = can_isolate()
        self.folder = Path(tempfile.mkdtemp(prefix="pfl-container-"))
        self.root = tempfile.mkdtemp(prefix="pfl-root-")
        (self.folder / "tmp").mkdir()
        (self.folder / "home").mkdir(mode=0o700)
        if self.isolated:
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, USER, USER)
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
        if error is not None:
            for log in sorted(self.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}")
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, name: str, command: list[str], environment: dict[str, str]) -> str:
        """Run one program to its end, which must be good, and return what it printed."""
        process = self._popen(name, command, environment)
        code = process.wait(START_TIMEOUT_S)
        printed = self.log(name)
        assert code == 0, printed
        return printed

    def start(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.running[name] = self._popen(name, command, environment)

    def wait_until_healthy(self, name: str, test: list[str], environment: dict[str, str]) -> None:
        """Repeat the service's own health check until it succeeds."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while (code := self._popen(f"{name}-probe", test, environment).wait(60)) != 0:
            for other, process in self.running.items():
                assert process.poll() is None, f"{other} ended: {self.log(other)}"
            assert time.monotonic() < deadline, f"{name}: {code}, {self.log(f'{name}-probe')}"
            time.sleep(0.2)

    def wait_for_line(self, name: str, text: str) -> None:
        """Wait until a program has logged `text`."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while text not in self.log(name):
            assert time.monotonic() < deadline, self.log(name)
            time.sleep(0.1)

    def stop_all(self, timeout_s: float = 60) -> dict[str, int]:
        """End all programs as a container engine does, and return their exit statuses."""
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        statuses = {name: process.wait(timeout_s) for name, process in self.running.items()}
        self.running.clear()
        return statuses

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def _popen(self, name: str, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        isolated = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            ISOLATED.format(user=USER),
            "sh",
        ]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*(isolated if self.isolated else []), *command],
                env={
                    "PATH": f"{BIN}:{os.environ['PATH']}",
                    "LANG": "C.UTF-8",
                    "PYTHONDONTWRITEBYTECODE": "1",
                    "TMPDIR": str(self.folder / "tmp"),
                    "HOME": str(self.folder / "home"),
                    "PFL_ROOT": self.root,
                    "PFL_WRITABLE": str(self.folder),
                    "PFL_PYTHON": sys.base_prefix,
                    "PFL_HIDDEN": hidden_folder(Path(sys.base_prefix)),
                    **environment,
                },
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
