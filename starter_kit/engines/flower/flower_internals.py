"""Everything that the kit needs from inside Flower, beyond its public API and its commands.

The rest of this package imports `flwr.app`, `flwr.clientapp` and `flwr.serverapp`, and runs Flower's commands. What is
here follows one minor version of Flower, and each part of it is here for a guarantee of docs/distributed.md:

- **A node runs no code from the server, and the server none of anybody.** Flower's own executors run the app that came
  with a run: at each node the one that the server sends, at the server that of whoever reaches its control interface.
  With `--isolation process` nothing runs until somebody claims the task, which takes the secret that only this process
  and its SuperLink or SuperNode have: `TaskInterface`, `server_grid`, `answering`. It is also why a node reads its
  pages once and keeps its clients' states in memory: Flower starts a process for each message.
- **A server that has lost its SuperLink ends with `E_CLIENTS_LOST`**: `server_grid` sets how long Flower's grid, which
  would try forever, repeats a request.
- **Other machines reach nothing but the interface for nodes**: `nodes_only_superlink`. A reverse proxy that lets
  `/v1/fleet/` through does the same for a `flower-superlink` of one's own.
- **No node that is known is turned away**: `register_nodes` takes milliseconds. `flwr supernode register`, the public
  way, takes seconds for each key, and a SuperNode that arrives before its key is registered ends.

tests/starter_kit/engines/test_flower_internals.py lists what is imported here, and states what is lost without it.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from flwr.clientapp import ClientApp
from flwr.common.constant import SubStatus
from flwr.common.serde import run_from_proto
from flwr.proto.control_pb2 import RegisterNodeRequest
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullTaskInputRequest,
    PushTaskOutputRequest,
    SendTaskHeartbeatRequest,
)
from flwr.serverapp import Grid
from flwr.supercore.constant import TaskType
from flwr.supercore.control import ControlHttpClient
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid import HttpGrid
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from starter_kit.engines.flower.address import Address

SECRET_BYTES = 32
CLAIM = "/flwr.proto.Runtime/AcquireTask"
UNREACHABLE_S = 30.0  # for which a request to a SuperLink that can't be reached is repeated


class UnreachableError(Exception):
    """The SuperLink or SuperNode can't be reached."""


class MessageLostError(Exception):
    """A message was claimed and can't be answered, for which its SuperNode would wait for good."""


@dataclass(frozen=True)
class TaskInterface:
    """The interface at which a SuperLink or SuperNode gives out its tasks.

    Attributes:
        secret: The content of the file that was given to it as `--superexec-auth-secret-file`.
        authority: PEM of the authority that signed its certificate; None where the connection isn't encrypted.
    """

    address: Address
    secret: bytes = field(repr=False)
    authority: bytes | None = None

    @classmethod
    def with_new_secret(cls, address: Address, file: Path, authority: bytes | None = None) -> "TaskInterface":
        """Write a new secret into `file`, which only this user may read."""
        secret = secrets.token_bytes(SECRET_BYTES)
        file.touch(mode=0o600)
        file.write_bytes(secret)
        return cls(address, secret, authority)

    @property
    def server(self) -> tuple[str, bool, bytes | None]:
        """What Flower's clients connect to: the address, whether nothing is encrypted, and the authority."""
        return str(self.address), self.authority is None, self.authority

    def claims(self) -> RuntimeHttpClient:
        """Return a connection for `_claim`, to be opened, which the secret authenticates."""
        secret = SuperExecAuthHttpInterceptor(master_secret=self.secret, protected_methods=[CLAIM])
        version = RuntimeVersionHttpInterceptor(component_name="SuperExec")
        return RuntimeHttpClient.from_server_address(*self.server, [version, secret])

    @contextmanager
    def task(self, token: str, component: str) -> Iterator[RuntimeHttpClient]:
        """Open a connection for the claimed task of this token, which is kept alive while the context is open."""
        version = RuntimeVersionHttpInterceptor(component_name=component)
        own = RuntimeTokenHttpInterceptor(token)
        with RuntimeHttpClient.from_server_address(*self.server, [version, own]) as client:
            heartbeat = HeartbeatSender(lambda: _heartbeat(client))
            heartbeat.start()
            try:
                yield client
            finally:
                heartbeat.stop()


def _heartbeat(client: RuntimeHttpClient) -> bool:
    """Return whether Flower knows that the task is kept alive. Flower's own function would interrupt this process."""
    try:
        return client.SendTaskHeartbeat(SendTaskHeartbeatRequest()).success
    except httpx.HTTPError:
        return False


def _claim(claims: RuntimeHttpClient, kind: TaskType) -> tuple[int, str] | None:
    """Claim a task of this kind for this process, and return its run and token; None where there is no task."""
    response = claims.AcquireTask(AcquireTaskRequest(supported_task_types=[kind]))
    return (response.task.run_id, response.token) if response.token else None


@contextmanager
def server_grid(interface: TaskInterface, run_id: int) -> Iterator[Grid]:
    """Take the server's part of a run that was started at the SuperLink, and yield the grid of its nodes.

    Raises:
        UnreachableError: The SuperLink doesn't have the run, or can't be reached any more.
    """
    token = _server_token(interface, run_id)
    with interface.task(token, "flwr-serverapp") as client:
        task = client.PullTaskInput(PullTaskInputRequest())
        TaskIdentity.task_id = task.task_id
        TaskIdentity.run_id = task.run.run_id
        TaskIdentity.node_id = task.context.node_id
        grid = HttpGrid(*interface.server, token=token)
        grid.set_run(run_from_proto(task.run))
        grid._retry_invoker.max_time = UNREACHABLE_S
        status = SubStatus.FAILED
        try:
            yield grid
            status = SubStatus.COMPLETED
        except httpx.TransportError as error:
            raise UnreachableError(str(error)) from error
        finally:
            with suppress(httpx.HTTPError):
                client.PushTaskOutput(PushTaskOutputRequest(sub_status=status))
            grid.close()


def _server_token(interface: TaskInterface, run_id: int) -> str:
    """Claim the server's task of the run, and return its token."""
    with interface.claims() as claims:
        while task := _claim(claims, TaskType.SERVER_APP):
            if task[0] == run_id:
                return task[1]
    raise UnreachableError(f"no task of run {run_id}")


@contextmanager
def answering(interface: TaskInterface, app: ClientApp) -> Iterator[Callable[[], bool]]:
    """Yield a function that lets `app` answer a SuperNode's next message, and returns whether there was one.

    It raises `UnreachableError` before anything is claimed, and `MessageLostError` after that.
    """
    with interface.claims() as claims:
        yield lambda: _answer_next(interface, claims, app)


def _answer_next(interface: TaskInterface, claims: RuntimeHttpClient, app: ClientApp) -> bool:
    try:
        claimed = _claim(claims, TaskType.CLIENT_APP)
    except httpx.TransportError as error:
        raise UnreachableError(str(error)) from error
    if claimed is None:
        return False
    try:
        with interface.task(claimed[1], "flwr-clientapp") as client:
            message, context, _, _ = pull_task_input(client)
            reply = app(message, context)
            push_message(client, reply, context)
            push_task_output(client, context, SubStatus.COMPLETED, "")
    except (httpx.HTTPError, ObjectPullError) as error:
        raise MessageLostError(str(error)) from error
    return True


def register_nodes(interface: TaskInterface, public_keys: Sequence[bytes]) -> None:
    """Let the nodes with these public keys, in PEM, connect to the SuperLink."""
    version = RuntimeVersionHttpInterceptor(component_name="flwr CLI")
    with ControlHttpClient.from_server_address(*interface.server, [version]) as control:
        for key in public_keys:
            control.RegisterNode(RegisterNodeRequest(public_key=key))


def nodes_only_superlink() -> None:
    """Run `flower-superlink`, with its options from the command line, behind `NodeOnlyMiddleware`."""
    import uvicorn
    from flwr.superlink.cli.flower_superlink import SuperLinkLifespan, _parse_superlink_lifespan_config
    from flwr.superlink.main import create_app

    from starter_kit.engines.flower.node_only_middleware import NodeOnlyMiddleware

    config = _parse_superlink_lifespan_config()
    app = create_app(config, SuperLinkLifespan)
    app.add_middleware(NodeOnlyMiddleware)
    # Without a log of accesses, of which there are several a second, its output stays readable.
    uvicorn.run(
        app,
        access_log=False,
        host=config.host,
        port=config.port,
        ssl_keyfile=config.ssl_keyfile,
        ssl_certfile=config.ssl_certfile,
    )
