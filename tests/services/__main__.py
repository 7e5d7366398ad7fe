"""Throw-away services for a developer, on free ports of the loopback interface.

`python -m tests.services` starts PostgreSQL, Redis, an S3 server and, where it is installed, RabbitMQ, prints what to
export and stops them at Ctrl-C. `python -m tests.services -- command …` runs a command on them instead.
"""

import os
import shlex
import signal
import subprocess
import sys

from tests.services.all import all_services


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str]) -> int:
    # Like Ctrl-C: a closed terminal must not leave the services running.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupt)
    try:
        with all_services() as variables:
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
