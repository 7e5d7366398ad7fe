"""No network holds more than a share of a process's threads: the others are for everybody else."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from django.core.handlers.wsgi import WSGIRequest

from docvqa_site.limits import network_of
from docvqa_site.uploads.problems import problem_response
from evaluator.errors import ErrorCode, ProblemError

BUSY = b"Too many requests at once from your network. Wait for the others to end, then try again.\n"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class LimitedPerNetwork:
    """A WSGI application that answers no more than `most` requests of one network at a time, each to its last byte."""

    def __init__(self, application: Application, most: int) -> None:
        self._application = application
        self._most = most
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request, or say that there are too many."""
        # A copy: a request writes its decoded path back, and the site decodes it once more.
        network = network_of(WSGIRequest(dict(environ)))
        if not self._begins(network):
            status, (kind, body) = HTTPStatus.TOO_MANY_REQUESTS, _busy(environ)
            start_response(f"{status.value} {status.phrase}", [("Content-Type", kind), ("Retry-After", "1")])
            return [body]
        try:
            response: Any = self._application(environ, start_response)
        except BaseException:
            self._ends(network)
            raise
        close = response.close

        def end() -> None:
            try:
                close()
            finally:
                self._ends(network)

        # The same object: the server sends a file by itself only if it is given one.
        response.close = end
        return response  # type: ignore[no-any-return]

    def _begins(self, network: str) -> bool:
        with self._lock:
            if self._requests[network] >= self._most:
                return False
            self._requests[network] += 1
            return True

    def _ends(self, network: str) -> None:
        with self._lock:
            self._requests[network] -= 1
            if not self._requests[network]:
                del self._requests[network]


def _busy(environ: dict[str, Any]) -> tuple[str, bytes]:
    """Return the content type and the body of the answer to a request that is too many: of the API, a problem."""
    if environ.get("PATH_INFO", "").startswith("/api/"):
        response = problem_response(ProblemError.of(ErrorCode.REQUEST_LIMIT))
        return response["Content-Type"], response.content
    return "text/plain; charset=utf-8", BUSY
