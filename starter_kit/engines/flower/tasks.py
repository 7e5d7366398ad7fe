"""How a process of the kit takes over a task that Flower would start a process for.

Guarantees, with a secret that only this process and Flower's know, that nobody else takes the task, and that none of
the code that a run brings along is run.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.runtime import RuntimeHttpClient

from starter_kit.engines.flower.address import Address

SECRET_BYTES = 32
CLAIM = "/flwr.proto.Runtime/AcquireTask"


def new_secret(file: Path) -> bytes:
    """A secret for `Tasks`, which only this user may read in `file`."""
    secret = secrets.token_bytes(SECRET_BYTES)
    file.touch(mode=0o600)
    file.write_bytes(secret)
    return secret


@dataclass(frozen=True)
class Tasks:
    """The tasks that a SuperLink or SuperNode has for this process.

    Attributes:
        secret: That was given to it as the secret of its SuperExec.
        authority: PEM of who signed its certificate; None where the way to it isn't encrypted.
    """

    address: Address
    secret: bytes = field(repr=False)
    authority: bytes | None = None

    @contextmanager
    def claims(self) -> Iterator[RuntimeHttpClient]:
        """Access for `claimed`."""
        known = SuperExecAuthHttpInterceptor(master_secret=self.secret, protected_methods=[CLAIM])
        version = RuntimeVersionHttpInterceptor(component_name="SuperExec")
        with RuntimeHttpClient.from_server_address(
            str(self.address), self.authority is None, self.authority, [version, known]
        ) as client:
            yield client

    @contextmanager
    def held(self, token: str, component: str) -> Iterator[RuntimeHttpClient]:
        """Access to the claimed task of this token, which stays this process's for as long as the context is open."""
        task = RuntimeTokenHttpInterceptor(token)
        version = RuntimeVersionHttpInterceptor(component_name=component)
        with RuntimeHttpClient.from_server_address(
            str(self.address), self.authority is None, self.authority, [version, task]
        ) as client:
            alive = HeartbeatSender(lambda: _beat(client))
            alive.start()
            try:
                yield client
            finally:
                alive.stop()


def _beat(client: RuntimeHttpClient) -> bool:
    """Whether Flower has heard that the task is still held."""
    try:
        return client.SendTaskHeartbeat(SendTaskHeartbeatRequest()).success
    except httpx.HTTPError:
        return False


def claimed(claims: RuntimeHttpClient, kind: TaskType) -> tuple[int, str] | None:
    """The run and the token of a task of this kind, which is now this process's; None where there is none."""
    response = claims.AcquireTask(AcquireTaskRequest(supported_task_types=[kind]))
    return (response.task.run_id, response.token) if response.token else None
