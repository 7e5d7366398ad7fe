"""The rules of every page: no inline script or style, one main heading, an accessible frame, the site's policy."""

from html.parser import HTMLParser

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from docvqa_site.accounts.models import User
from tests.docvqa_site.factories import make_team, make_track, make_user

PUBLIC = [
    "/",
    "/account/login/",
    "/account/signup/",
    "/account/password/reset/",
    "/account/password/reset/done/",
    "/account/confirm-email/",
    "/account/confirm-email/nonsense/",
    "/account/password/reset/key/1-nonsense/",
    "/account/inactive/",
    "/account/linked/login/cancelled/",
    "/tracks/",
    "/tracks/track-1/",
    "/tracks/track-2/",
    "/leaderboard/",
    "/leaderboard/track-1/",
    "/leaderboard/track-2/",
    "/leaderboard/track-2/?epsilon=4",
    "/leaderboard/track-1/progress/",
    "/participation/",
    "/search/",
    "/search/?q=E_RECORD_DATA",
    "/nothing-here/",
]
PRIVATE = [
    "/account/",
    "/account/tokens/",
    "/account/data/",
    "/account/notifications/",
    "/account/linked/",
    "/account/email/",
    "/account/password/change/",
    "/account/logout/",
    "/team/",
    "/team/create/",
    "/submissions/",
]


class Outline(HTMLParser):
    """What of a page the rules below are about."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.headings = 0
        self.ids: list[str] = []
        self.labels: set[str] = set()
        self.controls: list[dict[str, str | None]] = []
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        # JSON in a script element is data that no browser runs.
        is_code = tag == "script" and "src" not in values and values.get("type") != "application/json"
        if tag == "style" or is_code:
            self.inline.append(f"<{tag}>")
        self.inline += [name for name in values if name == "style" or name.startswith("on")]
        self.headings += tag == "h1"
        if values.get("id"):
            self.ids.append(str(values["id"]))
        if tag == "label":
            self.labels.add(values.get("for") or "")
        if tag in {"input", "select", "textarea"} and values.get("type") not in {"hidden", "submit"}:
            self.controls.append(values)
        # Named for readers elsewhere, and not loaded.
        if tag == "link" and values.get("rel") in {"canonical", "alternate"}:
            return
        loaded = values.get("src") or (values.get("href") if tag == "link" else "") or ""
        if loaded.startswith(("http:", "https:", "//")):
            self.foreign.append(loaded)


def check(client: Client, path: str) -> None:
    response = client.get(path)
    html = response.content.decode()
    outline = Outline()
    outline.feed(html)
    policy = response["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert not outline.inline
    assert not outline.foreign
    assert outline.headings == 1
    assert len(outline.ids) == len(set(outline.ids))
    for control in outline.controls:
        assert control.get("id") in outline.labels or control.get("aria-label"), control
    target = html.partition('class="skip-link" href="#')[2].partition('"')[0]
    assert target in outline.ids
    for landmark in ('<main id="content"', '<html lang="en">'):
        assert landmark in html


@pytest.fixture
def tracks(db: None) -> None:
    call_command("load_tracks", "--publish")


@pytest.mark.usefixtures("tracks")
@pytest.mark.parametrize("path", PUBLIC)
def test_public_pages_keep_the_rules(client: Client, path: str) -> None:
    check(client, path)


@pytest.mark.usefixtures("tracks")
@pytest.mark.parametrize("path", PRIVATE)
def test_private_pages_keep_the_rules_and_ask_for_a_login(client: Client, path: str) -> None:
    anonymous = client.get(path)
    assert anonymous.status_code == 302
    client.force_login(make_user(password="rose-hill-42-x"))
    check(client, path)


def test_a_person_without_a_password_is_offered_to_set_one(client: Client, db: None) -> None:
    client.force_login(make_user())
    assert client.get("/account/password/change/")["Location"] == "/account/password/set/"
    check(client, "/account/password/set/")


@pytest.mark.usefixtures("tracks")
def test_the_pages_of_a_team_follow_the_rules(client: Client) -> None:
    owner = make_user()
    team = make_team(owner)
    client.force_login(owner)
    for path in ("/team/", "/team/edit/", f"/teams/{team.slug}/"):
        check(client, path)


def test_the_navigation_marks_where_one_is(client: Client, db: None) -> None:
    track = make_track()
    html = client.get(reverse("challenge:track", args=[track.slug])).content.decode()
    assert '<a href="/tracks/" aria-current="page">Tracks</a>' in html
    assert '<a href="/leaderboard/">Leaderboards</a>' in html


def test_addresses_that_people_try_lead_somewhere(client: Client, db: None) -> None:
    assert client.get("/teams/")["Location"] == "/leaderboard/"
    assert client.get("/api/")["Location"] == client.get("/api/v1/")["Location"] == "/api/v1/docs"


def test_a_page_names_its_one_address_and_what_others_show_of_it(client: Client, db: None) -> None:
    html = client.get("/tracks/?from=mail").text
    assert '<link rel="canonical" href="http://127.0.0.1:8000/tracks/">' in html
    assert 'property="og:image" content="http://127.0.0.1:8000/static/ui/card.png"' in html
    assert '<meta name="description" content="' in html
    assert "canonical" not in client.get("/nothing-here/").text


def test_the_account_menu_names_the_person(client: Client, db: None) -> None:
    client.force_login(make_user(name="Ada Lovelace"))
    html = client.get("/account/").content.decode()
    assert '<summary><span class="menu-name">Ada Lovelace</span></summary>' in html
    assert "Administration" not in html


def test_staff_find_the_administration(client: Client, db: None) -> None:
    client.force_login(make_user(is_staff=True))
    assert "Administration" in client.get("/account/").content.decode()


def test_the_account_menu_escapes_names(client: Client, db: None) -> None:
    client.force_login(make_user(name="<b>Ada</b>"))
    assert "<b>Ada</b>" not in client.get("/account/").content.decode()


def test_a_fault_shows_the_error_page_of_the_site(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> User:
        raise RuntimeError("secret detail")

    client.raise_request_exception = False
    client.force_login(make_user())
    monkeypatch.setattr("docvqa_site.accounts.views.active_tokens", broken)
    response = client.get("/account/tokens/")
    assert response.status_code == 500
    assert b"Something went wrong" in response.content
    assert b"secret detail" not in response.content


def test_a_forged_form_gets_an_explanation(db: None) -> None:
    response = Client(enforce_csrf_checks=True).post("/account/login/", {"login": "a", "password": "b"})
    assert response.status_code == 403
    assert b"The form has expired" in response.content


def test_the_database_needs_no_migration_that_is_not_written(db: None) -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
