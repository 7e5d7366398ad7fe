import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from kombu import Connection

from portal.celery import app


def test_the_process_answers_without_a_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_a_site_with_all_it_needs_is_ready(client: Client, db: None) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["checks"] == {"database": "ok", "migrations": "ok", "broker": "ok"}
    assert "no-store" in response["Cache-Control"]


def test_a_missing_migration_is_noticed(client: Client, db: None) -> None:
    MigrationRecorder.Migration.objects.filter(app="reviews").delete()
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["migrations"] == "1 missing"


def test_a_broker_that_is_away_is_noticed(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Connection("redis://127.0.0.1:1/0", connect_timeout=1)
    monkeypatch.setattr(app, "connection_for_write", lambda: nobody)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["broker"] == "doesn't answer"


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_only_read(client: Client, db: None, path: str) -> None:
    assert client.post(path).status_code == 405
