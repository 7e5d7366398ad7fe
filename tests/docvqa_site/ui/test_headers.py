"""The headers for browsers, proxies and robots on every page."""

import re

import pytest
from django.templatetags.static import static
from django.test import Client
from django.urls import resolve
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from pytest_django import Settings

from tests.docvqa_site.factories import make_track, make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "path", ["/account/", "/account/tokens/", "/team/", "/submissions/", "/tracks/", "/api/v1/me"]
)
def test_what_somebody_sees_is_stored_nowhere(client: Client, path: str) -> None:
    client.force_login(make_user())
    assert "no-store" in client.get(path)["Cache-Control"]


def test_what_everybody_sees_may_be_stored(client: Client) -> None:
    assert "Cache-Control" not in client.get("/tracks/")
    assert "public" in client.get("/robots.txt")["Cache-Control"]


def test_unused_features_of_the_browser_are_off(client: Client) -> None:
    policy = client.get("/tracks/")["Permissions-Policy"]
    assert "camera=()" in policy
    assert "geolocation=()" in policy
    assert "publickey-credentials-get=(self)" in policy


def test_a_logo_is_where_browsers_look_for_it(client: Client) -> None:
    # The admin names none. An error page here would renew the CSRF cookie of whoever logs in meanwhile.
    response = client.get("/favicon.ico")
    assert response["Location"] == static("ui/logo.svg")
    assert not response.cookies


def test_robots_leave_accounts_alone(client: Client) -> None:
    response = client.get("/robots.txt")
    assert response["Content-Type"].startswith("text/plain")
    lines = response.content.decode().splitlines()
    assert lines[0] == "User-agent: *"
    assert lines[-1] == "Sitemap: http://127.0.0.1:8000/sitemap.xml"
    hidden = {"/account/", "/admin/", "/api/", "/leaderboard/*/compare/"}
    assert {f"Disallow: {path}" for path in hidden} <= set(lines)


def test_the_sitemap_lists_pages_that_are_there(client: Client) -> None:
    track = make_track()
    text = client.get("/sitemap.xml").content.decode()
    found = re.findall(r"<loc>http://127.0.0.1:8000(/[^<]*)</loc>", text)
    assert {"/", "/data/", "/docs/privacy/", track.get_absolute_url()} <= set(found)
    assert len(found) == len(set(found))
    resolved = [resolve(path) for path in found]
    assert all(match.view_name for match in resolved)


def test_security_txt_says_whom_to_tell(client: Client, settings: Settings) -> None:
    settings.SECURITY_CONTACT = "mailto:security@example.org"
    response = client.get("/.well-known/security.txt")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    fields = dict(re.findall(r"^([\w-]+): (.*)$", response.content.decode(), re.MULTILINE))
    assert fields["Contact"] == "mailto:security@example.org"
    assert fields["Canonical"] == "http://127.0.0.1:8000/.well-known/security.txt"
    expires = parse_datetime(fields["Expires"])
    assert expires is not None
    assert 0 < (expires - timezone.now()).days < 366
