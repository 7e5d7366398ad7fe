"""A throw-away RabbitMQ server on the loopback interface."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import amqp

from tests.services.ports import free_port

PROGRAMS = Path("/usr/lib/rabbitmq/bin")
START_TIMEOUT_S = 120

CONFIGURATION = """\
listeners.tcp.1 = 127.0.0.1:{port}
disk_free_limit.absolute = 50MB
heartbeat = {heartbeat_s}
consumer_timeout = {consumer_timeout_ms}
"""
# The server looks for consumers beyond their timeout once in a tick.
ADVANCED_CONFIGURATION = "[{{rabbit, [{{channel_tick_interval, {tick_ms}}}]}}].\n"


def binary() -> Path | None:
    """Debian's server program; not the one on the PATH, which changes to an account of its own."""
    server = PROGRAMS / "rabbitmq-server"
    return server if server.exists() else None


class RabbitMQ:
    """Started at construction; `stop` ends it and removes its files.

    Args:
        heartbeat_s: The heartbeat that the server suggests.
        consumer_timeout_s: How long a consumer may take to acknowledge a message.
    """

    def __init__(self, heartbeat_s: int = 60, consumer_timeout_s: float = 1800) -> None:
        if binary() is None:
            raise RuntimeError("No RabbitMQ server found: `python -m tests.install` installs one.")
        self.folder = Path(tempfile.mkdtemp(prefix="pfl-rabbitmq-"))
        self.port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.environment = self._environment()
        (self.folder / "rabbitmq.conf").write_text(
            CONFIGURATION.format(
                port=self.port, heartbeat_s=heartbeat_s, consumer_timeout_ms=round(1000 * consumer_timeout_s)
            )
        )
        tick_ms = max(500, min(60_000, round(1000 * consumer_timeout_s / 4)))
        (self.folder / "advanced.config").write_text(ADVANCED_CONFIGURATION.format(tick_ms=tick_ms))
        (self.folder / "plugins").write_text("[].\n")
        self.start()

    def start(self) -> None:
        """Start the server, also again after `kill`, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(PROGRAMS / "rabbitmq-server")],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"RabbitMQ did not start:\n{(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.1)

    def ctl(self, *arguments: str) -> str:
        """Run `rabbitmqctl` and return what it printed."""
        return subprocess.run(
            [str(PROGRAMS / "rabbitmqctl"), "--quiet", *arguments],
            env=self.environment,
            cwd=self.folder,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
        ).stdout

    def freeze(self) -> None:
        """Let it accept connections and answer nothing, until `thaw`."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        # A signal takes effect some time after it was sent.
        os.waitpid(self.process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the server at once, as a power cut would; its messages stay on the disk."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.kill()
        self._stop_port_mapper()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _stop_port_mapper(self) -> None:
        """End Erlang's daemon of this server, which rejects that until it has noticed the server's end."""
        (program,) = Path("/usr/lib/erlang").glob("erts-*/bin/epmd")
        command = [str(program), "-port", self.environment["ERL_EPMD_PORT"], "-kill"]
        for _ in range(100):
            if (
                b"Killed"
                in subprocess.run(command, env=self.environment, check=False, capture_output=True).stdout
            ):
                return
            time.sleep(0.05)

    def _environment(self) -> dict[str, str]:
        """Everything below one folder and on ports of its own."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return kept | {
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"t{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "ERL_EPMD_PORT": str(free_port()),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _answers(self) -> bool:
        try:
            with amqp.Connection(f"127.0.0.1:{self.port}", connect_timeout=2):
                return True
        except OSError:
            return False
