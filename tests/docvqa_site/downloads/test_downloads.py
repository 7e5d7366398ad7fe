"""What visitors download: the list, terms that are accepted by version, and files that resume."""

import hashlib
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client
from pytest_django import Settings

from docvqa_site.accounts.models import Scope
from docvqa_site.accounts.services import create_token
from docvqa_site.audit.models import AuditEntry
from docvqa_site.downloads.models import Acceptance, Download, Terms
from docvqa_site.downloads.services import accept
from tests.docvqa_site.factories import make_user
from tests.docvqa_site.ui.test_pages import check

pytestmark = pytest.mark.django_db
CONTENT = bytes(range(256)) * 50


def offer(folder: Path, *options: str, name: str = "data.zip", content: bytes = CONTENT) -> Download:
    file = folder / name
    file.write_bytes(content)
    call_command(
        "add_download", file, "--kind", "data", "--title", "Training data", "--license", "CC-BY-4.0", *options
    )
    return Download.objects.get(slug="training-data")


def make_terms(version: str = "1") -> Terms:
    return Terms.objects.create(
        title="Data agreement", version=version, text="# Agreement\n\nNo *redistribution*."
    )


def test_the_page_lists_size_hash_and_license(client: Client, tmp_path: Path) -> None:
    download = offer(tmp_path)
    check(client, "/data/")
    page = client.get("/data/").text
    assert hashlib.sha256(CONTENT).hexdigest() == download.sha256
    for shown in ("Training data", "data.zip", "12.8 kB", download.sha256, "CC-BY-4.0"):
        assert shown in page


def test_an_empty_page_says_what_needs_no_download(client: Client) -> None:
    check(client, "/data/")
    page = client.get("/data/").text
    assert "pfl data forms" in page
    assert 'href="/docs/data/#the-competitions-data-sources-and-licenses">' in page


def test_where_the_kit_is_stated_with_or_without_its_wheel(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    settings.SOURCE_URL = ""
    assert "ask the organizers" not in client.get("/data/").text
    settings.CONTACT = "mailto:organizers@example.org"
    page = client.get("/data/").text
    assert "from a clone of the source repository (to get access, " in page
    assert "ask the organizers" in page
    assert "ask the organizers" in client.get("/?first").text
    settings.SOURCE_URL = "https://code.example/pfl"
    for address in ("/data/", "/?second"):
        assert 'from the <a href="https://code.example/pfl">source repository</a>' in client.get(address).text
    settings.SOURCE_URL = ""
    assert "in a clone of the repository" in page
    wheel = tmp_path / "pfl_docvqa_benchmark-1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    call_command("add_download", wheel, "--kind", "kit", "--title", "Starter kit", "--license", "Apache-2.0")
    download = Download.objects.get(kind="kit")
    page = client.get("/data/").text
    assert "source repository" not in page
    assert "source repository" not in client.get("/?third").text
    assert f"{settings.SITE_URL}{download.get_absolute_url()}&quot;" in page


def test_a_file_is_sent_from_the_store_and_resumes(client: Client, tmp_path: Path) -> None:
    download = offer(tmp_path)
    address = client.get(download.get_absolute_url())["Location"]
    assert address.startswith("/uploads/")
    whole = client.get(address)
    assert b"".join(whole.streaming_content) == CONTENT  # type: ignore[attr-defined]
    rest = client.get(address, headers={"Range": "bytes=12000-"})
    assert rest.status_code == 206
    assert b"".join(rest.streaming_content) == CONTENT[12000:]  # type: ignore[attr-defined]


def test_a_file_of_several_parts_arrives_whole(client: Client, tmp_path: Path, settings) -> None:
    settings.UPLOAD_PART_SIZE_BYTES = 5_000
    download = offer(tmp_path)
    address = client.get(download.get_absolute_url())["Location"]
    assert b"".join(client.get(address).streaming_content) == CONTENT  # type: ignore[attr-defined]


def test_a_file_under_terms_leads_to_them_first(client: Client, tmp_path: Path) -> None:
    terms = make_terms()
    download = offer(tmp_path, "--terms", str(terms.pk))
    address = download.get_absolute_url()
    shown = client.get(address, follow=True)
    assert "No <em>redistribution</em>" in shown.text
    assert "log in" in shown.text
    user = make_user()
    client.force_login(user)
    check(client, f"{terms.get_absolute_url()}?next={address}")
    assert client.post(terms.get_absolute_url(), {"next": address})["Location"] == address
    assert client.get(address)["Location"].startswith("/uploads/")
    acceptance = Acceptance.objects.get()
    assert (acceptance.terms, acceptance.user) == (terms, user)
    assert AuditEntry.objects.get(action="terms.accepted").details == {
        "title": "Data agreement",
        "version": "1",
    }


def test_the_kit_precedes_the_versions_of_its_dependencies(client: Client, tmp_path: Path) -> None:
    for name, title in (("constraints.txt", "Pinned dependencies"), ("kit.whl", "Starter kit")):
        (tmp_path / name).write_bytes(b"file")
        file = str(tmp_path / name)
        call_command("add_download", file, "--kind", "kit", "--title", title, "--license", "Apache-2.0")
    page = client.get("/data/").text
    assert page.index(">kit.whl<") < page.index(">constraints.txt<")


def test_another_version_is_accepted_again(client: Client, tmp_path: Path) -> None:
    user = make_user()
    accept(make_terms(), user)
    download = offer(tmp_path, "--terms", str(make_terms("2").pk))
    client.force_login(user)
    assert "/data/terms/" in client.get(download.get_absolute_url())["Location"]


def test_accepting_twice_keeps_the_first_time() -> None:
    terms, user = make_terms(), make_user()
    assert accept(terms, user) == accept(terms, user)
    assert AuditEntry.objects.filter(action="terms.accepted").count() == 1
    with pytest.raises(IntegrityError):
        Acceptance.objects.create(terms=terms, user=user)


def test_nobody_accepts_without_an_account(client: Client) -> None:
    response = client.post(make_terms().get_absolute_url())
    assert response["Location"].startswith("/account/login/")
    assert not Acceptance.objects.exists()


def test_a_command_line_downloads_with_a_token(client: Client, tmp_path: Path) -> None:
    terms, user = make_terms(), make_user()
    accept(terms, user)
    address = offer(tmp_path, "--terms", str(terms.pk)).get_absolute_url()
    _, secret = create_token(user, label="laptop", scope=Scope.READ)
    sent = client.get(address, headers={"Authorization": f"Bearer {secret}"})
    assert sent["Location"].startswith("/uploads/")
    unknown = client.get(address, headers={"Authorization": "Bearer pfl_nonsense"})
    assert "/data/terms/" in unknown["Location"]


def test_terms_lead_nowhere_but_to_this_site(client: Client) -> None:
    client.force_login(make_user())
    response = client.post(make_terms().get_absolute_url(), {"next": "https://elsewhere.example/"})
    assert response["Location"] == "/data/"


def test_what_is_not_offered_is_not_there(client: Client, tmp_path: Path) -> None:
    download = offer(tmp_path)
    assert client.get("/data/training-data/other.zip").status_code == 404
    Download.objects.update(is_offered=False)
    assert client.get(download.get_absolute_url()).status_code == 404
    assert "Training data" not in client.get("/data/").text


def test_a_file_is_replaced_under_its_address(client: Client, tmp_path: Path) -> None:
    before = offer(tmp_path)
    after = offer(tmp_path, content=b"second release")
    assert (before.pk, before.get_absolute_url()) == (after.pk, after.get_absolute_url())
    address = client.get(after.get_absolute_url())["Location"]
    assert b"".join(client.get(address).streaming_content) == b"second release"  # type: ignore[attr-defined]


def test_a_file_that_is_missing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no such file"):
        call_command("add_download", tmp_path / "x", "--kind", "data", "--title", "X", "--license", "MIT")


@pytest.mark.parametrize("named", ["CC BY 4.0", "free", "GPL-3.0-only; or ask"])
def test_a_license_without_an_identifier_is_rejected_and_the_message_says_where_to_look(
    tmp_path: Path, named: str
) -> None:
    file = tmp_path / "x"
    file.touch()
    with pytest.raises(
        CommandError, match=r"isn't an SPDX license identifier\. Look it up at spdx\.org/licenses"
    ):
        call_command("add_download", file, "--kind", "data", "--title", "X", "--license", named)
    assert not Download.objects.exists()
