"""The documentation on the site: every document is a page, and every link of it leads somewhere."""

import re
import runpy
import tomllib
from html import unescape
from urllib.parse import unquote

import pytest
from django.conf import settings
from django.test import Client
from django.urls import resolve, reverse
from django.utils.html import strip_tags
from pytest_django import Settings

from docvqa_site.docs import library
from docvqa_site.docs.library import Audience, slug_of
from docvqa_site.docs.rendering import SITE_PAGES, document
from docvqa_site.docs.search import passages
from tests.docvqa_site.factories import change_results, scored_submission
from tests.docvqa_site.ui.test_pages import check


@pytest.fixture(autouse=True)
def source(settings: Settings) -> None:
    settings.SOURCE_URL = "https://code.example/pfl"
    document.cache_clear()


def test_every_document_is_in_one_group_of_the_list() -> None:
    grouped = [name for documents in library.GROUPS.values() for name in documents]
    assert len(grouped) == len(set(grouped))
    assert {name for name in library.names() if not name.startswith("decisions/0")} == set(grouped)


def test_documents_keep_the_rules_of_all_pages(client: Client, db: None) -> None:
    for address in ("", "privacy/", "proofs/", "proofs/fl-provider-dp/", "checks/", "architecture/"):
        check(client, f"/docs/{address}")


def test_terms_of_pages_and_of_the_glossary_lead_to_their_entries(client: Client, db: None) -> None:
    html = document("glossary").html
    assert 'aria-label="Table 1, First terms"' in html
    for term in ("row-anls", "row-ε-δ", "row-former-member-former-reviewer"):
        assert f'<tr id="{term}">' in html
    assert html.count('<a href="#row-') > 200
    assert '<a href="#row-budget">budget</a>' in html
    submission = scored_submission()
    change_results(submission.runs.get(), epsilon=0.9)
    track = submission.track
    for page in (
        f"/tracks/{track.slug}/",
        f"/leaderboard/{track.slug}/?epsilon=1",
        submission.get_absolute_url(),
    ):
        text = client.get(page).text
        terms = re.findall(r'<a class="term" href="/docs/glossary/#([^"]+)">', text)
        assert len(terms) >= 4, page
        assert all(f'id="{unescape(one)}"' in html for one in terms), page
        assert '<li><a href="/docs/glossary/">Glossary</a></li>' in text
    assert list(library.GROUPS["Start here"])[-1] == "glossary"


def test_a_row_has_its_name_as_its_head_and_a_wide_table_of_sentences_becomes_cards() -> None:
    html = document("errors").html
    row = html.partition('<tr id="row-e_artifact_kind">')[2].partition("</tr>")[0].strip()
    assert row.startswith('<th scope="row"><code>E_ARTIFACT_KIND</code></th>')
    assert re.findall(r"<td([^>]*)>", row) == [' data-label="meaning"', ' data-label="next step"']
    for name in ("errors", "checks", "columns"):
        assert '<table class="table table-stacked">' in document(name).html
    glossary = document("glossary").html
    assert glossary.count('<th scope="row">') == glossary.count("<tr") - glossary.count("<thead>")
    # Two columns fit a phone, and numbers are for comparison.
    assert "table-stacked" not in glossary + document("published-settings").html


def test_skipping_to_the_content_passes_the_list_of_headings(client: Client, db: None) -> None:
    page = client.get("/docs/faq/").text
    assert '<a class="skip-link" href="#document">' in page
    assert re.search(r'<article class="prose" id="document" tabindex="-1">\s*<h1', page)


def test_comments_of_a_document_are_neither_shown_nor_found() -> None:
    assert "<!--" in (library.folder() / "performance.md").read_text()
    for name in library.names():
        assert "&lt;!--" not in document(name).html, name
        assert not [one for one in passages(name) if "<!--" in one.text], name


def test_a_link_whose_text_is_a_file_name_has_the_title_of_the_document() -> None:
    title = library.title("privacy")
    assert f'<a href="/docs/privacy/">{title}</a>' in document("conformance").html
    assert any(title in one.text for one in passages("conformance"))
    for name in library.names():
        assert not re.findall(r'<a href="/docs/[^"]*">[\w/-]+\.md</a>', document(name).html), name


def links_of(name: str) -> list[str]:
    return [unescape(link) for link in re.findall(r' (?:href|src)="([^"]*)"', document(name).html)]


def test_pages_of_the_site_that_documents_name_are_links() -> None:
    assert '<a href="/data/">Data</a> page' in document("faq").html
    assert '<a href="/about/contact/">Contact</a> page' in document("faq").html
    assert '<a href="/submissions/tokens/">Run tokens</a> page' in document("starter-kit").html


def test_links_between_documents_lead_to_pages_and_headings() -> None:
    for name in library.names():
        here = reverse("docs:document", args=[library.address(name)])
        for link in links_of(name):
            path, _, fragment = link.partition("#")
            if "://" in link or path.startswith("mailto:"):
                continue
            found = resolve(path or here)
            if found.view_name in SITE_PAGES.values():
                continue
            if found.view_name == "docs:file":
                assert found.kwargs["path"] in library.files(), (name, link)
                continue
            target = library.name_at(found.kwargs["address"])
            assert target, (name, link)
            if fragment:
                assert f'id="{unquote(fragment)}"' in document(target).html, (name, link)


def test_a_link_to_a_file_of_the_code_leads_to_the_source() -> None:
    assert "https://code.example/pfl/blob/HEAD/CONTRIBUTING.md" in links_of("architecture")


def test_without_a_source_address_such_a_link_says_so(settings: Settings) -> None:
    settings.SOURCE_URL = ""
    assert not [link for name in library.names() for link in links_of(name) if "/blob/" in link]


def test_a_document_has_its_contents_and_its_version(client: Client, db: None) -> None:
    html = client.get("/docs/privacy/").text
    assert 'href="#what-is-checked-besides-ε"' in html
    assert 'id="what-is-checked-besides-ε"' in html


def test_the_page_of_a_folder_lists_what_is_in_it(client: Client, db: None) -> None:
    html = client.get("/docs/decisions/").text
    assert 'href="/docs/decisions/0018-store/"' in html
    assert 'href="/docs/decisions/"' not in html


def test_front_matter_is_folded_away() -> None:
    shown = document("proofs/fl-provider-dp")
    assert "version" not in shown.html[:200]
    assert shown.metadata


def test_an_address_without_its_slash_leads_to_the_page(client: Client, db: None) -> None:
    assert client.get("/docs/privacy")["Location"] == "/docs/privacy/"
    assert client.get("/docs/proofs/README/")["Location"] == "/docs/proofs/"


@pytest.mark.parametrize(
    "address", ["nothing/", "../README/", "%2e%2e/settings/", "files/../../manage.py", "files/x.svg"]
)
def test_nothing_else_is_sent(client: Client, db: None, address: str) -> None:
    assert client.get(f"/docs/{address}").status_code == 404


def test_pictures_are_sent_within_a_sandbox(client: Client, db: None) -> None:
    response = client.get("/docs/files/architecture.svg")
    assert response["Content-Type"] == "image/svg+xml"
    assert "sandbox" in response["Content-Security-Policy"]


def test_a_proof_is_saved_as_markdown_without_its_front_matter(client: Client, db: None) -> None:
    address = "/docs/files/proofs/fl-provider-dp.md"
    assert f'href="{address}"' in client.get("/docs/proofs/fl-provider-dp/").text
    response = client.get(address)
    assert response["Content-Disposition"] == 'attachment; filename="fl-provider-dp.md"'
    assert response.text.startswith("# FL-PROVIDER-DP")
    assert client.get("/docs/files/proofs/nothing.md").status_code == 404


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("What is checked besides ε", "what-is-checked-besides-ε"),
        ("With `pfl federate`", "with-pfl-federate"),
        ("Flower's own commands", "flowers-own-commands"),
    ],
)
def test_headings_have_the_fragments_of_github(heading: str, slug: str) -> None:
    assert re.sub("`", "", slug_of(heading)) == slug


def test_the_list_has_a_line_about_each_document_but_single_proofs(client: Client, db: None) -> None:
    without = [name for lines in library.GROUPS.values() for name, line in lines.items() if not line]
    assert all(name.startswith("proofs/") for name in without)
    html = client.get("/docs/").text
    assert "Every error code, with its meaning and the next step." in html
    assert "Install <code>pfl</code>" in html
    assert html.count('href="#section-') == html.count('id="section-') == len(library.GROUPS)


def test_the_static_site_lists_every_document_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PFL_SOURCE_URL", "https://code.example/pfl")
    configuration = runpy.run_path(str(library.CHECKOUT / "conf.py"))
    listed = re.findall(r"^   (\S+/?\S*)$", configuration["navigation"](), re.M)
    chapters = [
        f"{name.rpartition('/')[0]}/{chapter}"
        for name in library.names()
        for chapter in re.findall(r"^(?!```|:)(\S+)$", configuration["chapters"](name), re.M)
    ]
    entries = [name for name in listed + chapters if not name.startswith(":")]
    assert sorted(entries) == sorted(library.names())
    link = configuration["linked"](
        "[the guide](../CONTRIBUTING.md#set-up) and [data](data.md)", "architecture"
    )
    assert (
        link == "[the guide](https://code.example/pfl/blob/HEAD/CONTRIBUTING.md#set-up) and [data](data.md)"
    )


def test_what_builds_the_static_site_is_pinned() -> None:
    root = library.CHECKOUT.parent
    extra = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["docs"]
    pins = {line.partition("==")[0] for line in (root / "constraints.txt").read_text().splitlines()}
    configuration = runpy.run_path(str(library.CHECKOUT / "conf.py"))
    needed = {"sphinx", configuration["html_theme"], *configuration["extensions"]}
    assert {name.replace("_", "-") for name in needed} <= set(extra) <= pins


def test_home_leads_to_the_command_that_installs_the_pinned_torch_without_gpus(
    client: Client, db: None
) -> None:
    (link,) = re.findall(r'href="/docs/starter-kit/#([^"]+)">install its CPU', client.get("/").text)
    command = document("starter-kit").html.partition(f'id="{link}"')[2].partition("</pre>")[0]
    (pin,) = re.findall(r"^torch==.+$", (library.CHECKOUT.parent / "constraints.txt").read_text(), re.M)
    assert "<pre data-copy" in command
    assert f"uv pip install --torch-backend cpu {pin} " in strip_tags(command)


def test_blocks_of_code_have_names_of_their_own_and_commands_are_copied(client: Client, db: None) -> None:
    page = client.get("/docs/starter-kit/").text
    names = re.findall(r'<pre(?: data-copy)? tabindex="0" role="group" aria-label="([^"]*)"><code', page)
    assert len(names) == page.count("<pre") > 10
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"Code \d+, .+", name) for name in names)
    assert "ui/copy" in page
    page = client.get("/docs/notebooks/own-method/").text
    assert page.count("<pre data-copy") == page.count('<code class="language-python') < page.count("<pre")


def test_only_what_can_be_run_or_saved_can_be_copied() -> None:
    shell = re.compile(
        r"(?:pfl|pip|python3?|hf|flwr|flower-\w+|celery|tensorboard|manage\.py|export|django-admin) |--set |codec:|"
        r"\[superlink"
    )
    for name in library.names():
        for block in re.findall(r"<pre data-copy[^>]*><code>(.*?)</code>", document(name).html, re.S):
            assert shell.match(unescape(strip_tags(block))), (name, block)


def test_commands_name_the_site_that_shows_them() -> None:
    page = strip_tags(document("roles/reader").html)
    assert f"export PFL_SITE={settings.SITE_URL}\n" in page
    assert "https://…" not in page


def test_papers_are_linked() -> None:
    assert '<a href="https://arxiv.org/abs/1602.05629">arXiv:1602.05629</a>' in document("methods").html


def test_what_readers_ask_and_what_operators_set_up_are_separate_documents(client: Client, db: None) -> None:
    assert "PFL_" not in library.read("trust-levels")
    assert "tests.proofs" not in library.read("proofs/README")
    # Addresses from before the separation.
    for document_, fragment in (
        ("trust-levels", "for-organizers"),
        ("trust-levels", "a-machine-for-examinations"),
    ):
        after = document(document_).html.partition(f'id="{fragment}"')[2]
        assert 'href="/docs/examinations/' in after[:300]
    assert 'id="a-machine-for-examinations"' in document("examinations").html


def test_each_document_is_for_somebody() -> None:
    expected = {
        "faq": Audience.VISITORS,
        "trust-levels": Audience.VISITORS,
        "formats": Audience.PARTICIPANTS,
        "roles/organizer": Audience.OPERATORS,
        "examinations": Audience.OPERATORS,
        "architecture": Audience.DEVELOPERS,
        "decisions/0028-search": Audience.DEVELOPERS,
    }
    assert {name: library.audience(name) for name in expected} == expected
    assert library.GROUP_AUDIENCES.keys() <= library.GROUPS.keys()
    assert library.AUDIENCES.keys() <= library.names()


def test_the_contents_of_a_document_are_read_before_its_text(client: Client, db: None) -> None:
    page = client.get("/docs/faq/").text
    assert page.index('class="doc-contents ') < page.index("<article")
    assert re.findall(r"<h(\d)", page)[0] == "1"
