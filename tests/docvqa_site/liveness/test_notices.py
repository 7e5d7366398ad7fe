"""Lines at the top of every page."""

import pytest
from django.test import Client

NOTICE = "This is a trial of the competition in May."


@pytest.mark.django_db
def test_a_site_says_on_every_page_what_its_operator_wants_known(client: Client, settings) -> None:
    first = client.get("/")
    settings.NOTICE = NOTICE
    for address in ("/", "/docs/", "/nothing-here/"):
        assert NOTICE in client.get(address, headers={"If-None-Match": first.get("ETag", "")}).text


@pytest.mark.django_db
def test_every_page_names_who_runs_the_site(client: Client, settings) -> None:
    assert "run by" not in client.get("/docs/").text
    settings.ORGANIZERS = "The Example Lab"
    assert "run by The Example Lab" in client.get("/docs/").text
