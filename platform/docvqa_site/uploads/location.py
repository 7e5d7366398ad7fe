"""Where the store is: a folder, or a bucket of an S3 server, as the environment names it.

Read by the settings themselves, so nothing here needs Django.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True)
class Bucket:
    """A bucket, and how it is reached.

    Attributes:
        prefix: What every key begins with: empty, or a path that ends in a slash.
        endpoint: The address of the server as the site reaches it.
        public_endpoint: The same as browsers, participants and workers reach it; signed addresses begin with it.
        path_style: Whether the bucket's name is in the path of an address instead of its host.
        access_key: Empty where the usual environment variables, files or roles have the credentials.
    """

    name: str
    prefix: str
    region: str
    endpoint: str
    public_endpoint: str
    path_style: bool
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)

    @property
    def origin(self) -> str:
        """The origin of the addresses that parts are sent to, which a browser must be allowed to connect to."""
        address = urlsplit(self.public_endpoint)
        host = address.netloc if self.path_style else f"{self.name}.{address.netloc}"
        return f"{address.scheme}://{host}"


def store_location(url: str, variables: Mapping[str, str]) -> Path | Bucket:
    """Return the folder or bucket that `url` names: `file:///folder` or `s3://bucket/prefix`.

    `variables` are those of the environment that belong to a bucket. Raises `ValueError` for any other URL.
    """
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path:
        return Path(unquote(parts.path))
    if parts.scheme != "s3" or not parts.netloc:
        raise ValueError("PFL_STORE_URL must be file:///folder or s3://bucket/prefix")
    region = variables.get("PFL_STORE_REGION") or variables.get("AWS_REGION") or "us-east-1"
    own_endpoint = variables.get("PFL_STORE_ENDPOINT", "").rstrip("/")
    endpoint = own_endpoint or f"https://s3.{region}.amazonaws.com"
    prefix = parts.path.strip("/")
    return Bucket(
        name=parts.netloc,
        prefix=f"{prefix}/" if prefix else "",
        region=region,
        endpoint=endpoint,
        public_endpoint=variables.get("PFL_STORE_PUBLIC_ENDPOINT", "").rstrip("/") or endpoint,
        # A server of one's own rarely has a host name for each bucket.
        path_style=variables.get("PFL_STORE_PATH_STYLE", "1" if own_endpoint else "0") == "1",
        access_key=variables.get("PFL_STORE_ACCESS_KEY", ""),
        secret_key=variables.get("PFL_STORE_SECRET_KEY", ""),
    )
