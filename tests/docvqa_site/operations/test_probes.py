import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from docvqa_site.liveness.models import Process, SignOfLife, show_life, silences
from docvqa_site.operations.checks import CHECKS, OK, TIMEOUT_S, BoundedCheck
from tests.services.redis import Redis


@pytest.fixture
def processes(db: None) -> None:
    for process in Process:
        show_life(process)


@pytest.fixture
def redis(settings: Settings) -> Iterator[Redis]:
    server = Redis()
    settings.BROKER_URL, settings.CELERY = server.url, {"broker_url": server.url}
    yield server
    server.process.send_signal(signal.SIGCONT)
    server.stop()


def broker(client: Client) -> str:
    outcome: str = client.get("/readyz?check=broker").json()["checks"]["broker"]
    return outcome


def test_a_public_site_s_broker_that_lets_in_anybody_is_noticed(
    client: Client, settings: Settings, redis: Redis
) -> None:
    assert broker(client) == OK
    settings.PUBLIC = True
    assert "without a password" in broker(client)
    closed = Redis(is_closed=True)
    try:
        settings.BROKER_URL = closed.url
        assert broker(client) == OK
    finally:
        closed.stop()


def test_the_process_answers_without_a_database(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_a_site_with_all_it_needs_is_ready(client: Client, processes: None) -> None:
    response = client.get("/readyz")
    names = ["database", "migrations", "time", "broker", "store", "disk", "intake", "clock", "mail"]
    assert response.json()["checks"] == dict.fromkeys(names, "ok")
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]


def test_a_missing_migration_is_noticed(client: Client, processes: None) -> None:
    MigrationRecorder.Migration.objects.filter(app="mail").latest("name").delete()
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["migrations"] == "1 missing"


def test_a_clock_that_is_wrong_is_noticed(client: Client, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 7200)
    response = client.get("/readyz?check=time")
    monkeypatch.undo()
    assert response.status_code == 503
    assert "+7200 s from the database's clock" in response.text


@pytest.mark.parametrize("process", Process)
def test_a_process_that_is_dead_is_noticed(client: Client, processes: None, process: Process) -> None:
    SignOfLife.objects.filter(process=process).update(at=timezone.now() - timedelta(minutes=5))
    response = client.get("/readyz")
    assert response.status_code == 503
    assert "silent for 3" in response.json()["checks"].pop(process)
    assert set(response.json()["checks"].values()) >= {"ok"}


def test_a_process_that_never_started_is_noticed(client: Client, db: None) -> None:
    assert client.get("/readyz?check=intake").json()["checks"] == {"intake": "never started"}


def test_the_latest_of_several_signs_counts(db: None) -> None:
    SignOfLife.objects.create(process=Process.INTAKE, at=timezone.now() - timedelta(hours=1))
    show_life(Process.INTAKE)
    silence = silences()[Process.INTAKE]
    assert silence is not None
    assert silence < timedelta(minutes=1)


def test_a_broker_that_is_away_is_noticed(client: Client, settings: Settings) -> None:
    settings.BROKER_URL, settings.CELERY = "redis://127.0.0.1:1/0", {}
    assert broker(client) == "doesn't answer"


def test_a_frozen_broker_holds_nobody_up(client: Client, redis: Redis) -> None:
    assert broker(client) == "ok"
    os.kill(redis.process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    assert broker(client) == "doesn't answer"
    assert broker(client) == "doesn't answer"
    assert time.monotonic() - begun < 3 * TIMEOUT_S + 5


def test_a_full_disk_is_noticed(client: Client, db: None, settings: Settings) -> None:
    settings.DISK_RESERVE_BYTES = 10**18
    response = client.get("/readyz?check=disk")
    assert response.status_code == 503
    assert "MiB free" in response.json()["checks"]["disk"]


def test_a_folder_that_cannot_be_written_is_noticed(client: Client, settings: Settings) -> None:
    settings.HOME = "/proc"
    assert "can't be written" in client.get("/readyz?check=disk").json()["checks"]["disk"]


def test_a_probe_asks_for_what_it_needs_and_for_nothing_unknown(client: Client, db: None) -> None:
    assert client.get("/readyz?check=database&check=disk").json() == {
        "status": "ready",
        "checks": {"database": "ok", "disk": "ok"},
    }
    assert client.get("/readyz?check=databose").status_code == 404


def test_a_check_that_is_named_many_times_is_made_once(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def check() -> str:
        made.append("store")
        return OK

    monkeypatch.setitem(CHECKS, "store", check)
    assert client.get("/readyz?" + "&".join(["check=store"] * 300)).status_code == 200
    assert made == ["store"]


def test_probes_of_something_that_hangs_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docvqa_site.operations.checks.TIMEOUT_S", 0.05)
    calls = []
    ended = threading.Event()

    def hang() -> str:
        calls.append(1)
        ended.wait()
        return "ok"

    check = BoundedCheck("store", hang)
    assert [check() for _ in range(5)] == ["doesn't answer"] * 5
    ended.set()
    assert len(calls) == 1


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_only_read(client: Client, db: None, path: str) -> None:
    assert client.post(path).status_code == 405
