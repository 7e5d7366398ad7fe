"""The real site, served over HTTP from a thread of the test, with faults on demand.

A fault is injected in front of the site's application, which is the one that gunicorn serves. A call is named by its
method and path, such as "POST /api/v1/uploads"; sending a part is named by the part's number, such as "PUT part 4".
"""

import io
import threading
from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase
from typing import Self

from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.urls import Resolver404, resolve

from docvqa_site.uploads.signed_urls import read_part_token

ALWAYS = 1_000_000


class Fault(Enum):
    """What goes wrong with a call."""

    UNAVAILABLE = auto()  # it is answered with status 503 and not carried out
    DISCONNECTED = auto()  # the connection is closed, and it is not carried out
    ANSWER_LOST = auto()  # it is carried out, and the connection is closed without an answer


@dataclass
class _Planned:
    """A fault of the next `left` calls that match, or the bytes that they are answered with."""

    call: str
    fault: Fault | bytes
    left: int


class LiveSite:
    """The site on a free port.

    Attributes:
        calls: How often each call arrived.
        authorization: The Authorization headers with which each call arrived; None where it had none.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.authorization: dict[str, set[str | None]] = {}
        self._lock = threading.Lock()
        self._faults: list[_Planned] = []
        self._server = ThreadedWSGIServer(("127.0.0.1", 0), _handler(self))
        # Not `docvqa_site.wsgi`, which sets Django up once more and thereby closes the stream that pytest captures.
        self._server.set_app(WSGIHandler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def break_down(self, call: str, fault: Fault | bytes = Fault.UNAVAILABLE, times: int = ALWAYS) -> None:
        """Let the next `times` calls that match the pattern `call` fail, or be answered with these bytes."""
        self._faults.append(_Planned(call, fault, times))

    def recover(self) -> None:
        """Remove all faults, and forget the calls so far."""
        self._faults.clear()
        self.calls.clear()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _arrived(self, call: str, authorization: str | None) -> Fault | bytes | None:
        """Note a call, and return what is to go wrong with it."""
        with self._lock:
            self.calls[call] += 1
            self.authorization.setdefault(call, set()).add(authorization)
            for planned in self._faults:
                if planned.left and fnmatchcase(call, planned.call):
                    planned.left -= 1
                    return planned.fault
        return None


def _handler(site: LiveSite) -> type[WSGIRequestHandler]:
    class Handler(WSGIRequestHandler):
        # As gunicorn does. Otherwise every response on a kept connection waits 40 ms for an acknowledgement.
        disable_nagle_algorithm = True

        def parse_request(self) -> bool:
            """Parse the head of a request; False if the application shall not see it."""
            if not super().parse_request():
                return False
            match site._arrived(_name(self.command, self.path), self.headers.get("Authorization")):
                case None:
                    return True
                case Fault.ANSWER_LOST:
                    self.wfile = io.BytesIO()
                    self.close_connection = True
                    return True
                case bytes() as answer:
                    self._receive_body()
                    self.wfile.write(answer)
                case Fault.UNAVAILABLE:
                    self._receive_body()
                    self.send_error(503)
            self.close_connection = True
            return False

        def _receive_body(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    return Handler


def _name(method: str, path: str) -> str:
    try:
        found = resolve(path)
    except Resolver404:
        return f"{method} {path}"
    if found.view_name == "uploads:part":
        return f"{method} part {read_part_token(found.kwargs['token'])[1].number}"
    return f"{method} {path}"
