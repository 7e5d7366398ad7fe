"""What a visitor finds who searches the documentation."""

import re
from html import unescape

import pytest
from django.test import Client

from docvqa_site.docs import library
from docvqa_site.docs.library import Audience
from docvqa_site.docs.rendering import document
from docvqa_site.docs.search import MOST_RESULTS, passages, search
from evaluator.errors.codes import ErrorCode

pytestmark = pytest.mark.django_db


def results(client: Client, text: str) -> list[tuple[str, str]]:
    """Where each result leads, with its heading."""
    page = client.get("/search/", {"q": text}).text
    rows = page.partition('class="search-results"')[2].partition("<footer")[0]
    found = re.findall(r'<li><a href="([^"]+)">([^<]+?) ?</?[as]', rows)
    return [(unescape(address), unescape(heading)) for address, heading in found]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("E_RECORD_DATA", "/docs/errors/#row-e_record_data"),
        ("e_record_data", "/docs/errors/#row-e_record_data"),
        ("record.noise_size", "/docs/checks/#row-recordnoise_size"),
        ("noise level", "/docs/checks/#row-recordnoise_size"),
        ("lora.rank", "/docs/settings/#row-lorarank"),
        ("PFL_SESSION_HOURS", "/docs/operations/#row-pfl_session_hours"),
        ("epsilon_product", "/docs/columns/#row-epsilon_product"),
        ("unresolved challenges", "/docs/privacy/#unresolved-challenges"),
        ("DP-LoRA", "/docs/methods/#dp-lora"),
        ("near copies", "/docs/operations/#near-copies"),
        ("membership inference", "/docs/leakage/"),
        ("bandwidth", "/docs/bytes/"),
        ("what could still be false", "/docs/forging/"),
        ("confidence interval", "/docs/glossary/#row-95-interval-confidence-interval"),
        ("confidence interval", "/docs/leaderboards/#how-certain-a-rank-is"),
        ("95% interval", "/docs/glossary/#row-95-interval-confidence-interval"),
        ("under review", "/docs/glossary/#row-proof-accepted-proof-rejected-under-review"),
        *((term, "/docs/glossary/#row-l0-l1-l2-l3") for term in ("L0", "L3")),
        ("first download", "/docs/glossary/#row-first-download"),
        ("unseen provider", "/docs/glossary/#row-seen-provider-unseen-provider"),
        ("how far can I trust a number", "/docs/faq/#how-far-can-i-trust-a-number-on-a-leaderboard"),
        ("joint ε evidence", "/docs/leaderboards/#reading-a-page-of-evidence"),
        *(
            (term, f"/docs/glossary/#row-{term.lower()}")
            for term in ("AUC", "PLD", "RDP", "LoRA", "NF4", "FedAvg")
        ),
        ("Pareto front", "/docs/glossary/#row-pareto-front"),
        ("ANLS threshold", "/docs/glossary/#row-anls-threshold"),
        ("accuracy", "/docs/glossary/#row-accuracy"),
        *(
            (term, address)
            for term in ("epsilon", "ε")
            for address in ("/docs/glossary/#row-ε-δ", "/docs/privacy/#what-ε-means-in-numbers")
        ),
        ("state of the art", "/docs/competition-tables/"),
        ("trust", "/docs/glossary/#row-trust-level"),
        ("federated learning", "/docs/glossary/#row-federated-learning"),
    ],
)
def test_a_name_or_a_subject_leads_to_its_place(client: Client, text: str, address: str) -> None:
    assert address in [found for found, _ in results(client, text)][:3]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("how many participants", "/participation/"),
        ("how many teams take part?", "/participation/"),
        ("dataset", "/data/"),
        ("download dataset", "/data/"),
        ("where can I download the data-set?", "/data/"),
        ("Tobaben", "/about/cite/#tobaben2024neurips"),
        ("2411.03730", "/about/cite/#tobaben2024neurips"),
        ("DocILE paper", "/about/cite/#simsa2023docile"),
        ("leader board", "/leaderboard/"),
        ("how do I take part", "/tracks/"),
        ("winners", "/results/"),
        ("contact the organizers", "/about/contact/"),
        ("who organizes", "/about/contact/"),
    ],
)
def test_a_visitor_finds_the_page_of_the_site_before_the_documents(
    client: Client, text: str, address: str
) -> None:
    assert address in [found for found, _ in results(client, text)][:2]


@pytest.mark.parametrize(
    "text", ["how many participants", "dataset", "download", "install", "submission", "privacy", "score"]
)
def test_what_is_written_for_visitors_comes_before_what_is_for_operators(text: str) -> None:
    names = [one.address.split("#")[0].removeprefix("/docs/") for one in search(text)[:5]]
    audiences = [library.audience(library.name_at(name) or "") for name in names]
    assert len(audiences) == 5
    assert not {Audience.OPERATORS, Audience.DEVELOPERS} & {*audiences}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("back up and restore", "/docs/operations/#backup-and-restore"),
        ("UploadsPileUp", "/docs/operations/#uploadspileup"),
        ("kubernetes", "/docs/operations/#with-containers"),
        ("machine for examinations", "/docs/examinations/#a-machine-for-examinations"),
        ("runbook", "/docs/operations/#runbook"),
        ("worker", "/docs/workers/"),
    ],
)
def test_a_question_about_running_a_site_finds_what_is_for_operators(text: str, address: str) -> None:
    assert any(one.address.startswith(address) for one in search(text)[:3])


def test_a_name_in_documents_for_operators_gives_way_to_the_same_one_elsewhere() -> None:
    assert "/docs/workers/#leakage" not in [one.address for one in search("leakage")[:5]]


@pytest.mark.parametrize(
    "text", ["what could be false", "what could still be false", "Can a record be forged?"]
)
def test_a_question_that_a_document_answers_as_a_whole_leads_to_it(text: str) -> None:
    assert search(text)[0].address == "/docs/forging/"


def test_an_error_code_comes_after_what_explains_its_words() -> None:
    assert "Error code" not in [one.kind for one in search("dataset")[:5]]


def test_a_column_is_found_without_the_mark_that_it_is_a_result() -> None:
    column = next(one for one in search("joint_epsilon") if one.heading == "joint_epsilon")
    assert column.excerpt.startswith("Total")


@pytest.mark.parametrize("role", ["reviewer", "organizer", "Participant"])
def test_the_guide_for_a_role_is_found_by_its_name_beside_the_term(role: str) -> None:
    assert f"/docs/roles/{role.lower()}/" in [one.address for one in search(role)[:2]]


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


def test_no_excerpt_is_code_but_code_is_found() -> None:
    assert not any("num_examples" in one.excerpt or "```" in one.excerpt for one in search("epsilon"))
    found = next(
        one for one in search("pfl base create base") if one.address.startswith("/docs/starter-kit/")
    )
    assert "pfl base create base" not in found.excerpt


@pytest.mark.parametrize("text", ['"', "NEAR(", "a OR", "*", "heading:x AND", "-", "ε", "x" * 1000, "  "])
def test_no_text_breaks_the_search(client: Client, text: str) -> None:
    assert client.get("/search/", {"q": text}).status_code == 200


def test_a_text_that_is_nowhere_is_said_to_be(client: Client) -> None:
    assert "No result contains these words" in client.get("/search/?q=xylophone+quartz").text
    assert len(search("run")) == MOST_RESULTS


def test_every_page_leads_to_the_search(client: Client) -> None:
    page, _, footer = client.get("/tracks/").text.partition("<footer")
    assert '<a class="site-search" href="/search/" ' in page
    assert 'href="/search/"' in footer
    assert 'href="/results/"' in footer
    assert 'action="/search/"' in client.get("/docs/").text


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("contact", "/about/contact/"),
        ("privacy notice", "/about/privacy/"),
        ("code of conduct", "/about/conduct/"),
        ("cite", "/about/cite/"),
        ("cite a result", "/about/cite/"),
        ("how to cite", "/about/cite/"),
        ("calculator", "/privacy/calculator/"),
        ("participation", "/participation/"),
        ("statistics", "/participation/"),
        ("standings", "/results/"),
        ("finished phase", "/results/"),
    ],
)
def test_a_page_of_the_site_is_found_first(client: Client, text: str, address: str) -> None:
    assert results(client, text)[0][0] == address


@pytest.mark.parametrize(("typed", "meant"), [("joint epsilon", "joint ε"), ("Delta", "δ")])
def test_a_greek_letter_is_found_by_its_name(typed: str, meant: str) -> None:
    found = search(typed)
    assert {one.address for one in found} & {one.address for one in search(meant)}
    assert any(f"<mark>{meant[-1]}" in one.excerpt or meant[-1] in one.heading for one in found)


def test_an_explanation_comes_before_the_settings_with_the_word_in_their_names(client: Client) -> None:
    kinds = [one.kind for one in search("epsilon")]
    assert not any(kind.startswith("Setting") for kind in kinds[:3])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("leaderbord", "leaderboard"),
        ("differntial privcy", "differential privacy"),
        ("membreship inferense", "membership inference"),
    ],
)
def test_a_misspelt_word_is_corrected(client: Client, typed: str, meant: str) -> None:
    page = client.get("/search/", {"q": typed}).text
    assert f">{meant}</a>?" in page
    assert results(client, meant)


def test_a_question_finds_what_has_most_of_its_words(client: Client) -> None:
    page = client.get("/search/", {"q": "how is the recomputed epsilon zzgrmpf computed"}).text
    assert "These contain some of them" in page
    assert results(client, "how is the recomputed epsilon zzgrmpf computed")


def test_what_is_like_nothing_leads_to_the_lists(client: Client) -> None:
    page = client.get("/search/", {"q": "zzgrmpfqx"}).text
    assert "Did you mean" not in page
    assert "list of documents" in page
