"""The home page while 200 bodies arrive slowly: 200 connections, or 200 streams of one HTTP/2 connection.

The compose file's web server and proxy run as in production, with one web process of 16 threads. Every visitor opens a
TLS connection of their own.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from tests.docker.slow_bodies import SlowBodies, slow_connections, slow_streams
from tests.docker.test_commands import HOST, Deployed, deployed

__all__ = ["deployed"]

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

SLOW = 200
VISITS = 100
MOST_S = 1.0

Opening = Callable[[str, int, int], AbstractContextManager[SlowBodies | None]]
SITUATIONS: dict[str, Opening] = {
    "nobody else": lambda *_: nullcontext(),
    f"{SLOW} slow connections": slow_connections,
    f"{SLOW} slow streams": slow_streams,
}


def visits(site: Deployed, slow: SlowBodies | None) -> list[float]:
    """The seconds that each visit takes, while a byte of every slow body arrives now and then."""
    times = []
    for number in range(VISITS):
        if slow and number % 10 == 0:
            slow.drip()
        start = time.perf_counter()
        assert site.get("/").status == 200
        times.append(time.perf_counter() - start)
    return times


def test_slow_bodies_leave_the_home_page_as_fast_as_before(deployed: Deployed) -> None:
    deployed.get("/")
    p95 = {}
    print(f"{VISITS} visits to the home page   p50        p95        p95, relative to nobody else")
    for name, opening in SITUATIONS.items():
        with opening(HOST, deployed.tls_port, SLOW) as slow:
            quantiles = statistics.quantiles(visits(deployed, slow), n=20)
        p95[name] = quantiles[18]
        ratio = p95[name] / p95["nobody else"]
        print(f"    {name:<24} {quantiles[9]:8.3f} s {quantiles[18]:8.3f} s {ratio:8.2f}")
    assert max(p95.values()) < MOST_S
