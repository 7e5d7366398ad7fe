"""`manage.py configure_store`, on a real S3 server."""

import json
from dataclasses import replace

import pytest
import requests
from botocore.exceptions import ClientError
from django.core.management import CommandError, call_command

from tests.docvqa_site.uploads.sending import sha

pytestmark = pytest.mark.xdist_group("s3")

ORIGIN = "http://127.0.0.1:8000"


@pytest.fixture
def site(settings, bucket):
    settings.STORE_BUCKET = bucket
    return bucket


def preflight(bucket, origin, method="PUT"):
    """The server's answer to a browser that wants to send a part from a page of `origin`."""
    return requests.options(
        f"{bucket.endpoint}/{bucket.name}/{bucket.prefix}ab/key",
        headers={
            "Origin": origin,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "x-amz-checksum-sha256",
        },
        timeout=30,
    )


def test_it_prints_what_the_bucket_needs_and_changes_nothing(site, seaweedfs, capsys):
    seaweedfs.client.delete_bucket_cors(Bucket=site.name)
    call_command("configure_store")
    printed = capsys.readouterr().out
    assert f'"AllowedOrigins": [\n        "{ORIGIN}"' in printed
    assert f'"Resource": "arn:aws:s3:::{site.name}/{site.prefix}*"' in printed
    assert "Workers and participants don't need any" in printed
    with pytest.raises(ClientError, match="NoSuchCORSConfiguration"):
        seaweedfs.client.get_bucket_cors(Bucket=site.name)


def test_pages_of_the_site_may_send_parts_and_those_of_others_may_not(site):
    call_command("configure_store", "--apply")
    allowed = preflight(site, ORIGIN)
    assert allowed.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "PUT" in allowed.headers["Access-Control-Allow-Methods"]
    assert (
        preflight(site, ORIGIN, "DELETE").headers.get("Access-Control-Allow-Methods", "").count("DELETE") == 0
    )
    for origin in ("https://evil.example", "http://127.0.0.1:8001", "null"):
        assert "Access-Control-Allow-Origin" not in preflight(site, origin).headers


def test_the_bucket_removes_abandoned_uploads_a_day_after_the_site(site, seaweedfs, settings):
    settings.RETENTION_UPLOAD_DAYS = 3
    call_command("configure_store", "--apply")
    (rule,) = seaweedfs.client.get_bucket_lifecycle_configuration(Bucket=site.name)["Rules"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 4}
    assert json.dumps(rule).count(site.prefix) == 1


def test_a_server_that_does_what_the_site_relies_on_passes_the_check(site, seaweedfs, capsys):
    call_command("configure_store", "--check")
    assert "The server meets all of the site's requirements." in capsys.readouterr().out
    left = seaweedfs.client.list_objects_v2(Bucket=site.name, Prefix=site.prefix)
    assert left["KeyCount"] == 0


def test_a_server_that_does_not_verify_parts_fails_the_check(site, monkeypatch):
    real_put = requests.put
    signed: dict[str, dict[str, str]] = {}

    def put_what_was_signed(url, data, headers, timeout):
        content = b"what the site wants to store"
        return real_put(url, data=content, headers=signed.setdefault(url, headers), timeout=timeout)

    monkeypatch.setattr("docvqa_site.uploads.bucket_rules.requests.put", put_what_was_signed)
    with pytest.raises(CommandError, match="stores a part that doesn't match its signed SHA-256"):
        call_command("configure_store", "--check")


def test_wrong_credentials_are_reported(site, settings):
    settings.STORE_BUCKET = replace(site, secret_key=sha(b"wrong"))
    with pytest.raises(CommandError, match="SignatureDoesNotMatch"):
        call_command("configure_store", "--apply")


def test_a_site_without_a_bucket_has_nothing_to_configure():
    with pytest.raises(CommandError, match="doesn't name a bucket"):
        call_command("configure_store")
