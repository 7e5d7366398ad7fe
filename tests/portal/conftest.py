"""What every test of the site begins with."""

import pytest
from django.core.cache import caches


@pytest.fixture(autouse=True)
def nothing_cached():
    """Caches and limits of one test must not reach the next."""
    for cache in caches.all(initialized_only=True):
        cache.clear()
