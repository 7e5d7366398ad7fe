import pytest
from celery.beat import Scheduler
from django.db import connection
from pytest_django import Settings

from docvqa_site.celery import app
from docvqa_site.evaluation.examining.requests import has_machine
from docvqa_site.liveness.clock import LivelyScheduler
from docvqa_site.liveness.models import Process, SignOfLife, silences
from docvqa_site.liveness.tasks import show_machine

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clock(tmp_path) -> Scheduler:
    return LivelyScheduler(app=app, schedule_filename=str(tmp_path / "schedule"))


def test_a_clock_that_looks_at_its_schedule_shows_a_sign_of_life(
    clock: Scheduler, settings: Settings
) -> None:
    pause = clock.tick()
    assert pause <= settings.LIVENESS_SECONDS
    assert silences()[Process.CLOCK] is not None


def test_it_writes_no_more_often_than_it_must(clock: Scheduler) -> None:
    clock.tick()
    SignOfLife.objects.all().delete()
    clock.tick()
    assert silences()[Process.CLOCK] is None


def test_a_database_that_is_away_does_not_stop_the_clock(
    clock: Scheduler, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    assert clock.tick() > 0
    connection.close()
    monkeypatch.undo()
    clock.tick()
    assert silences()[Process.CLOCK] is not None


def test_a_machine_for_examinations_shows_that_it_is_there_and_that_is_no_process_of_the_site() -> None:
    assert not has_machine()
    show_machine()
    assert has_machine()
    assert set(silences()) == set(Process)
