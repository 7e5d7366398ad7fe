"""An examination from its request to its end, whatever becomes of messages and machines."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction

from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.audit.models import AuditEntry
from docvqa_site.audit.transitions import IllegalTransitionError
from docvqa_site.celery import EXAMINATIONS_QUEUE, app
from docvqa_site.evaluation import clock, tasks
from docvqa_site.evaluation.examining import requests, running, sandbox
from docvqa_site.evaluation.examining.levels import LEVELS, MEANINGS
from docvqa_site.evaluation.models import Examination, ExaminationState, Watch
from docvqa_site.evaluation.queue.watchdog import watch
from docvqa_site.evaluation.states import EXAMINATION_TRANSITIONS, move_examination
from docvqa_site.notifications.models import Notification
from docvqa_site.submissions.models import Run, RunState
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import INTAKE_QUEUE, ArtifactKind, TrustLevel
from tests.docvqa_site.evaluation.conftest import Broker
from tests.docvqa_site.factories import (
    make_artifact,
    make_organizer,
    make_run,
    make_submission,
    make_track,
    make_user,
)

pytestmark = [pytest.mark.django_db]

SILENCE = timedelta(seconds=settings.EVALUATION_SILENCE_SECONDS)
UNATTENDED = timedelta(seconds=settings.EVALUATION_UNATTENDED_SECONDS)
A_TICK = timedelta(seconds=settings.WATCHDOG_SECONDS)
A_SECOND = timedelta(seconds=1)
ALL_FILES = {kind for level in LEVELS.values() for kind in level.required}


def make_examinable_run() -> Run:
    """A scored run with every file that a level needs."""
    run = make_run(make_submission(state="submitted"), state=RunState.SCORED)
    for kind in sorted(ALL_FILES):
        make_artifact(run, kind)
    return run


@pytest.fixture
def calls(broker: Broker) -> Broker:
    """The broker, without calls of other tests."""
    broker.take(EXAMINATIONS_QUEUE)
    return broker


@pytest.fixture
def examine(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The task, in a process that listens to this queue."""
    monkeypatch.setattr(app.amqp.queues, "_consume_from", {EXAMINATIONS_QUEUE: None})
    return tasks.examine


@pytest.fixture
def queued(calls: Broker) -> Examination:
    return requests.request(make_examinable_run(), TrustLevel.CONFORMING, by=make_organizer())


def fresh(examination: Examination) -> Examination:
    return Examination.objects.get(pk=examination.pk)


def look(at, since=None) -> None:
    """Have the watchdog look at this moment, after it has looked since `since` without a pause."""
    since = since or at - timedelta(hours=1)
    Watch.objects.update_or_create(pk=1, defaults={"watched_at": at - A_TICK, "since": since})
    watch(at)


class TestTable:
    def test_every_level_but_the_evaluations_own_is_a_row(self) -> None:
        assert set(LEVELS) == set(TrustLevel) - {TrustLevel.RECOMPUTED}
        assert set(MEANINGS) == set(TrustLevel)
        for level, row in LEVELS.items():
            assert row.trust is level
            assert ArtifactKind.SETTINGS in row.required

    @pytest.mark.parametrize("before", ExaminationState)
    @pytest.mark.parametrize("after", ExaminationState)
    def test_only_what_the_table_of_states_allows_is_done(self, before: str, after: str) -> None:
        assert set(EXAMINATION_TRANSITIONS) == set(ExaminationState)
        examination = Examination(run=make_examinable_run(), level=1, state=before)
        ended: dict[str, Any] = {"report": {}, "finished_at": clock.now()}
        if before in ("passed", "failed"):
            examination.report, examination.finished_at = ended.values()
        examination.save()
        changes = ended if after in ("passed", "failed") else {}
        if after in EXAMINATION_TRANSITIONS[ExaminationState(before)]:
            move_examination(examination, ExaminationState(after), **changes)
            entry = AuditEntry.objects.get(action=f"examination.{after}")
            assert (entry.object_id, entry.details["before"]) == (str(examination.pk), before)
        else:
            with pytest.raises(IllegalTransitionError):
                move_examination(examination, ExaminationState(after), **changes)


class TestRequest:
    def test_it_waits_and_a_machine_is_called(self, calls: Broker, committed) -> None:
        organizer, run = make_organizer(), make_examinable_run()
        examination = committed(requests.request, run, TrustLevel.CONFORMING, by=organizer)
        assert fresh(examination).state == ExaminationState.QUEUED
        assert AuditEntry.objects.get(action="examination.queued").actor == organizer
        assert len(calls.take(EXAMINATIONS_QUEUE)) == 1

    def test_a_second_one_is_rejected_while_one_waits_or_runs(self, queued: Examination) -> None:
        for _ in range(2):
            with pytest.raises(ProblemError, match="E_EXAMINATION_ACTIVE"):
                requests.request(queued.run, TrustLevel.RERUN, by=None)
            requests.take()
        requests.break_off(queued, "no reason")
        assert requests.request(queued.run, TrustLevel.RERUN, by=None).state == ExaminationState.QUEUED

    def test_the_database_has_one_active_examination_of_a_run(self, queued: Examination) -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            Examination.objects.create(run=queued.run, level=1)

    @pytest.mark.parametrize("state", [RunState.QUEUED, RunState.REJECTED])
    def test_a_run_that_is_not_scored_is_rejected(self, state: str) -> None:
        run = make_examinable_run()
        Run.objects.filter(pk=run.pk).update(state=state)
        with pytest.raises(ProblemError, match="E_SUBMISSION_STATE"):
            requests.request(run, TrustLevel.CONFORMING, by=None)

    @pytest.mark.parametrize("level", LEVELS)
    def test_a_run_without_a_file_that_the_level_needs_is_rejected(self, level: TrustLevel) -> None:
        for kind in LEVELS[level].required:
            run = make_examinable_run()
            run.artifacts.filter(kind=kind).delete()
            with pytest.raises(ProblemError, match=kind.replace("_", " ")) as caught:
                requests.request(run, level, by=None)
            assert caught.value.problem.code is ErrorCode.ARTIFACT_MISSING


class TestMachines:
    def test_a_call_that_arrives_twice_runs_nothing_twice(
        self, queued: Examination, examine: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sandbox, "JUDGES", "starter_kit.no_judge")
        examine()
        broken = fresh(queued)
        assert broken.state == ExaminationState.BROKEN
        assert "No module named" in broken.reason
        examine()
        assert Examination.objects.count() == 1
        assert fresh(queued).finished_at == broken.finished_at

    def test_the_oldest_is_taken_first_and_one_only_once(self, queued: Examination) -> None:
        later = requests.request(make_examinable_run(), TrustLevel.CONFORMING, by=None)
        assert [requests.take(), requests.take(), requests.take()] == [queued, later, None]
        taken = fresh(queued)
        assert (taken.state, taken.machine) == (ExaminationState.RUNNING, requests.this_machine())
        assert taken.heartbeat_at is not None

    def test_the_intake_runs_none_whoever_sends_it_the_message(
        self, queued: Examination, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(app.amqp.queues, "_consume_from", {INTAKE_QUEUE: None})
        tasks.examine()
        assert fresh(queued).state == ExaminationState.QUEUED

    def test_a_machine_without_training_data_says_so(
        self, calls: Broker, examine: Callable[[], None]
    ) -> None:
        examination = requests.request(make_examinable_run(), TrustLevel.RERUN, by=None)
        examine()
        assert fresh(examination).state == ExaminationState.BROKEN
        assert "This machine has no training data: set PFL_EXAMINATION_DATA" in fresh(examination).reason

    def test_a_folder_that_is_missing_is_named(
        self, calls: Broker, examine: Callable[[], None], settings, tmp_path: Path
    ) -> None:
        settings.EXAMINATION_DATA = str(tmp_path / "gone")
        examination = requests.request(make_examinable_run(), TrustLevel.REPLAYED, by=None)
        examine()
        assert fresh(examination).reason == f"The training data folder is missing: {tmp_path / 'gone'}."

    def test_an_unexpected_error_is_stored_and_raised(
        self, queued: Examination, examine: Callable[[], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object, **__: object) -> None:
            raise ZeroDivisionError("by nobody's fault")

        monkeypatch.setattr(running, "judge", broken)
        with pytest.raises(ZeroDivisionError):
            examine()
        assert fresh(queued).reason == "ZeroDivisionError: by nobody's fault"

    def test_a_heartbeat_has_the_progress(self, queued: Examination) -> None:
        requests.take()
        requests.Heart(queued)("Training 2 of 5 …")
        assert fresh(queued).progress == "Training 2 of 5 …"

    def test_what_was_canceled_ends_and_its_report_is_dropped(self, queued: Examination) -> None:
        requests.take()
        organizer = make_organizer()
        requests.cancel(queued, actor=organizer)
        with pytest.raises(requests.EndedError):
            requests.beat(queued)
        with pytest.raises(requests.EndedError):
            requests.break_off(queued, "late")
        with pytest.raises(requests.EndedError):
            requests.cancel(queued, actor=organizer)
        assert fresh(queued).state == ExaminationState.CANCELED
        assert AuditEntry.objects.get(action="examination.canceled").actor == organizer

    def test_a_canceled_one_stops_its_judge(
        self,
        queued: Examination,
        examine: Callable[[], None],
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        (tmp_path / "sleeping").mkdir()
        (tmp_path / "sleeping" / "__main__.py").write_text(
            f"import os, pathlib, time\npathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
            "time.sleep(600)\n"
        )
        monkeypatch.setattr(sandbox, "JUDGES", "sleeping")
        monkeypatch.setattr(sandbox, "_kit", lambda: tmp_path / "starter_kit")
        monkeypatch.setattr(requests, "BEAT_S", 0.0)

        def beat_until_it_runs(examination: Examination, _: str) -> None:
            if (tmp_path / "pid").exists():
                requests.cancel(examination, actor=None)
                raise requests.EndedError("canceled")

        monkeypatch.setattr(requests, "beat", beat_until_it_runs)
        examine()
        assert fresh(queued).state == ExaminationState.CANCELED
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), 0)


class TestWatch:
    def test_one_whose_machine_is_silent_is_broken_with_the_reason(self, queued: Examination) -> None:
        requests.take()
        look(clock.now() + SILENCE - A_SECOND)
        assert fresh(queued).state == ExaminationState.RUNNING
        look(clock.now() + SILENCE + A_TICK)
        lost = fresh(queued)
        assert lost.state == ExaminationState.BROKEN
        assert f"{requests.this_machine()} stopped sending heartbeats" in lost.reason

    def test_after_a_pause_of_the_watchdog_a_machine_has_time_to_send_one(self, queued: Examination) -> None:
        requests.take()
        at = clock.now() + 2 * SILENCE
        look(at, since=at - A_SECOND)
        assert fresh(queued).state == ExaminationState.RUNNING

    def test_a_call_that_the_broker_lost_is_repeated_once(self, queued: Examination, calls: Broker) -> None:
        calls.take(EXAMINATIONS_QUEUE)
        look(clock.now())
        look(clock.now() + A_TICK)
        assert len(calls.take(EXAMINATIONS_QUEUE)) == 1

    def test_without_examinations_nobody_is_called(self, calls: Broker) -> None:
        look(clock.now())
        assert calls.take(EXAMINATIONS_QUEUE) == []

    def test_one_that_waits_long_while_none_runs_is_unattended(self, queued: Examination) -> None:
        assert requests.unattended(clock.now()) == []
        later = clock.now() + UNATTENDED + A_SECOND
        assert requests.unattended(later) == [queued]
        requests.take()
        assert requests.unattended(later) == []

    def test_the_organizers_of_the_track_are_notified_once_that_no_machine_takes_it(
        self, queued: Examination, calls: Broker
    ) -> None:
        track = queued.run.submission.track
        of_track, of_another, of_all = make_user(), make_user(), make_organizer("organize")
        for person, one in ((of_track, track), (of_another, make_track())):
            make_track_organizer(person)
            one.organizers.add(person)
        later = clock.now() + UNATTENDED + A_SECOND
        look(later, since=later - A_SECOND)
        assert not Notification.objects.exists()
        for moment in (later, later + A_TICK):
            look(moment)
            notified = list(Notification.objects.order_by("user"))
            assert [one.user for one in notified] == [of_track, of_all]
            assert {one.subject for one in notified} == {f"{track}: no machine is running examinations"}
            assert str(queued.run) not in notified[0].text


@pytest.mark.skipif(sys.platform != "linux", reason="The kernel ends a judge with its parent on Linux alone.")
def test_a_judge_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "judge = subprocess.Popen([sys.executable, '-m', 'starter_kit.examining', 'answer', str(os.getpid())],"
        " stdin=subprocess.PIPE)\n"
        "print(judge.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        judge = int(parent.stdout.readline())
        # Until it has asked the kernel for that, which follows its imports.
        status = Path(f"/proc/{judge}/status")
        deadline = time.monotonic() + 60
        while "State:\tS" not in status.read_text() and time.monotonic() < deadline:
            threading.Event().wait(0.1)
        parent.send_signal(signal.SIGKILL)
        while Path(f"/proc/{judge}").exists() and time.monotonic() < deadline:
            threading.Event().wait(0.1)
    assert not Path(f"/proc/{judge}").exists()
