"""How much one address may have computed, so that no visitor keeps the site from the others."""

import ipaddress
import time

from allauth.account.adapter import get_adapter
from django.core.cache import cache
from django.http import HttpRequest

ANSWERS_PER_WINDOW = 30
WINDOW_SECONDS = 60
IPV6_PREFIX = 64  # what one household or server is given


def may_ask(request: HttpRequest) -> bool:
    """Count one more answer for the visitor's address; whether it is within what one address gets."""
    window = int(time.time()) // WINDOW_SECONDS
    key = f"calculator-visits:{_network(request)}:{window}"
    cache.add(key, 0, 2 * WINDOW_SECONDS)
    return cache.incr(key) <= ANSWERS_PER_WINDOW


def _network(request: HttpRequest) -> str:
    address = get_adapter().get_client_ip(request)
    try:
        prefix = IPV6_PREFIX if ipaddress.ip_address(address).version == 6 else 32
    except ValueError:  # such as the name of a Unix socket
        return str(address)
    return ipaddress.ip_network((address, prefix), strict=False).network_address.compressed
