"""What a visitor finds who searches the documentation."""

import re
from html import unescape

import pytest
from django.test import Client

from docvqa_site.docs import library
from docvqa_site.docs.rendering import document
from docvqa_site.docs.search import MOST_RESULTS, passages, search
from evaluator.errors.codes import ErrorCode

pytestmark = pytest.mark.django_db


def results(client: Client, text: str) -> list[tuple[str, str]]:
    """Where each result leads, with its heading."""
    page = client.get("/search/", {"q": text}).text
    found = re.findall(r'<li><a href="([^"]+)">([^<]+)</a> <span class="muted small">', page)
    return [(unescape(address), unescape(heading)) for address, heading in found]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("E_RECORD_DATA", "/docs/errors/#row-e_record_data"),
        ("e_record_data", "/docs/errors/#row-e_record_data"),
        ("record.noise_size", "/docs/checks/#row-recordnoise_size"),
        ("lora.rank", "/docs/settings/#row-lorarank"),
        ("PFL_SESSION_HOURS", "/docs/operations/#row-pfl_session_hours"),
        ("epsilon_product", "/docs/columns/#row-epsilon_product"),
        ("lost tries", "/docs/privacy/#tries"),
        ("near copies", "/docs/operations/#near-copies"),
    ],
)
def test_a_name_or_a_subject_leads_to_its_place(client: Client, text: str, address: str) -> None:
    assert address in [found for found, _ in results(client, text)][:3]


def test_every_error_code_is_found_first(client: Client) -> None:
    for code in ErrorCode:
        assert search(code.value)[0].heading == code.value


def test_results_lead_to_places_that_exist() -> None:
    for name in library.names():
        html = document(name).html
        for passage in passages(name):
            _, _, fragment = passage.address.partition("#")
            assert not fragment or f'id="{fragment}"' in html, passage.address


def test_the_words_are_marked_and_everything_else_is_text(client: Client) -> None:
    page = client.get("/search/", {"q": "tokens"}).text
    assert "<mark>token</mark>" in page
    page = client.get("/search/", {"q": "<script>alert(1)</script>"}).text
    assert "<script>alert" not in page


@pytest.mark.parametrize("text", ['"', "NEAR(", "a OR", "*", "heading:x AND", "-", "ε", "x" * 1000, "  "])
def test_no_text_breaks_the_search(client: Client, text: str) -> None:
    assert client.get("/search/", {"q": text}).status_code == 200


def test_a_text_that_is_nowhere_is_said_to_be(client: Client) -> None:
    assert "No results contain all of these words" in client.get("/search/?q=xylophone+quartz").text
    assert len(results(client, "run")) == MOST_RESULTS


def test_every_page_leads_to_the_search(client: Client) -> None:
    assert 'href="/search/"' in client.get("/tracks/").text.partition("<footer")[2]
    assert 'action="/search/"' in client.get("/docs/").text
