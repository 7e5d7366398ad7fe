import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

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
