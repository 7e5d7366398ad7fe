import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from docvqa_site.about.citations import AUTHORS, TITLE
from docvqa_site.periods import PERIODS
from docvqa_site.submissions.retention import RULES
from evaluator.messages.jobs import evaluator_version
from tests.docvqa_site.ui.test_pages import check

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


def test_the_data_set_and_the_competition_are_cited_by_their_papers(
    client: Client, settings: Settings
) -> None:
    settings.ORGANIZERS = "The Example Lab"
    page = unescape(client.get("/about/cite/").text)
    assert "Privacy-Aware Document Visual Question Answering" in page
    assert "doi          = {10.1007/978-3-031-70552-6_12}" in page
    assert "NeurIPS 2023 Competition: Privacy Preserving Federated Learning Document VQA" in page
    assert "eprint       = {2411.03730}" in page
    assert "author       = {Marlon Tobaben and Mohamed Ali Souibgui and " in page
    assert "This site is run by The Example Lab" in page


def test_the_sources_of_the_data_and_their_licenses_are_named_wherever_the_data_are_cited(
    client: Client,
) -> None:
    page = unescape(client.get("/about/cite/").text)
    citation, data = (
        (Path(__file__).parents[3] / path).read_text() for path in ("CITATION.cff", "docs/data.md")
    )
    for named in (page, citation, data):
        for source in ("DocILE", "2302.05658", "MIT", "Amazon Textract", "2411.03730"):
            assert source in named
        assert re.search("CC[ -]BY[ -]4.0", named)


def test_the_citation_names_whom_the_repository_names() -> None:
    citation = (Path(__file__).parents[3] / "CITATION.cff").read_text()
    assert f"name: {AUTHORS}" in citation
    assert TITLE.partition(":")[0] in citation


class TestPrivacyNotice:
    def test_it_names_who_is_responsible_and_how_to_reach_them(
        self, client: Client, settings: Settings
    ) -> None:
        settings.PRIVACY_CONTACT = "mailto:data@example.org"
        settings.CONTROLLER = "The Example Lab, 1 Example Street"
        settings.LEGAL_BASIS = "We store it with your consent."
        check(client, "/about/privacy/")
        page = client.get("/about/privacy/").text
        assert "The Example Lab, 1 Example Street is responsible" in page
        assert "We store it with your consent." in page
        assert 'href="mailto:data@example.org">data@example.org<' in page

    def test_it_has_the_times_that_the_site_is_configured_for(
        self, client: Client, settings: Settings
    ) -> None:
        settings.RETENTION_UPLOAD_DAYS = 11
        settings.RETENTION_DRAFT_DAYS = 222
        settings.RETENTION_CHECKPOINT_DAYS = 333
        settings.RETENTION_NOTIFICATION_DAYS = 44
        settings.RETENTION_MAIL_DAYS = 66
        settings.SESSION_COOKIE_AGE = 55 * 3600
        page = client.get("/about/privacy/").text
        for shown in (
            "11 days after they were started",
            "222 days after the last file",
            "333 days after the track closed",
            "44 days after they were written",
            "66 days after they were delivered",
            "55 hours",
            "200 newer ones",
        ):
            assert shown in page

    def test_a_rule_that_is_off_is_no_limit(self, client: Client, settings: Settings) -> None:
        for name in ("UPLOAD", "DRAFT", "CHECKPOINT", "NOTIFICATION", "MAIL"):
            setattr(settings, f"RETENTION_{name}_DAYS", 0)
        page = client.get("/about/privacy/").text
        assert "0 days" not in page
        assert page.count("<td>no limit</td>") == 2
        assert "no limit; the text of a delivered one" in page

    def test_its_table_has_every_rule_of_the_clock(self) -> None:
        # What the store couldn't delete at once holds nothing that the other rules don't name.
        assert RULES.keys() - {"leftovers"} == PERIODS.keys() - {"accounts", "results"}
        guide = (Path(__file__).parents[3] / "docs/storage.md").read_text()
        for rule, period in PERIODS.items():
            if period.setting:
                (row,) = [line for line in guide.splitlines() if line.startswith(f"| `{rule}` |")]
                assert f"`PFL_{period.setting}`" in row
                assert f" {period.days} days" in row or (not period.days and "never by default" in row)

    def test_it_names_other_sites_only_where_people_can_sign_in_with_them(
        self, client: Client, settings: Settings
    ) -> None:
        settings.SOCIALACCOUNT_PROVIDERS = {}
        assert "GitHub" not in client.get("/about/privacy/").text
        settings.SOCIALACCOUNT_PROVIDERS = {"github": {"APPS": [{"client_id": "id", "secret": "secret"}]}}
        assert "If you sign in with GitHub:" in client.get("/about/privacy/").text


def test_the_code_of_conduct_says_where_to_report(client: Client, settings: Settings) -> None:
    check(client, "/about/conduct/")
    assert "no contact address" in client.get("/about/conduct/").text
    settings.CONTACT = "mailto:organizers@example.org"
    assert 'href="mailto:organizers@example.org"' in client.get("/about/conduct/").text


@pytest.mark.parametrize("address", ["/about/privacy/", "/about/conduct/"])
def test_every_page_signing_up_and_the_sitemap_lead_there(client: Client, address: str) -> None:
    link = f'href="{address}"'
    footer = client.get("/tracks/").text.partition("<footer")[2]
    form = client.get("/account/signup/").text.partition("<main")[2].partition("</main>")[0]
    assert link in footer
    assert link in form
    assert f"{address}</loc>" in client.get("/sitemap.xml").text
