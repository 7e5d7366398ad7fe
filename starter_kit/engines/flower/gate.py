"""A SuperLink's port for nodes only: all its other interfaces are open to the server's own machine and to no other.

Flower serves nodes, runs and control on one port, and its control interface knows no accounts: whoever reaches it could
stop a run, or register a node of their own although nodes must be known.
"""

import ipaddress

from flwr.superlink import extensions
from flwr.superlink.cli import flower_superlink
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

FOR_NODES = "/v1/fleet/"


class NodesOnly:
    """Rejects (403) what comes from another machine and is not for nodes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._open(scope):
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse("for nodes only", status_code=403)(scope, receive, send)

    def _open(self, scope: Scope) -> bool:
        path: str = scope["path"]
        client = scope.get("client")
        return path.startswith(FOR_NODES) or (client is not None and _is_here(client[0]))


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def install() -> None:
    """Put the gate before every SuperLink that this process makes from now on."""
    extensions.get_middleware = lambda: (Middleware(NodesOnly),)


def superlink() -> None:
    """`flower-superlink` behind the gate."""
    install()
    flower_superlink()
