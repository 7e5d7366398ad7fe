"""Short-lived signed addresses of this site, by which the folder store receives parts and serves files.

Whoever has such an address may use it until it expires; it works for one part or one file and nothing else.
"""

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils import timezone

from docvqa_site.uploads.parts import Part
from evaluator.errors import ErrorCode, ProblemError

PART_SALT = "docvqa_site.uploads.part"
FILE_SALT = "docvqa_site.uploads.file"


def part_path(upload: str, part: Part) -> str:
    """Return the path by which exactly this part of the unfinished upload is PUT, valid for `UPLOAD_URL_SECONDS`."""
    content = {"upload": upload, "part": asdict(part)}
    return reverse("uploads:part", args=[_sign(content, PART_SALT, settings.UPLOAD_URL_SECONDS)])


def read_part_token(token: str) -> tuple[str, Part]:
    """Return the upload and the part that a token binds. Raises `ProblemError` (`E_UPLOAD_URL`) as `_read`."""
    content = _read(token, PART_SALT)
    return content["upload"], Part(**content["part"])


def file_path(key: str, filename: str, seconds: int) -> str:
    """Return the path by which the file is fetched and saved under this name, valid for `seconds`."""
    return reverse("uploads:file", args=[_sign({"key": key, "filename": filename}, FILE_SALT, seconds)])


def read_file_token(token: str) -> tuple[str, str]:
    """Return the key and the name that a token binds. Raises `ProblemError` (`E_UPLOAD_URL`) as `_read`."""
    content = _read(token, FILE_SALT)
    return content["key"], content["filename"]


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
