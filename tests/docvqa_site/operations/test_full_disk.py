import sqlite3
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from docvqa_site.accounts.services import vouch_for_address
from docvqa_site.operations.full_disk import is_full_disk
from tests.docvqa_site.api.caller import Caller
from tests.docvqa_site.factories import make_user

PASSWORD = "rose-hill-42-x"
FULL = """
    CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = 'disk_full'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION full_disk()
"""


def fill_disk(table: str) -> None:
    """From now on, the database answers whoever writes into the table as if its disk was full."""
    with connection.cursor() as cursor:
        cursor.execute(FULL.format(table=table))


@pytest.fixture
def visitor() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.django_db
def test_who_logs_in_while_the_disk_is_full_is_told_so(visitor: Client) -> None:
    user = make_user("ada@example.org", PASSWORD)
    vouch_for_address(user)
    fill_disk("django_session")
    page = visitor.post(reverse("account_login"), {"login": user.email, "password": PASSWORD})
    assert page.status_code == 503
    assert int(page["Retry-After"]) > 0
    assert "Its disk is full" in page.text


@pytest.mark.django_db
def test_the_api_answers_with_its_problem(visitor: Client) -> None:
    caller = Caller(visitor, make_user())
    fill_disk("accounts_apitoken")
    response = caller("GET", "me")
    assert response.status_code == 507
    assert response.json()["problems"][0]["code"] == "E_STORE_FULL"


def test_a_full_sqlite_file_and_a_full_device_are_known(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "full.sqlite3")
    database.executescript("CREATE TABLE texts (text); PRAGMA max_page_count = 2")
    with pytest.raises(sqlite3.OperationalError) as full:
        database.execute("INSERT INTO texts VALUES (?)", ["x" * 100_000])
    assert is_full_disk(full.value)
    with pytest.raises(OSError, match="No space left") as device:
        Path("/dev/full").write_text("x")
    assert is_full_disk(device.value)
    with pytest.raises(sqlite3.OperationalError) as other:
        database.execute("SELECT * FROM nothing")
    assert not is_full_disk(other.value)
