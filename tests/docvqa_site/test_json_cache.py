"""Caches of the site: what somebody else wrote into one never runs."""

import base64
import pickle  # noqa: TID251  (what an attacker would write)
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from django.core.cache import caches
from django.core.management import call_command
from django.db import connection
from pytest_django import Settings

from tests.services.redis import Redis


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def server() -> Iterator[Redis]:
    server = Redis()
    yield server
    server.stop()


def test_what_others_wrote_into_redis_is_not_unpickled(
    server: Redis, settings: Settings, tmp_path: Path
) -> None:
    settings.CACHES = {"default": {"BACKEND": "docvqa_site.json_cache.RedisCache", "LOCATION": server.url}}
    cache = caches["default"]
    cache.set_many({"list": [1, "a"], "count": 1})
    assert cache.incr("count") == 2
    assert cache.get_many(["list", "count"]) == {"list": [1, "a"], "count": 2}
    redis.Redis.from_url(server.url).set(cache.make_key("list"), pickle.dumps(Trap(tmp_path / "ran")))
    assert cache.get("list") is None
    assert not (tmp_path / "ran").exists()


@pytest.mark.django_db
def test_what_others_wrote_into_the_cache_s_table_is_not_unpickled(
    settings: Settings, tmp_path: Path
) -> None:
    settings.CACHES = {"default": {"BACKEND": "docvqa_site.json_cache.DatabaseCache", "LOCATION": "trapped"}}
    call_command("createcachetable")
    cache = caches["default"]
    cache.set("list", [1, "a"])
    assert cache.get("list") == [1, "a"]
    with connection.cursor() as cursor:
        trap = base64.b64encode(pickle.dumps(Trap(tmp_path / "ran"))).decode()
        cursor.execute("UPDATE trapped SET value = %s", [trap])
    assert cache.get("list") is None
    assert not (tmp_path / "ran").exists()
