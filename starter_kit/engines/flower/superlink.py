"""The server of `pfl federate`: a SuperLink as its child process, and a run on it that this process leads.

Flower would start the server's part of a run in a process of its own, from the code that came with the run. Here the
process that trains takes that part itself, so that the SuperLink runs no code of anybody's.
"""

import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.flower.address import Address, ServerTLS
from starter_kit.engines.flower.agreement import require_trusted_server
from starter_kit.engines.flower.app_folder import write_app
from starter_kit.engines.flower.child_process import (
    LOG,
    entry_point,
    flower_home,
    output_of,
    reason,
    running,
)
from starter_kit.engines.flower.flower_internals import (
    TaskInterface,
    UnreachableError,
    register_nodes,
    server_grid,
)
from starter_kit.engines.flower.node_registry import POLL_S
from starter_kit.engines.flower.server_app import over_grid
from starter_kit.federation.rounds import Engine
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup
from starter_kit.runs.training import OpenEngine

NODES_ONLY_SUPERLINK = "starter_kit.engines.flower.flower_internals:nodes_only_superlink"
STARTING_S = 60.0


@dataclass(frozen=True)
class ServerOptions:
    """The address at which nodes reach the server, and how they are authenticated.

    Attributes:
        tls: None where nothing is encrypted, which is allowed at loopback addresses only.
        node_keys: A file with the public keys of the nodes, one a line as OpenSSH writes them; None admits all nodes.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The server would be open to other machines, or authenticate nodes, without
            encryption.
    """

    address: Address
    tls: ServerTLS | None = None
    node_keys: Path | None = None

    def __post_init__(self) -> None:
        if self.tls is None and (self.node_keys or not self.address.is_loopback):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="--certificate, --certificate-key, --authority",
                expected="files, for nodes on other machines and for nodes with keys",
                found="none",
                next_step="docs/distributed.md shows how to make them; without them, --host is 127.0.0.1.",
            )

    @property
    def authority(self) -> bytes | None:
        return self.tls.authority.read_bytes() if self.tls else None

    @property
    def for_superlink(self) -> list[str]:
        """The options of `flower-superlink`."""
        options = ["--host", self.address.host, "--port", str(self.address.port)]
        if self.tls is None:
            return [*options, "--insecure"]
        options += ["--ssl-certfile", str(self.tls.certificate), "--ssl-keyfile", str(self.tls.key)]
        options += ["--ssl-ca-certfile", str(self.tls.authority)]
        return [*options, "--enable-supernode-auth"] if self.node_keys else options

    @property
    def connection(self) -> str:
        """The connection to this server in the configuration of Flower's commands."""
        security = f"root-certificates = {json.dumps(str(self.tls.authority.absolute()))}" if self.tls else ""
        return f"""\
[superlink]
default = "local"

[superlink.local]
address = {json.dumps(str(self.address.from_here))}
{security or "insecure = true"}
"""


def over_own_superlink(options: ServerOptions, home: Path, *, wait_s: float, timeout_s: float) -> OpenEngine:
    """Return an engine whose clients are at nodes that connect to this machine.

    Args:
        home: A folder for the SuperLink's files, which is made here.
        wait_s, timeout_s: See `over_grid`.

    Raises:
        ProblemError: As `over_grid` does; (`E_CONFIGURATION`) the SuperLink doesn't start; (`E_CLIENTS_LOST`) it can't
            be reached any more.
    """

    @contextmanager
    def opened(setup: RunSetup, watcher: Watcher) -> Iterator[Engine]:
        require_trusted_server(setup)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            _superlink(options, home) as interface,
            _reporting_lost_superlink(home),
            server_grid(interface, _start_run(options, home)) as grid,
            over_grid(grid, wait_s=wait_s, timeout_s=timeout_s)(setup, watcher) as engine,
        ):
            yield engine

    return opened


@contextmanager
def _superlink(options: ServerOptions, home: Path) -> Iterator[TaskInterface]:
    """Start a SuperLink that listens for nodes, and knows those with keys."""
    keys = public_keys(options.node_keys) if options.node_keys else []
    options.address.check_free()
    secret = home / "secret"
    interface = TaskInterface.with_new_secret(options.address.from_here, secret, options.authority)
    arguments = [*options.for_superlink, "--isolation", "process"]
    arguments += ["--superexec-auth-secret-file", str(secret)]
    arguments.append("--disable-runtime-dependency-installation")
    with running(NODES_ONLY_SUPERLINK, arguments, home) as process:
        _await_start(process, options.address, home)
        register_nodes(interface, keys)
        yield interface


def _await_start(process: "subprocess.Popen[bytes]", address: Address, home: Path) -> None:
    """Wait until the SuperLink listens. Raises `ProblemError` (`E_CONFIGURATION`) if it doesn't start."""
    deadline = time.monotonic() + STARTING_S
    while not address.from_here.accepts_connections(0.0):
        if process.poll() is not None or time.monotonic() > deadline:
            raise _not_started(home, f"the SuperLink at {address}")
        time.sleep(POLL_S)


def _start_run(options: ServerOptions, home: Path) -> int:
    """Start a run at the SuperLink with `flwr run`, and return its id. Nothing of its app is run."""
    flower_home(home).mkdir(exist_ok=True)
    (flower_home(home) / "config.toml").write_text(options.connection, encoding="utf-8")
    with tempfile.TemporaryDirectory(dir=home) as app:
        write_app(Path(app))
        try:
            output = output_of(entry_point("flwr"), ["run", app, "local", "--format", "json"], home)
        except subprocess.CalledProcessError as error:
            raise _not_started(home, "`flwr run`") from error
    return int(json.loads(output)["run-id"])


def _not_started(home: Path, what: str) -> ProblemError:
    return ProblemError.of(
        ErrorCode.CONFIGURATION,
        where=what,
        expected="to start",
        found=reason(home),
        next_step=f"See {home / LOG}.",
    )


@contextmanager
def _reporting_lost_superlink(home: Path) -> Iterator[None]:
    """Report a SuperLink that can't be reached any more as a problem of the run."""
    try:
        yield
    except UnreachableError as error:
        raise ProblemError.of(
            ErrorCode.CLIENTS_LOST,
            where="the SuperLink of this server",
            expected="a SuperLink that can be reached",
            found=reason(home),
            next_step=f"See {home / LOG}, then run the same command with --resume.",
        ) from error


def public_keys(file: Path) -> list[bytes]:
    """Return the public keys in `file`, each once, as PEM.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The file can't be read, or a line of it is no key on a NIST curve.
    """
    keys = []
    try:
        for line in filter(None, map(str.strip, file.read_text(encoding="utf-8").splitlines())):
            key = load_ssh_public_key(line.encode())
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise ValueError(f"a key of another kind: {line[:20]}…")
            keys.append(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=str(file),
            expected="public keys as ssh-keygen -t ecdsa writes them, one a line",
            found=str(error),
        ) from error
    return list(dict.fromkeys(keys))
