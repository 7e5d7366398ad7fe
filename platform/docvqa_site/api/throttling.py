"""Limits on the requests of one account and of one address, in the form that Ninja asks for them."""

import threading
from typing import Any

from django.http import HttpRequest
from ninja.errors import Throttled
from ninja.throttling import BaseThrottle
from typing_extensions import override

from docvqa_site.limits import Limit, network_of


class PerAccount(BaseThrottle):
    """So many requests of one account."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        # One throttle serves the requests of all threads.
        self._current = threading.local()

    @override
    def allow_request(self, request: HttpRequest) -> bool:
        self._current.wait_s = self.limit.wait_s(self._who(request))
        return not self._current.wait_s

    @override
    def wait(self) -> float:
        return float(self._current.wait_s)

    def _who(self, request: Any) -> str:
        return str(request.auth.pk)


class PerAddress(PerAccount):
    """So many requests from one network, whoever sends them."""

    @override
    def _who(self, request: Any) -> str:
        return network_of(request)


API_LIMITS: list[BaseThrottle] = [
    PerAccount(Limit("api-account", 300)),
    PerAddress(Limit("api-address", 1_500)),
]
# A file of 2 GiB has 256 parts, each of which takes one request for its address.
UPLOAD_LIMITS: list[BaseThrottle] = [PerAccount(Limit("api-uploads", 6_000))]
# Of what stays: a run token, a draft.
CREATION_LIMITS: list[BaseThrottle] = [*API_LIMITS, PerAccount(Limit("api-created", 30))]
PUBLIC_LIMITS: list[BaseThrottle] = [PerAddress(Limit("api-public", 120))]
_UNKNOWN = Limit("api-unknown", 60)


def count_unknown(request: HttpRequest) -> None:
    """Count a request whose token or session isn't valid. Raises `Throttled` when an address sends too many."""
    if wait_s := _UNKNOWN.wait_s(network_of(request)):
        raise Throttled(wait_s)
