"""Every service that a site can use, started together."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.services import rabbitmq
from tests.services.postgres import Postgres
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import Redis
from tests.services.seaweedfs import ACCESS_KEY, SECRET_KEY, SeaweedFS


@contextmanager
def all_services() -> Iterator[dict[str, str]]:
    """The environment variables by which a site uses the services, which run meanwhile.

    RabbitMQ is the broker and Redis the cache; Redis is both where RabbitMQ isn't installed.
    """
    with ExitStack() as running:
        running.callback((postgres := Postgres()).stop)
        running.callback((redis := Redis()).stop)
        broker_url = redis.url
        if rabbitmq.binary():
            running.callback((broker := RabbitMQ()).stop)
            broker_url = broker.url
        running.callback((s3 := SeaweedFS()).stop)
        yield {
            "PFL_DATABASE_URL": postgres.create_database("pfl"),
            "PFL_CACHE_URL": redis.url,
            "PFL_BROKER_URL": broker_url,
            "PFL_STORE_URL": f"s3://{s3.create_bucket()}",
            "PFL_STORE_ENDPOINT": s3.url,
            "PFL_STORE_ACCESS_KEY": ACCESS_KEY,
            "PFL_STORE_SECRET_KEY": SECRET_KEY,
        }
