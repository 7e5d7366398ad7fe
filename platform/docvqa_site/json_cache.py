"""The site's caches, whose values are JSON: what somebody else writes into a cache is data, and never code that runs.

Django's own caches unpickle. What isn't JSON, such as an older entry, is as good as missing.
"""

import json
from typing import Any

from django.core.cache.backends import db, locmem, redis


class JSON:
    """The serializer: in place of Redis's own, and of the module `pickle` where Django has no such option."""

    HIGHEST_PROTOCOL = 0

    @staticmethod
    def dumps(value: object, _protocol: int = HIGHEST_PROTOCOL) -> bytes:
        """Return the value as it is stored. Raises `TypeError` for what isn't JSON."""
        return json.dumps(value).encode()

    @staticmethod
    def loads(stored: bytes) -> Any:
        """Return the value, or None if it isn't JSON."""
        try:
            return json.loads(stored)
        except (ValueError, RecursionError):
            return None


db.pickle = JSON  # type: ignore[attr-defined]
locmem.pickle = JSON  # type: ignore[attr-defined]


class DatabaseCache(db.DatabaseCache):
    """A cache in a table of the database, which all processes of the site share."""


class LocMemCache(locmem.LocMemCache):
    """A cache in the memory of one process."""


class RedisCache(redis.RedisCache):
    """A cache in Redis."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, {**params, "OPTIONS": {**params.get("OPTIONS", {}), "serializer": JSON}})
