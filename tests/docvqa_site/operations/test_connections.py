from weakref import WeakSet

import pytest
from django.db import close_old_connections, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from docvqa_site.operations import connections
from tests.docvqa_site.factories import make_user, scored_submission


@pytest.mark.django_db
def test_no_query_is_compiled_on_a_site_that_postgresql_knows_little_of(client: Client) -> None:
    scored_submission()
    client.force_login(make_user(is_staff=True, is_superuser=True))
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/admin/reviews/proof/").status_code == 200
    with connection.cursor() as cursor:
        for query in queries:
            if query["sql"].startswith("SELECT"):
                cursor.execute(f"EXPLAIN ANALYZE {query['sql']}")
                assert "JIT" not in "\n".join(line for (line,) in cursor.fetchall())


def backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid: int = cursor.fetchone()[0]
    return pid


@pytest.mark.django_db(transaction=True)
def test_requests_share_a_connection_and_one_that_broke_is_replaced(client: Client) -> None:
    first = backend()
    # As before and after each request; the test client leaves it out.
    close_old_connections()
    assert backend() == first
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
        assert cursor.fetchone() == (True,)
    other.close()
    close_old_connections()
    assert client.get("/").status_code == 200
    assert backend() != first


@pytest.mark.django_db(transaction=True)
def test_a_process_keeps_no_more_connections_than_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [connection.copy() for _ in range(connections.KEPT)]
    kept = WeakSet(others)
    monkeypatch.setattr(connections, "_kept", kept)
    connection.close()
    first = backend()
    close_old_connections()
    assert connection.connection is None
    kept.discard(others[0])
    assert backend() != first
    close_old_connections()
    assert connection.connection is not None
