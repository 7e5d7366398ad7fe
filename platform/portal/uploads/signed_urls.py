"""Short-lived signed addresses of this site, by which the folder store receives parts and serves files.

Whoever has such an address may use it until it expires; it works for one part or one file and nothing else.
"""

from dataclasses import asdict, dataclass
from typing import Any

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils import timezone

from evaluator.errors import ErrorCode, ProblemError
from portal.uploads.parts import Part

PART_SALT = "portal.uploads.part"
FILE_SALT = "portal.uploads.file"


@dataclass(frozen=True)
class PartAddress:
    """What an address for one part binds: the unfinished upload, the part's number, exact size and SHA-256."""

    upload: str
    part: Part


@dataclass(frozen=True)
class FileAddress:
    """What a download address binds: the stored file, and the name under which it is saved."""

    key: str
    filename: str


def part_path(address: PartAddress) -> str:
    """Return the path by which the part is PUT, valid for `UPLOAD_URL_SECONDS`."""
    content = {"upload": address.upload, "part": asdict(address.part)}
    return reverse("uploads:part", args=[_sign(content, PART_SALT, settings.UPLOAD_URL_SECONDS)])


def read_part_token(token: str) -> PartAddress:
    """Return the address that a part's token binds. Raises `ProblemError` (`E_UPLOAD_URL`) as `_read`."""
    content = _read(token, PART_SALT)
    return PartAddress(upload=content["upload"], part=Part(**content["part"]))


def file_path(address: FileAddress, seconds: int) -> str:
    """Return the path by which the file is fetched, valid for `seconds`."""
    return reverse("uploads:file", args=[_sign(asdict(address), FILE_SALT, seconds)])


def read_file_token(token: str) -> FileAddress:
    """Return the address that a file's token binds. Raises `ProblemError` (`E_UPLOAD_URL`) as `_read`."""
    return FileAddress(**_read(token, FILE_SALT))


def _sign(content: dict[str, Any], salt: str, seconds: int) -> str:
    return signing.dumps({**content, "until": int(timezone.now().timestamp()) + seconds}, salt=salt)


def _read(token: str, salt: str) -> dict[str, Any]:
    """Return what the token binds. Raises `ProblemError` (`E_UPLOAD_URL`) unless it is ours and still valid."""
    try:
        content: dict[str, Any] = signing.loads(token, salt=salt)
    except signing.BadSignature as error:
        raise ProblemError.of(ErrorCode.UPLOAD_URL) from error
    if timezone.now().timestamp() >= content.pop("until"):
        raise ProblemError.of(ErrorCode.UPLOAD_URL, message="The address has expired.")
    return content
