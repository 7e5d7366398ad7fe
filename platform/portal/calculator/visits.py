"""A limit on the answers that one address may request, so that no visitor blocks the site for others."""

import ipaddress
import time

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import HttpRequest

ANSWERS_PER_WINDOW = 30
WINDOW_SECONDS = 60
# The network that one household or server usually has.
IPV6_PREFIX = 64


def may_ask(request: HttpRequest) -> bool:
    """Count one more answer for the visitor's address, and return whether it is within the limit."""
    window = int(time.time()) // WINDOW_SECONDS
    key = f"calculator-visits:{_network(request)}:{window}"
    cache.add(key, 0, 2 * WINDOW_SECONDS)
    return cache.incr(key) <= ANSWERS_PER_WINDOW


def _network(request: HttpRequest) -> str:
    address = get_adapter().get_client_ip(request)
    try:
        prefix = IPV6_PREFIX if ipaddress.ip_address(address).version == 6 else 32
    except ValueError:
        # For example, the name of a Unix socket.
        return str(address)
    return ipaddress.ip_network((address, prefix), strict=False).network_address.compressed
