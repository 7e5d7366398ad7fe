"""Builds the images from the Dockerfiles by buildah. The first half of `make images`.

Where no registry of images can be reached, the base is a Debian made by debootstrap, and Debian's PostgreSQL and Redis
stand in for the images of others, with the Caddy of the tests.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

ROOT = Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
# What was built, for `tests.images.run`.
BUILT = ROOT / "var" / "images" / "built.json"
STAND_INS = Path(__file__).with_name("stand_ins")
BASE = "localhost/pfl-docvqa/base:debian"
# The Dockerfiles, and the names that the compose file and the guide give to what they build.
OURS = {"site": "pfl-docvqa/site", "worker": "pfl-docvqa/worker-cpu", "kit": "pfl-docvqa/kit"}
OTHERS = ("caddy", "postgres", "redis")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# uv and pip bring certificates of their own, which a proxy of this machine may not be among.
TRUST = {"SSL_CERT_FILE": CERTIFICATES, "PIP_CERT": CERTIFICATES, "UV_SYSTEM_CERTS": 1, "UV_NATIVE_TLS": 1}


class Image(BaseModel):
    """An image that was built, its size as buildah states it."""

    name: str
    size: str
    seconds: float


class Built(BaseModel):
    """The project's images, and those that stand in for others, by the names of those."""

    images: list[Image]
    stand_ins: dict[str, str]


def buildah(*arguments: str | Path) -> str:
    """Run buildah and return what it printed. Raises `CalledProcessError`, after its messages were shown."""
    command = ["buildah", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def has_image(name: str) -> bool:
    asked = ["buildah", "inspect", "--type", "image", name]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def configuration_of(image: str) -> dict[str, Any]:
    """What an image says of its processes: User, Env, Entrypoint, Cmd, WorkingDir and Healthcheck."""
    inspected = json.loads(buildah("inspect", "--type", "image", image))
    configuration: dict[str, Any] = inspected["Docker"]["config"]
    return configuration


def build(image: str, dockerfile: Path, *options: str, context: Path = ROOT) -> Image:
    """Build one image. Ends the program with what was printed last if that fails."""
    begun = time.monotonic()
    where = ("--isolation", "chroot", "--network", "host", "--format", "docker")
    command = ["buildah", "bud", *where, *options, "--file", str(dockerfile), "--tag", image, str(context)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout[-4000:]}\n{dockerfile}: buildah ended with status {done.returncode}")
    (size, *_) = buildah("images", "--format", "{{.Size}}", image).splitlines()
    return Image(name=image, size=size, seconds=time.monotonic() - begun)


def build_ours(base: str | None, wheels: str | None) -> Iterable[Image]:
    """Build the project's images, on another base than theirs if one is named, with torch from a folder if one is."""
    based = ["--build-arg", f"BASE={base}"] if base else []
    torch = ["--build-arg", "TORCH_SOURCE=--find-links /wheels", "--volume", f"{wheels}:/wheels:ro"]
    for name, image in OURS.items():
        # The layers with torch are those of worker and kit.
        options = ["--layers", *based, *(torch if wheels and name != "site" else [])]
        yield build(f"localhost/{image}:latest", DOCKER / f"{name}.Dockerfile", *options)


def build_debian_base() -> None:
    """Make a Debian with Python, which trusts what this machine trusts, unless an earlier run has left one."""
    if has_image(BASE):
        return
    container = buildah("from", "scratch")
    with tempfile.TemporaryDirectory(prefix="pfl-base-") as folder:
        packages = "--include=ca-certificates,python3,python3-venv"
        command = ["debootstrap", "--variant=minbase", packages, "bookworm", folder]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        shutil.copy(CERTIFICATES, folder + str(CERTIFICATES))
        buildah("add", "--quiet", container, folder, "/")
    variables = [word for name, value in TRUST.items() for word in ("--env", f"{name}={value}")]
    buildah("config", *variables, container)
    buildah("commit", "--quiet", container, BASE)
    buildah("rm", container)


def build_stand_ins() -> dict[str, str]:
    """Build what stands in for the images of others; returns the images by the names of those."""
    images = {}
    with tempfile.TemporaryDirectory(prefix="pfl-stand-ins-") as folder:
        context = Path(folder) / "context"
        shutil.copytree(STAND_INS, context)
        shutil.copy(Path(sys.executable).parent / "caddy", context / "caddy")
        for other in OTHERS:
            images[other] = f"localhost/pfl-docvqa/stand-in-{other}:latest"
            options = ("--layers", "--target", other, "--build-arg", f"BASE={BASE}")
            build(images[other], context / "Dockerfile", *options, context=context)
    return images


def missing_programs(*names: str) -> list[str]:
    return [name for name in names if shutil.which(name) is None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--debian", action="store_true", help="take Debian instead of the images that a registry has"
    )
    parser.add_argument("--wheels", help="a folder with torch; without one, it comes from PyTorch's index")
    options = parser.parse_args()
    needed = ("buildah", "runc", "ip", "unshare", *(["debootstrap"] if options.debian else []))
    if missing := missing_programs(*needed):
        sys.exit(
            f"Missing: {', '.join(missing)}. On Debian: apt-get install buildah runc iproute2 debootstrap"
        )
    if options.debian:
        print("Making a base by debootstrap ...", flush=True)
        build_debian_base()
    images = []
    for image in build_ours(BASE if options.debian else None, options.wheels):
        print(f"{image.name}: {image.size}, built in {image.seconds:.0f} s", flush=True)
        images.append(image)
    stand_ins = build_stand_ins() if options.debian else {}
    BUILT.parent.mkdir(parents=True, exist_ok=True)
    BUILT.write_text(Built(images=images, stand_ins=stand_ins).model_dump_json())


if __name__ == "__main__":
    main()
