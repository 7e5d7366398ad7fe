"""Inviting people and writing to them in a real browser: a track is asked for only where it matters."""

from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, expect

from tests.docvqa_site.factories import make_organizer, make_track

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.mark.parametrize(
    ("address", "menu", "alone", "every"),
    [
        ("people/", "role", "organizer", ["reviewer", "all_tracks"]),
        ("announcement/", "audience", "in_track", ["everyone", "members"]),
    ],
)
def test_a_track_is_asked_for_only_where_it_matters(
    live_server: Any, client: Client, browser: Browser, address: str, menu: str, alone: str, every: list[str]
) -> None:
    make_track(name="Few bytes")
    client.force_login(make_organizer(is_superuser=True))
    page = browser.new_page()
    session = client.cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
    page.goto(f"{live_server.url}/organize/{address}")
    for choice, is_shown in ((alone, True), *((one, False) for one in every), (alone, True)):
        page.locator(f"[name={menu}]").select_option(choice)
        expect(page.locator("[name=track]")).to_be_visible(visible=is_shown)
