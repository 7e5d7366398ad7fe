"""Gives every request a name, which the proxy, the logs, the answer and the pages of errors share."""

import re
import secrets
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from evaluator.worker.logs import log_context

HEADER = "X-Request-ID"
# Whatever else a client sends would only confuse who reads the logs.
NAME = re.compile(r"[A-Za-z0-9_-]{8,64}")


class RequestIdMiddleware:
    """Takes the request's name from `X-Request-ID`, or makes one; puts it into the log's context and the response."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        name = given if NAME.fullmatch(given) else secrets.token_hex(12)
        request.META["REQUEST_ID"] = name
        with log_context(request=name):
            response = self.get_response(request)
        response[HEADER] = name
        return response
