"""Throw-away services for a developer, on free ports of the loopback interface.

`python -m tests.services` starts PostgreSQL, Redis, an S3 server and, where it is installed, RabbitMQ, prints what to
export and stops them at Ctrl-C. `python -m tests.services -- command …` runs a command on them instead.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.services import rabbitmq
from tests.services.postgres import Postgres
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import Redis
from tests.services.seaweedfs import ACCESS_KEY, SECRET_KEY, SeaweedFS


@contextmanager
def started() -> Iterator[dict[str, str]]:
    """The environment variables by which a site uses the services, which run meanwhile."""
    with ExitStack() as stack:
        postgres = Postgres()
        stack.callback(postgres.stop)
        broker: Redis | RabbitMQ = RabbitMQ() if rabbitmq.binary() else Redis()
        stack.callback(broker.stop)
        store = SeaweedFS()
        stack.callback(store.stop)
        yield {
            "PFL_DATABASE_URL": postgres.create_database("pfl"),
            "PFL_BROKER_URL": broker.url,
            "PFL_STORE_URL": f"s3://{store.create_bucket()}",
            "PFL_STORE_ENDPOINT": store.url,
            "PFL_STORE_ACCESS_KEY": ACCESS_KEY,
            "PFL_STORE_SECRET_KEY": SECRET_KEY,
        }


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    # Like Ctrl-C: a closed terminal must not leave the services running.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupt)
    try:
        with started() as variables:
            if arguments[:1] == ["--"]:
                return run(arguments[1:], variables)
            for name, value in variables.items():
                print(f"export {name}={shlex.quote(value)}")
            print("# They run until Ctrl-C.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("\nStopping the services.")
    return 0


def run(command: list[str], variables: dict[str, str]) -> int:
    """Run `command` with `variables`, and return its exit status. It receives Ctrl-C itself."""
    with subprocess.Popen(command, env={**os.environ, **variables}) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
