"""What the kit needs from inside Flower: where a release of Flower changes it, this test states what is lost."""

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from starter_kit.engines.flower.address import free_port
from starter_kit.engines.flower.node_only_middleware import NodeOnlyMiddleware

KIT = Path(__file__).parents[3] / "starter_kit"
INTERNALS = KIT / "engines" / "flower" / "flower_internals.py"
PUBLIC = {"flwr.app", "flwr.clientapp", "flwr.serverapp"}

OWN_CODE_ONLY = "nodes run no code from the server, and the server none of anybody"
CONNECTION = f"claiming tasks of a SuperLink or SuperNode, so that {OWN_CODE_ONLY}"
SERVER = f"leading a run from the process that trains, so that {OWN_CODE_ONLY}"
NODE = f"answering messages in the node's own process, so that {OWN_CODE_ONLY}"
LOST_SUPERLINK = "ending a run with E_CLIENTS_LOST when its SuperLink is gone"
NODES_ONLY = "closing a SuperLink to other machines, but for the interface for nodes"
KNOWN_NODES = "registering the keys of nodes before any of them is turned away"

NEEDED_FOR = {
    "flwr.common.constant.SubStatus": CONNECTION,
    "flwr.common.serde.run_from_proto": SERVER,
    "flwr.proto.control_pb2.RegisterNodeRequest": KNOWN_NODES,
    "flwr.proto.runtime_pb2.AcquireTaskRequest": CONNECTION,
    "flwr.proto.runtime_pb2.PullTaskInputRequest": SERVER,
    "flwr.proto.runtime_pb2.PushTaskOutputRequest": SERVER,
    "flwr.proto.runtime_pb2.SendTaskHeartbeatRequest": CONNECTION,
    "flwr.supercore.constant.TaskType": CONNECTION,
    "flwr.supercore.control.ControlHttpClient": KNOWN_NODES,
    "flwr.supercore.heartbeat.HeartbeatSender": CONNECTION,
    "flwr.supercore.inflatable.inflatable_utils.ObjectPullError": NODE,
    "flwr.supercore.interceptors.RuntimeTokenHttpInterceptor": CONNECTION,
    "flwr.supercore.interceptors.RuntimeVersionHttpInterceptor": CONNECTION,
    "flwr.supercore.interceptors.SuperExecAuthHttpInterceptor": CONNECTION,
    "flwr.supercore.runtime.RuntimeHttpClient": CONNECTION,
    "flwr.supercore.task_identity.TaskIdentity": SERVER,
    "flwr.superlink.cli.flower_superlink.SuperLinkLifespan": NODES_ONLY,
    "flwr.superlink.cli.flower_superlink._parse_superlink_lifespan_config": NODES_ONLY,
    "flwr.superlink.grid.HttpGrid": SERVER,
    "flwr.superlink.main.create_app": NODES_ONLY,
    "flwr.supernode.runtime.run_clientapp.pull_task_input": NODE,
    "flwr.supernode.runtime.run_clientapp.push_message": NODE,
    "flwr.supernode.runtime.run_clientapp.push_task_output": NODE,
}


def test_flower_still_has_inside_what_guarantees_rest_on() -> None:
    inside = {name for name in imported_from_flower(INTERNALS) if module_of(name) not in PUBLIC}
    assert inside == NEEDED_FOR.keys()
    missing = [f"{name}: {reason}" for name, reason in NEEDED_FOR.items() if not exists(name)]
    assert not missing, f"flwr {version('flwr')} no longer has {missing}"

    nowhere = f"127.0.0.1:{free_port()}"
    grid = import_module("flwr.superlink.grid").HttpGrid(nowhere, insecure=True, token="token")
    assert hasattr(grid._retry_invoker, "max_time"), LOST_SUPERLINK
    grid._retry_invoker.max_time = 0.1
    with pytest.raises(httpx.TransportError):
        grid.get_node_ids()

    superlink = import_module("flwr.superlink.main").create_app()
    superlink.add_middleware(NodeOnlyMiddleware)
    elsewhere = TestClient(superlink, client=("192.0.2.7", 5000))
    here = TestClient(superlink, client=("127.0.0.1", 5000))
    for path in ("/v1/control/start-run", "/v1/control/register-node", "/v1/runtime/acquire-task", "/docs"):
        assert elsewhere.post(path).status_code == 403, NODES_ONLY
        assert here.post(path).status_code != 403, NODES_ONLY
    assert elsewhere.post("/v1/fleet/register-node").status_code not in (403, 404), NODES_ONLY


def test_all_other_files_of_the_kit_import_the_public_api_only() -> None:
    for file in KIT.rglob("*.py"):
        if file != INTERNALS:
            assert {module_of(name) for name in imported_from_flower(file)} <= PUBLIC, file


def imported_from_flower(file: Path) -> Iterator[str]:
    """The names that a file imports from Flower."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.partition(".")[0] == "flwr")
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "flwr":
            yield from (f"{node.module}.{name.name}" for name in node.names)


def module_of(name: str) -> str:
    return name.rpartition(".")[0]


def exists(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(import_module(module), attribute)
    except ImportError:
        return False
