"""A store on an S3 server: parts and files go to and from it directly, by addresses that the site signs.

Guarantees: an address for a part takes bytes of the signed length and SHA-256 only, and the server verifies both. A
completed file is made of exactly the parts that were listed.

Assumes: the server verifies `x-amz-checksum-sha256`, which `manage.py configure_store --check` tries out. It need not
list the checksums of parts, nor have one for the file.
"""

import base64
import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO, cast

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.utils.http import content_disposition_header
from typing_extensions import override

from docvqa_site.uploads.location import Bucket
from docvqa_site.uploads.parts import Part, missing_parts
from docvqa_site.uploads.store import PartUrl, Store, reject_incomplete
from evaluator.errors import ErrorCode, ProblemError

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import CompletedPartTypeDef, PartTypeDef

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 3
# Of one answer. The longest work of the server, joining the parts, may go on after it: completing is tried again.
READ_TIMEOUT_S = 20
TRIES = 2
# More threads than this share connections.
CONNECTIONS = 32

MISSING = {"NoSuchKey", "NoSuchUpload", "404", "NotFound"}
FULL = {"QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity", "507"}
# A part is no longer the one that was listed, or that the last address was signed for.
REPLACED = {"InvalidPart", "BadDigest"}


class S3Store(Store):
    """Objects in a bucket, under `bucket.prefix`."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.client = connect(bucket, bucket.endpoint)
        # Addresses are signed for the host by which others reach the store.
        self._signer = connect(bucket, bucket.public_endpoint)

    @override
    def begin(self, key: str, part_size_bytes: int) -> str:
        with coded_problems():
            answer = self.client.create_multipart_upload(
                Bucket=self.bucket.name,
                Key=self._name(key),
                ContentType="application/octet-stream",
                ChecksumAlgorithm="SHA256",
            )
        return answer["UploadId"]

    @override
    def part_url(self, key: str, upload: str, part: Part) -> PartUrl:
        checksum = _base64(part.sha256)
        with coded_problems():
            url = self._signer.generate_presigned_url(
                "upload_part",
                Params={
                    "Bucket": self.bucket.name,
                    "Key": self._name(key),
                    "UploadId": upload,
                    "PartNumber": part.number,
                    "ContentLength": part.size_bytes,
                    "ChecksumSHA256": checksum,
                },
                ExpiresIn=settings.UPLOAD_URL_SECONDS,
            )
        return PartUrl(part.number, url, {"x-amz-checksum-sha256": checksum})

    @override
    def list_parts(self, key: str, upload: str) -> list[Part]:
        return [_part(stored) for stored in self._stored(key, upload) or []]

    @override
    def complete(self, key: str, upload: str, parts: list[Part]) -> None:
        stored, sizes = self._stored(key, upload), [part.size_bytes for part in parts]
        are_gone = stored is None or missing_parts(sizes, map(_part, stored))
        # After a crash, when the answer was lost, or where another request completes it just now and the server has
        # removed the parts before the upload, the file is there already.
        if are_gone and self.size(key) == sum(sizes):
            return
        if stored is None:
            raise ProblemError.of(ErrorCode.UPLOAD_STATE)
        reject_incomplete(parts, [_part(part) for part in stored])
        completed = [_completed(listed, part.sha256) for listed, part in zip(stored, parts, strict=True)]
        self._join(key, upload, completed)
        self._verify(key, sum(sizes), completed)

    @override
    def abort(self, key: str, upload: str) -> None:
        with suppress(FileNotFoundError), coded_problems(), _missing_files():
            self.client.abort_multipart_upload(Bucket=self.bucket.name, Key=self._name(key), UploadId=upload)

    @override
    def download_url(self, key: str, filename: str, seconds: int) -> str:
        with coded_problems():
            return self._signer.generate_presigned_url(
                "get_object",
                Params={
                    "Bucket": self.bucket.name,
                    "Key": self._name(key),
                    "ResponseContentType": "application/octet-stream",
                    "ResponseContentDisposition": content_disposition_header(True, filename) or "attachment",
                },
                ExpiresIn=seconds,
            )

    @override
    def put(self, key: str, content: bytes) -> None:
        with coded_problems():
            self.client.put_object(
                Bucket=self.bucket.name,
                Key=self._name(key),
                Body=content,
                ContentType="application/octet-stream",
                ChecksumSHA256=_base64(hashlib.sha256(content).hexdigest()),
            )

    @override
    def open(self, key: str) -> BinaryIO:
        with coded_problems(), _missing_files():
            answer = self.client.get_object(Bucket=self.bucket.name, Key=self._name(key))
        return cast(BinaryIO, answer["Body"])

    @override
    def size(self, key: str) -> int | None:
        with suppress(FileNotFoundError), coded_problems(), _missing_files():
            return self.client.head_object(Bucket=self.bucket.name, Key=self._name(key))["ContentLength"]
        return None

    @override
    def delete(self, key: str) -> None:
        with coded_problems():
            self.client.delete_object(Bucket=self.bucket.name, Key=self._name(key))

    @override
    def remove_unfinished(self, before: datetime) -> None:
        """Do nothing: the bucket's lifecycle does, once `manage.py configure_store` has set it."""

    @override
    def free_bytes(self) -> None:
        return None

    @override
    def check(self) -> None:
        """List one object: the server answers, has the bucket, and lets the site in."""
        with coded_problems():
            self.client.list_objects_v2(Bucket=self.bucket.name, Prefix=self.bucket.prefix, MaxKeys=1)

    def _name(self, key: str) -> str:
        return f"{self.bucket.prefix}{key}"

    def _stored(self, key: str, upload: str) -> "list[PartTypeDef] | None":
        """Return the stored parts by number; None when there is no such upload.

        A server may list a part that was sent again twice: the newest counts.
        """
        newest: dict[int, PartTypeDef] = {}
        pages = self.client.get_paginator("list_parts").paginate(
            Bucket=self.bucket.name, Key=self._name(key), UploadId=upload
        )
        with suppress(FileNotFoundError), coded_problems(), _missing_files():
            for part in (part for page in pages for part in page.get("Parts", [])):
                known = newest.get(part["PartNumber"])
                if known is None or part["LastModified"] >= known["LastModified"]:
                    newest[part["PartNumber"]] = part
            return [part for _, part in sorted(newest.items())]
        return None

    def _join(self, key: str, upload: str, parts: "list[CompletedPartTypeDef]") -> None:
        with coded_problems():
            try:
                self.client.complete_multipart_upload(
                    Bucket=self.bucket.name,
                    Key=self._name(key),
                    UploadId=upload,
                    MultipartUpload={"Parts": parts},
                )
            except ClientError as error:
                # Another request may have completed it, or aborted it: whether there is a file decides.
                if _code(error) in REPLACED and self.size(key) is None:
                    raise _made_of_other_parts() from error
                if _code(error) not in MISSING | REPLACED:
                    raise

    def _verify(self, key: str, size_bytes: int, parts: "list[CompletedPartTypeDef]") -> None:
        """Delete the file and raise `ProblemError` unless it is made of exactly these parts."""
        try:
            with coded_problems(), _missing_files():
                head = self.client.head_object(
                    Bucket=self.bucket.name, Key=self._name(key), ChecksumMode="ENABLED"
                )
        except FileNotFoundError as error:
            raise ProblemError.of(ErrorCode.UPLOAD_STATE) from error
        checksum = _composite_checksum(parts)
        # Not every server returns a checksum of the file.
        found = head.get("ChecksumSHA256", checksum)
        if (head["ContentLength"], found) != (size_bytes, checksum):
            self.delete(key)
            raise _made_of_other_parts()


def connect(bucket: Bucket, endpoint: str) -> "S3Client":
    """Return a client for the bucket's server, which may be used by several threads at once."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=bucket.region,
        aws_access_key_id=bucket.access_key or None,
        aws_secret_access_key=bucket.secret_key or None,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path" if bucket.path_style else "virtual"},
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": TRIES},
            max_pool_connections=CONNECTIONS,
            # The checksums that matter are set here one by one; servers that know no others reject them.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


@contextmanager
def coded_problems() -> Iterator[None]:
    """Raise `ProblemError` for what the server answers or doesn't answer; what it says is for the operators only."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        code = ErrorCode.STORE_FULL if _code(error) in FULL else ErrorCode.STORE_UNAVAILABLE
        logger.error("The store failed: %s", error)
        raise ProblemError.of(code) from error


@contextmanager
def _missing_files() -> Iterator[None]:
    """Raise `FileNotFoundError` where the server answers that it has no such object or upload."""
    try:
        yield
    except ClientError as error:
        if _code(error) in MISSING:
            raise FileNotFoundError(str(error)) from error
        raise


def _code(error: Exception) -> str:
    return str(error.response.get("Error", {}).get("Code")) if isinstance(error, ClientError) else ""


def _made_of_other_parts() -> ProblemError:
    return ProblemError.of(
        ErrorCode.ARTIFACT_HASH,
        message="A part was sent more than once, with different bytes.",
        next_step="The file changed while it was uploaded: cancel the upload and start again.",
    )


def _part(stored: "PartTypeDef") -> Part:
    checksum = base64.b64decode(stored.get("ChecksumSHA256", ""))
    return Part(stored["PartNumber"], stored["Size"], checksum.hex())


def _completed(stored: "PartTypeDef", sha256: str) -> "CompletedPartTypeDef":
    """Return the part as the server wants it named to complete an upload; `sha256` is used if it lists none."""
    checksum = stored.get("ChecksumSHA256") or _base64(sha256)
    return {"PartNumber": stored["PartNumber"], "ETag": stored["ETag"], "ChecksumSHA256": checksum}


def _composite_checksum(parts: "list[CompletedPartTypeDef]") -> str:
    """Return the checksum of a file in parts as S3 defines it: the SHA-256 of the parts' SHA-256, and their number."""
    digests = b"".join(base64.b64decode(part["ChecksumSHA256"]) for part in parts)
    return f"{base64.b64encode(hashlib.sha256(digests).digest()).decode()}-{len(parts)}"


def _base64(sha256: str) -> str:
    return base64.b64encode(bytes.fromhex(sha256)).decode()
