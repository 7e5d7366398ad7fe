"""Middleware that opens a SuperLink's port for nodes only; its other interfaces stay open to the server's own machine.

Flower serves nodes, runs and control on one port, and its control interface knows no accounts: whoever reaches it could
stop a run, or register a node of their own although nodes must be known.
"""

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from starter_kit.engines.flower.address import Address

NODE_INTERFACE = "/v1/fleet/"


class NodeOnlyMiddleware:
    """Rejects, with status 403, requests of other machines to anything but the interface for nodes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._admits(scope):
            await self._app(scope, receive, send)
        else:
            await PlainTextResponse("for nodes only", status_code=403)(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        path: str = scope["path"]
        client = scope.get("client")
        return path.startswith(NODE_INTERFACE) or (client is not None and Address(*client).is_loopback)
