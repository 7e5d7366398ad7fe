"""The rules of a bucket: which origin may send to it, what it removes by itself, and what the site may do."""

import base64
import hashlib
import os
from typing import TYPE_CHECKING

import requests

from docvqa_site.uploads.location import Bucket
from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.s3_store import S3Store

if TYPE_CHECKING:
    from types_boto3_s3.type_defs import BucketLifecycleConfigurationTypeDef, CORSConfigurationTypeDef

TIMEOUT_S = 30


def cors_rules(origin: str) -> "CORSConfigurationTypeDef":
    """Return the rules by which pages of this origin, and of no other, send parts and read the answers."""
    return {
        "CORSRules": [
            {
                "ID": "uploads",
                "AllowedOrigins": [origin],
                "AllowedMethods": ["GET", "HEAD", "PUT"],
                "AllowedHeaders": ["content-type", "range", "x-amz-checksum-sha256"],
                "ExposeHeaders": ["ETag", "x-amz-checksum-sha256"],
                "MaxAgeSeconds": 3600,
            }
        ]
    }


def lifecycle_rules(bucket: Bucket, days: int) -> "BucketLifecycleConfigurationTypeDef":
    """Return the rule that removes what is left of uploads that weren't completed `days` after they were begun."""
    return {
        "Rules": [
            {
                "ID": "abandoned uploads",
                "Status": "Enabled",
                "Filter": {"Prefix": bucket.prefix},
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days},
            }
        ]
    }


def site_policy(bucket: Bucket) -> dict[str, object]:
    """Return the least that the site's credentials must be allowed: its own objects, nothing of the bucket itself."""
    name = f"arn:aws:s3:::{bucket.name}"
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Objects",
                "Effect": "Allow",
                # Writing an object covers beginning, sending and completing an upload in parts.
                "Action": [
                    "s3:PutObject",
                    "s3:GetObject",
                    "s3:DeleteObject",
                    "s3:AbortMultipartUpload",
                    "s3:ListMultipartUploadParts",
                ],
                "Resource": f"{name}/{bucket.prefix}*",
            },
            {
                # Without it, the answer to a request for a missing object isn't that it is missing.
                "Sid": "MissingObjects",
                "Effect": "Allow",
                "Action": "s3:ListBucket",
                "Resource": name,
                "Condition": {"StringLike": {"s3:prefix": f"{bucket.prefix}*"}},
            },
        ],
    }


def failed_checks(store: S3Store) -> list[str]:
    """Send a small file through the store as a participant would, and return what the server doesn't do as it must."""
    key = f"check/{os.urandom(8).hex()}"
    content = b"what the site wants to store"
    part = Part(1, len(content), hashlib.sha256(content).hexdigest())
    upload = store.begin(key, len(content))
    failed = []
    try:
        address = store.part_url(key, upload, part)
        if _put(address.url, content[::-1], address.headers) < 400:
            failed.append("The server stores a part that doesn't match its signed SHA-256.")
        other = {"x-amz-checksum-sha256": base64.b64encode(hashlib.sha256(b"").digest()).decode()}
        if _put(address.url, b"", other) < 400:
            failed.append("The server accepts headers that differ from the signed ones.")
        if (status := _put(address.url, content, address.headers)) >= 400:
            return [*failed, f"It rejects a part that is as it was signed, with status {status}."]
        store.complete(key, upload, [part])
        answer = requests.get(
            store.download_url(key, "check.txt", 60), headers={"Range": "bytes=5-7"}, timeout=TIMEOUT_S
        )
        if (answer.status_code, answer.content) != (206, content[5:8]):
            failed.append(f"It answers the request for a range with status {answer.status_code}.")
    finally:
        store.abort(key, upload)
        store.delete(key)
    return failed


def _put(url: str, content: bytes, headers: dict[str, str]) -> int:
    return requests.put(url, data=content, headers=headers, timeout=TIMEOUT_S).status_code
