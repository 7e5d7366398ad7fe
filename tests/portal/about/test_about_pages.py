from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from evaluator.contracts import evaluator_version
from portal.about.citations import AUTHORS, TITLE
from tests.portal.ui.test_pages import check

pytestmark = pytest.mark.django_db


def test_the_contact_page_names_who_runs_the_site(client: Client, settings: Settings) -> None:
    settings.CONTACT = "mailto:organizers@example.org"
    settings.ORGANIZERS = "The Example Lab"
    settings.SOURCE_URL = "https://code.example/pfl"
    check(client, "/about/contact/")
    page = client.get("/about/contact/").text
    address = 'href="mailto:organizers@example.org">organizers@example.org<'
    for shown in (address, "The Example Lab", "code.example/pfl"):
        assert shown in page


def test_a_site_on_one_machine_says_that_it_has_no_contact(client: Client) -> None:
    check(client, "/about/contact/")
    assert "no contact address" in client.get("/about/contact/").text


def test_the_benchmark_is_cited_in_the_version_that_runs(client: Client) -> None:
    check(client, "/about/cite/")
    page = client.get("/about/cite/").text
    assert f"version      = {{{evaluator_version()}}}" in page
    assert "@misc{" in page


def test_the_citation_names_whom_the_repository_names() -> None:
    citation = (Path(__file__).parents[3] / "CITATION.cff").read_text()
    assert f"name: {AUTHORS}" in citation
    assert TITLE.partition(":")[0] in citation
