"""The server's way to its nodes: a SuperLink of its own, and a run on it whose messages this process sends.

Flower would start the server's part of a run in a process of its own, from code that the run brings along. Here the
process that trains takes that part itself: a SuperLink that the kit started runs no code of anybody's.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from flwr.common.constant import SubStatus
from flwr.common.serde import fab_to_proto, run_from_proto
from flwr.proto.control_pb2 import RegisterNodeRequest, StartRunRequest
from flwr.proto.runtime_pb2 import PullTaskInputRequest, PushTaskOutputRequest
from flwr.serverapp import Grid
from flwr.supercore.constant import TaskType
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.fab import Fab
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.engines.flower.address import Address, ServerTLS
from starter_kit.engines.flower.agreement import reject_untold
from starter_kit.engines.flower.bundle import fab
from starter_kit.engines.flower.child import LOG, last_line, started
from starter_kit.engines.flower.roll import POLL_S
from starter_kit.engines.flower.server_app import over
from starter_kit.engines.flower.tasks import Tasks, claimed, new_secret
from starter_kit.federation.rounds import Engine
from starter_kit.runs.progress import Watcher
from starter_kit.runs.setup import RunSetup

SERVER = "flwr-serverapp"
STARTING_S = 60.0
LOST_S = 30.0  # for which a SuperLink that can't be reached is tried again


@dataclass(frozen=True)
class Listening:
    """How the server is to be reached.

    Attributes:
        tls: None where nothing is encrypted, which only loopback addresses may do.
        node_keys: A file with the public keys of the nodes, one a line as OpenSSH writes them; None lets all nodes in.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Another machine could reach it, or nodes are to be known, without encryption.
    """

    address: Address
    tls: ServerTLS | None = None
    node_keys: Path | None = None

    def __post_init__(self) -> None:
        if self.tls is None and (self.node_keys or not self.address.is_loopback):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where="--certificate, --certificate-key, --authority",
                expected="files, for nodes on other machines and nodes that must be known",
                found="none",
                next_step="docs/distributed.md tells how to make them; without them, --host is 127.0.0.1.",
            )

    @property
    def authority(self) -> bytes | None:
        return self.tls.authority.read_bytes() if self.tls else None

    @property
    def options(self) -> list[str]:
        """For `flower-superlink`."""
        options = ["--host", self.address.host, "--port", str(self.address.port)]
        if self.tls is None:
            return [*options, "--insecure"]
        options += ["--ssl-certfile", str(self.tls.certificate), "--ssl-keyfile", str(self.tls.key)]
        options += ["--ssl-ca-certfile", str(self.tls.authority)]
        return [*options, "--enable-supernode-auth"] if self.node_keys else options


def over_own_superlink(
    listening: Listening, home: Path, *, wait_s: float, timeout_s: float
) -> Callable[[RunSetup, Watcher], AbstractContextManager[Engine]]:
    """Clients at nodes that reach this machine.

    Args:
        home: A folder for the SuperLink's files; made here.
        wait_s, timeout_s: See `over`.

    Raises:
        ProblemError: As `over` does; (`E_CONFIGURATION`) the SuperLink doesn't start.
    """

    @contextmanager
    def opened(setup: RunSetup, watcher: Watcher) -> Iterator[Engine]:
        reject_untold(setup)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            _superlink(listening, home) as tasks,
            _reached(home),
            _run(tasks) as grid,
            over(grid, wait_s=wait_s, timeout_s=timeout_s)(setup, watcher) as engine,
        ):
            yield engine

    return opened


@contextmanager
def _superlink(listening: Listening, home: Path) -> Iterator[Tasks]:
    """A SuperLink that listens, and knows the nodes that it has to know."""
    listening.address.check_free()
    secret = home / "secret"
    tasks = Tasks(listening.address.from_here, new_secret(secret), listening.authority)
    options = ["--isolation", "process", "--superexec-auth-secret-file", str(secret)]
    options.append("--disable-runtime-dependency-installation")
    command = "starter_kit.engines.flower.gate:superlink"
    with started(command, [*listening.options, *options], home) as process:
        deadline = time.monotonic() + STARTING_S
        while not tasks.address.answers(0.0):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ProblemError.of(
                    ErrorCode.CONFIGURATION,
                    where=f"the SuperLink at {listening.address}",
                    expected="to start",
                    found=last_line(home),
                    next_step=f"See {home / LOG}.",
                )
            time.sleep(POLL_S)
        with _control(tasks) as control:
            for key in public_keys(listening.node_keys) if listening.node_keys else ():
                control.RegisterNode(RegisterNodeRequest(public_key=key))
        yield tasks


@contextmanager
def _run(tasks: Tasks) -> Iterator[Grid]:
    """A run at the SuperLink, of which this process is the server."""
    token = _token(tasks)
    with tasks.held(token, SERVER) as task:
        pulled = task.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id = pulled.task_id
        TaskIdentity.run_id = pulled.run.run_id
        TaskIdentity.node_id = pulled.context.node_id
        grid = HttpGrid(str(tasks.address), tasks.authority is None, tasks.authority, token=token)
        grid.set_run(run_from_proto(pulled.run))
        grid._retry_invoker.max_time = LOST_S
        ended = SubStatus.FAILED
        try:
            yield grid
            ended = SubStatus.COMPLETED
        finally:
            with suppress(httpx.HTTPError):
                task.PushTaskOutput(PushTaskOutputRequest(sub_status=ended))
            grid.close()


def _token(tasks: Tasks) -> str:
    """The token of the server's task in a run that is started for it."""
    content = fab()
    bundle = Fab(hashlib.sha256(content).hexdigest(), content, {})
    with _control(tasks) as control:
        run_id = control.StartRun(StartRunRequest(fab=fab_to_proto(bundle))).run_id
    with tasks.claims() as claims:
        while (task := claimed(claims, TaskType.SERVER_APP)) is not None:
            if task[0] == run_id:
                return task[1]
    raise ProblemError.of(
        ErrorCode.CONFIGURATION, where=f"the SuperLink at {tasks.address}", expected="a run", found="none"
    )


@contextmanager
def _control(tasks: Tasks) -> Iterator[ControlHttpClient]:
    version = RuntimeVersionHttpInterceptor(component_name="flwr CLI")
    with ControlHttpClient.from_server_address(
        str(tasks.address), tasks.authority is None, tasks.authority, [version]
    ) as client:
        yield client


@contextmanager
def _reached(home: Path) -> Iterator[None]:
    """A SuperLink that can't be reached any more is a problem of the run."""
    try:
        yield
    except httpx.TransportError as error:
        raise ProblemError.of(
            ErrorCode.CLIENTS_LOST,
            where="the SuperLink of this server",
            expected="to be reached",
            found=last_line(home),
            next_step=f"See {home / LOG}, then go on with --resume.",
        ) from error


def public_keys(file: Path) -> list[bytes]:
    """The public keys in `file`, each once, as PEM.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The file can't be read, or a line of it is no key on a NIST curve.
    """
    keys = []
    try:
        for line in filter(None, map(str.strip, file.read_text(encoding="utf-8").splitlines())):
            key = load_ssh_public_key(line.encode())
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise ValueError(f"a key of another kind: {line[:20]}…")
            keys.append(public_key_to_bytes(key))
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            where=str(file),
            expected="public keys as ssh-keygen -t ecdsa writes them, one a line",
            found=str(error),
        ) from error
    return list(dict.fromkeys(keys))
