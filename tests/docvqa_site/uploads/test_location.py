"""Where the store is, as the environment names it."""

import os
import secrets
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from docvqa_site.uploads.location import Bucket, store_location
from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.s3_store import S3Store
from tests.docvqa_site.uploads.sending import sha

KEYS = {"PFL_STORE_ACCESS_KEY": "key", "PFL_STORE_SECRET_KEY": "secret"}


def test_a_folder():
    assert store_location("file:///srv/my%20store", {}) == Path("/srv/my store")


@pytest.mark.parametrize(
    "url", ["", "/srv/store", "file://host/store", "https://bucket/prefix", "s3://", "s3:/bucket"]
)
def test_anything_else_is_rejected(url):
    with pytest.raises(ValueError, match="PFL_STORE_URL must be"):
        store_location(url, {})


def test_a_bucket_of_its_region():
    bucket = store_location("s3://data/site/", {"PFL_STORE_REGION": "eu-west-3"})
    assert isinstance(bucket, Bucket)
    assert (bucket.name, bucket.prefix, bucket.endpoint) == (
        "data",
        "site/",
        "https://s3.eu-west-3.amazonaws.com",
    )
    assert bucket.origin == "https://data.s3.eu-west-3.amazonaws.com"


def test_secrets_are_not_shown():
    assert "secret" not in repr(store_location("s3://data", KEYS))


@pytest.mark.parametrize(
    "variables",
    [
        {"PFL_STORE_REGION": "us-east-1"},
        {"PFL_STORE_REGION": "eu-central-1"},
        {"PFL_STORE_ENDPOINT": "https://s3.lab.example:9000"},
        {"PFL_STORE_ENDPOINT": "https://s3.lab.example", "PFL_STORE_PATH_STYLE": "0"},
        {"PFL_STORE_ENDPOINT": "http://s3:8333", "PFL_STORE_PUBLIC_ENDPOINT": "https://files.lab.example"},
    ],
)
def test_the_origin_is_that_of_the_addresses_for_parts_and_files(variables):
    bucket = store_location("s3://data/site", {**variables, **KEYS})
    assert isinstance(bucket, Bucket)
    store = S3Store(bucket)
    for url in (
        store.part_url("ab/c", "upload", Part(1, 3, sha(b"abc"))).url,
        store.download_url("ab/c", "f", 60),
    ):
        address = urlsplit(url)
        assert f"{address.scheme}://{address.netloc}" == bucket.origin
        assert address.path.endswith("site/ab/c")


def settings_of(code, **variables):
    result = subprocess.run(
        [sys.executable, "-c", f"from docvqa_site import settings; {code}"],
        env={**os.environ, **variables},
        text=True,
        capture_output=True,
        check=False,
    )
    return result.stdout.strip() or result.stderr


def test_pages_may_connect_to_the_bucket_and_to_nothing_else_beside_the_site(tmp_path):
    directive = "print(settings.CONTENT_SECURITY_POLICY['DIRECTIVES'].get('connect-src'))"
    home = {"PFL_HOME": str(tmp_path), "PFL_STORE_REGION": "eu-west-3"}
    assert settings_of(directive, **home) == "None"
    assert settings_of(directive, PFL_STORE_URL="s3://data", **home) == str(
        ["'self'", "https://data.s3.eu-west-3.amazonaws.com"]
    )


def test_what_the_site_writes_is_private_to_its_account(tmp_path):
    home = tmp_path / "home"
    code = "from pathlib import Path; (settings.HOME / 'mail').mkdir(); (settings.HOME / 'mail/1').write_text('x')"
    before = os.umask(0o022)
    try:
        assert settings_of(code, PFL_HOME=str(home)) == ""
        result = subprocess.run(
            [sys.executable, "-m", "django", "migrate", "accounts", "--verbosity", "0"],
            env={
                **os.environ,
                "PFL_HOME": str(home),
                "PFL_DATABASE_URL": "",
                "DJANGO_SETTINGS_MODULE": "docvqa_site.settings",
            },
            check=False,
        )
    finally:
        os.umask(before)
    assert result.returncode == 0
    assert {path.name for path in home.iterdir()} >= {"db.sqlite3", "mail", "secret_key"}
    open_to_others = [path for path in [home, *home.rglob("*")] if path.stat().st_mode & 0o077]
    assert open_to_others == []


@pytest.mark.parametrize(("mode", "left"), [(0o700, 0o700), (0o750, 0o750), (0o755, 0o750)])
def test_a_public_site_closes_its_folder_to_all_but_its_account_and_group(tmp_path, mode, left):
    tmp_path.chmod(mode)
    public = {
        "PFL_HOME": str(tmp_path),
        "PFL_SITE_URL": "https://benchmark.example",
        "PFL_SECRET_KEY": secrets.token_urlsafe(50),
        "PFL_DATABASE_URL": "postgres://site@db.internal/site",
        "PFL_BROKER_URL": "redis://broker.internal/0",
        "PFL_SMTP_URL": "smtp://mail.internal",
        "PFL_FROM_EMAIL": "benchmark@benchmark.example",
        "PFL_CONTACT": "mailto:organizers@example.org",
        "PFL_ORGANIZERS": "The Example Lab",
        "PFL_CONTROLLER": "The Example Lab, 1 Example Street",
        "PFL_LEGAL_BASIS": "The participants' consent (Article 6(1)(a) of the GDPR).",
        "PFL_SOURCE_URL": "https://code.example.org/pfl",
        "PFL_DATA_URL": "https://data.example.org/pfl-docvqa",
    }
    assert settings_of("print('starts')", **public) == "starts"
    assert tmp_path.stat().st_mode & 0o777 == left
