"""Limits on how often one account or address may do something, counted in the site's cache for limits."""

import ipaddress
import time
from dataclasses import dataclass

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import HttpRequest

# The network that one household or server usually has.
IPV6_PREFIX = 64


@dataclass(frozen=True)
class Limit:
    """At most `count` times within each window of `window_s` seconds."""

    name: str
    count: int
    window_s: int = 60

    def wait_s(self, who: str) -> int:
        """Count once more for `who`, and return the seconds to wait; 0 within the limit."""
        window, passed_s = divmod(int(time.time()), self.window_s)
        if _increased(f"limit:{self.name}:{who}:{window}", self.window_s) <= self.count:
            return 0
        return self.window_s - passed_s


def network_of(request: HttpRequest) -> str:
    """Return the network of the visitor's address."""
    address = get_adapter().get_client_ip(request)
    try:
        prefix = IPV6_PREFIX if ipaddress.ip_address(address).version == 6 else 32
    except ValueError:
        # For example, the name of a Unix socket.
        return str(address)
    return ipaddress.ip_network((address, prefix), strict=False).network_address.compressed


def _increased(key: str, window_s: int) -> int:
    """Return the counter after adding 1 to it."""
    lifetime_s = 2 * window_s
    cache.add(key, 0, lifetime_s)
    try:
        return cache.incr(key)
    except ValueError:
        # The entry was removed in between.
        cache.set(key, 1, lifetime_s)
        return 1
