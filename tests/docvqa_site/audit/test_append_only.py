"""The database keeps audit entries as they were written, on both back ends."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model
from django.db.utils import ConnectionHandler

from docvqa_site.accounts.models import ApiToken
from docvqa_site.audit.models import AuditEntry, PersonalDetail, record
from tests.docvqa_site.factories import make_team, make_user

pytestmark = pytest.mark.django_db
append_only = import_module("docvqa_site.audit.migrations.0002_append_only")
names_apart = import_module("docvqa_site.audit.migrations.0004_names_and_addresses_apart")
STATEMENTS = ["UPDATE audit_auditentry SET action = 'run.failed'", "DELETE FROM audit_auditentry"]


def test_a_query_changes_no_entry() -> None:
    entry = record(None, "run.scored", make_team())
    with pytest.raises(IntegrityError, match="never changed or removed"), transaction.atomic():
        AuditEntry.objects.update(action="run.failed")
    entry.refresh_from_db()
    assert entry.action == "run.scored"


def test_a_query_removes_no_entry() -> None:
    entry = record(None, "run.scored", make_team())
    with pytest.raises(IntegrityError, match="never changed or removed"), transaction.atomic():
        AuditEntry.objects.filter(pk=entry.pk).delete()
    assert AuditEntry.objects.filter(pk=entry.pk).exists()


@pytest.fixture
def sqlite() -> Iterator[BaseDatabaseWrapper]:
    handler = ConnectionHandler({"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
    database = handler["default"]
    with database.cursor() as cursor:
        cursor.execute("CREATE TABLE audit_auditentry (id integer PRIMARY KEY, action text)")
        cursor.execute("INSERT INTO audit_auditentry (action) VALUES ('run.scored')")
    yield database
    database.close()


def count(database: BaseDatabaseWrapper) -> int:
    with database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM audit_auditentry WHERE action = 'run.scored'")
        return int(cursor.fetchone()[0])


@pytest.mark.parametrize("statement", STATEMENTS)
def test_sqlite_rejects_it_until_the_migration_is_reversed(
    sqlite: BaseDatabaseWrapper, statement: str
) -> None:
    with sqlite.schema_editor() as editor:
        append_only.make_triggers(apps, editor)
    with pytest.raises(IntegrityError, match="never changed or removed"), sqlite.cursor() as cursor:
        cursor.execute(statement)
    assert count(sqlite) == 1
    with sqlite.schema_editor() as editor:
        append_only.remove_triggers(apps, editor)
    with sqlite.cursor() as cursor:
        cursor.execute(statement)
    assert count(sqlite) == 0


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_triggers_can_be_removed(statement: str) -> None:
    record(None, "run.scored", make_team())
    with connection.schema_editor() as editor:
        append_only.remove_triggers(apps, editor)
    with connection.cursor() as cursor:
        cursor.execute(statement)
    assert count(connection) == 0


def test_names_and_addresses_leave_the_entries_of_an_earlier_version() -> None:
    ada, team = make_user(), make_team()
    token = ApiToken.objects.create(user=ada)
    written: dict[str, tuple[Model, dict[str, Any]]] = {
        "team.invited": (team, {"email": "new@example.org"}),
        "user.email_changed": (ada, {"before": "ada@example.org", "after": "a@example.org"}),
        "user.changed": (ada, {"changes": {"name": ["Ada", ""], "is_staff": [False, True]}}),
        "user.profile_changed": (ada, {"shows_orcid": True}),
        "token.revoked": (token, {"label": "Ada's laptop"}),
    }
    for action, (subject, details) in written.items():
        record(ada, action, subject, **details)
    connection.check_constraints()
    with connection.schema_editor() as editor:
        names_apart.move_names_and_addresses(apps, editor)
    for entry in AuditEntry.objects.filter(action__in=written):
        assert entry.readable == written[entry.action][1]
        assert not any(word in str(entry.details) for word in ("example.org", "Ada"))
    assert PersonalDetail.objects.filter(person=ada).count() == 4
    PersonalDetail.objects.all().delete()
    assert AuditEntry.objects.get(action="team.invited").readable == {"email": "(erased)"}
    with pytest.raises(IntegrityError, match="never changed or removed"), transaction.atomic():
        AuditEntry.objects.update(action="run.failed")
