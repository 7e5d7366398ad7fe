"""Outages are noticed and counted, phases are extended by them with one click, and maintenance is announced."""

import re
from datetime import datetime, timedelta

import pytest
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import mail
from django.test import Client
from django.utils import timezone

from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.audit.models import AuditEntry, record
from docvqa_site.challenge.models import Phase, RuleChange
from docvqa_site.evaluation.models import Evaluation, StepQueue, Watch
from docvqa_site.evaluation.queue.breaker import _pause, resume
from docvqa_site.evaluation.queue.watchdog import watch
from docvqa_site.liveness.models import Cause, Notice, Outage
from docvqa_site.liveness.outages import total
from docvqa_site.organizers.outages import downtime_of
from docvqa_site.organizers.phase_changes import preview_phase, save_phase
from docvqa_site.submissions.models import RunState
from evaluator.messages.jobs import SCORING_QUEUE, Step
from tests.docvqa_site.factories import (
    make_organizer,
    make_phase,
    make_run,
    make_submission,
    make_track,
    make_user,
    owner_of,
)

pytestmark = pytest.mark.django_db

PAGE = "/organize/outages/"
HOUR = timedelta(hours=1)


@pytest.fixture
def phase():
    now = timezone.now().replace(second=0, microsecond=0)
    return make_track(slug="track", opens_at=now - 48 * HOUR, closes_at=now + 24 * HOUR).phases.get()


def add_outage(starts_at: datetime, length: timedelta, **fields) -> Outage:
    return Outage.objects.create(
        **{"cause": Cause.PAUSED, **fields}, starts_at=starts_at, ends_at=starts_at + length
    )


def extend(client: Client, phase):
    seen = re.search(r'name="seen" value="([\w-]+)"', client.get(PAGE).text).group(1)
    return client.post(f"/organize/tracks/track/phases/{phase.pk}/extend/", {"seen": seen}, follow=True)


def test_what_several_outages_have_in_common_counts_once_and_only_within_the_phase(phase) -> None:
    start = phase.starts_at
    add_outage(start - 2 * HOUR, 3 * HOUR)
    add_outage(start + 4 * HOUR, 2 * HOUR)
    add_outage(start + 5 * HOUR, 2 * HOUR, cause=Cause.STOPPED)
    add_outage(start + 20 * HOUR, HOUR, track="another")
    add_outage(phase.ends_at, HOUR, cause=Cause.MAINTENANCE)
    assert downtime_of(phase, timezone.now()).total == 4 * HOUR
    assert total([]) == timedelta()


@pytest.mark.parametrize("action", ["track.published", "track.added"])
@pytest.mark.parametrize("starts_at", [None, timezone.now() - 48 * HOUR])
def test_a_track_loses_no_time_before_it_is_published(phase, organizer, starts_at, action) -> None:
    Phase.objects.filter(pk=phase.pk).update(starts_at=starts_at)
    now = record(organizer, action, phase.track).at
    add_outage(now - 3 * HOUR, HOUR)
    assert downtime_of(phase, now).total == timedelta()
    add_outage(now - HOUR, 2 * HOUR)
    assert downtime_of(phase, now + HOUR).total == HOUR


def test_an_outage_counts_before_a_phase_has_a_deadline_and_no_extension_makes_up_for_it(
    client: Client, organizer, phase
) -> None:
    now, deadline = timezone.now(), phase.ends_at
    Phase.objects.filter(pk=phase.pk).update(starts_at=None, ends_at=None)
    add_outage(now - 3 * HOUR, HOUR)
    counted = "1 outage, 1 h 0 min in total"
    assert counted in client.get(PAGE).text
    edited = Phase.objects.select_related("track").get(pk=phase.pk)
    edited.ends_at = deadline
    before = Phase.objects.get(pk=phase.pk)
    assert save_phase(edited, "", preview_phase(before, edited, now).digest, actor=organizer)
    assert (downtime_of(phase, now).total, downtime_of(phase, now).owed) == (HOUR, timedelta())
    assert "lost time" not in client.get("/organize/").text
    page = client.get(PAGE).text
    assert counted in page
    assert "An extension makes up only for outages after that." in page
    # Another deadline gives nothing back.
    add_outage(timezone.now(), 2 * HOUR)
    before = Phase.objects.get(pk=phase.pk)
    edited.ends_at = deadline + HOUR
    assert save_phase(edited, "", preview_phase(before, edited, now).digest, actor=organizer)
    later = downtime_of(phase, now + 4 * HOUR)
    assert (later.total, later.owed) == (3 * HOUR, 2 * HOUR)


def test_a_stop_of_the_site_is_noticed_and_a_restart_is_not(phase) -> None:
    now = timezone.now()
    Watch.objects.create(pk=1, watched_at=now - HOUR, since=now - 2 * HOUR)
    watch(now)
    watch(now + timedelta(minutes=3))
    stop = Outage.objects.get()
    assert (stop.cause, stop.starts_at, stop.ends_at) == (Cause.STOPPED, now - HOUR, now)


def test_a_queue_that_is_paused_or_has_no_worker_is_an_outage_until_it_works(phase) -> None:
    now = timezone.now()
    queue = StepQueue.objects.create(pk=SCORING_QUEUE)
    _pause(queue, "OSError: no GPU", now)
    resume(queue)
    paused = Outage.objects.get(cause=Cause.PAUSED)
    assert paused.starts_at == now
    assert paused.ends_at is not None
    look = timedelta(seconds=settings.WATCHDOG_SECONDS)
    Watch.objects.create(pk=1, watched_at=now - look, since=now - 2 * HOUR)
    waiting = Evaluation.objects.create(
        run=make_run(state=RunState.QUEUED), attempt=1, step=Step.SCORING, step_queued_at=now - HOUR
    )
    watch(now)
    unattended = Outage.objects.get(cause=Cause.UNATTENDED)
    assert (unattended.starts_at, unattended.ends_at) == (now - HOUR, None)
    waiting.delete()
    watch(now + look)
    unattended.refresh_from_db()
    assert unattended.ends_at == now + look


def test_one_click_extends_a_phase_and_tells_everybody(client: Client, organizer, phase) -> None:
    submission = make_submission(track=phase.track)
    person = owner_of(submission.team)
    EmailAddress.objects.create(user=person, email=person.email, primary=True, verified=True)
    add_outage(phase.starts_at, 3 * HOUR + timedelta(minutes=20))
    assert "lost time" in client.get("/organize/").text
    before = Client().get("/")
    page = extend(client, phase)
    end = phase.ends_at
    phase.refresh_from_db()
    assert timedelta() < phase.ends_at - end - 3 * HOUR - timedelta(minutes=19) <= timedelta(minutes=2)
    assert "No lost time to make up." in page.text
    assert "lost time" not in client.get("/organize/").text
    assert "The phase lost 3 h 20 min to outages." in client.get("/tracks/track/").text
    assert [message.to for message in mail.outbox] == [[person.email]]
    assert "because of outages, the phase “Submissions” now ends on" in mail.outbox[0].body
    assert AuditEntry.objects.get(action="phase.extended").details["minutes"] == 200
    # A visitor who has the page without the notice gets the new one.
    again = Client().get("/", headers={"If-None-Match": before["ETag"]})
    assert again.status_code == 200
    assert "because of outages" in again.text


def test_the_notice_of_a_moved_end_ends_with_the_next_change_of_the_phase(
    client: Client, organizer, phase
) -> None:
    add_outage(phase.starts_at, HOUR)
    extend(client, phase)
    assert "because of outages" in Client().get("/").text
    edited = Phase.objects.get(pk=phase.pk)
    assert edited.ends_at
    edited.ends_at += HOUR
    shown = preview_phase(Phase.objects.get(pk=phase.pk), edited, timezone.now())
    assert save_phase(edited, "A date.", shown.digest, actor=organizer)
    assert "because of outages" not in Client().get("/").text


def test_a_phase_that_goes_on_gets_exactly_what_it_lost(client: Client, organizer, phase) -> None:
    Phase.objects.filter(pk=phase.pk).update(ends_at=phase.ends_at.replace(second=0, microsecond=0))
    end = phase.ends_at.replace(second=0, microsecond=0)
    add_outage(phase.starts_at, HOUR)
    extend(client, phase)
    assert Phase.objects.get(pk=phase.pk).ends_at == end + HOUR


def test_an_outage_that_does_not_count_is_removed(client: Client, organizer, phase) -> None:
    outage = add_outage(phase.starts_at, HOUR)
    page = client.post(f"{PAGE}{outage.pk}/withdraw/", follow=True).text
    assert "The entry was removed." in page
    assert not Outage.objects.exists()


def test_what_changed_in_the_meantime_is_shown_again(client: Client, organizer, phase) -> None:
    add_outage(phase.starts_at, HOUR)
    page = client.get(PAGE).text
    seen = re.search(r'name="seen" value="([\w-]+)"', page).group(1)
    add_outage(phase.starts_at + 2 * HOUR, HOUR)
    answer = client.post(f"/organize/tracks/track/phases/{phase.pk}/extend/", {"seen": seen}, follow=True)
    assert "The effect has changed in the meantime" in answer.text
    assert not RuleChange.objects.exists()


def test_the_next_phase_begins_later_unless_it_has_begun(client: Client, organizer, phase) -> None:
    final = make_phase(phase.track, name="Final", starts_at=phase.ends_at, ends_at=phase.ends_at + 48 * HOUR)
    add_outage(phase.starts_at, HOUR)
    extend(client, phase)
    phase.refresh_from_db()
    final.refresh_from_db()
    assert final.starts_at == phase.ends_at

    phase.ends_at = timezone.now() - HOUR
    phase.save()
    final.starts_at = phase.ends_at
    final.save()
    add_outage(phase.starts_at + 10 * HOUR, HOUR)
    page = client.get(PAGE).text
    assert "The phase “Final” conflicts" in page
    assert "Extend “Submissions”" not in page


def test_an_ended_phase_opens_again_for_the_time_that_was_lost(client: Client, organizer, phase) -> None:
    phase.ends_at = timezone.now() - HOUR
    phase.save()
    add_outage(phase.ends_at - 2 * HOUR, 2 * HOUR)
    assert "Teams can submit again." in client.get(PAGE).text
    extend(client, phase)
    phase.refresh_from_db()
    assert timedelta() < phase.ends_at - timezone.now() - 2 * HOUR <= timedelta(minutes=1)


def test_maintenance_has_a_banner_until_it_is_over_and_counts_then(client: Client, organizer, phase) -> None:
    now = timezone.now()
    times = {"starts_at": f"{now + HOUR:%Y-%m-%dT%H:%M}", "ends_at": f"{now + 2 * HOUR:%Y-%m-%dT%H:%M}"}
    entered = {**times, "track": "", "text": "New <disks>."}
    banner = "Planned maintenance from"
    page = client.post(PAGE, entered).text
    assert "Every page shows this notice" in page
    assert banner in page
    assert not Outage.objects.exists()
    assert 'value="New &lt;disks&gt;."' in client.post(PAGE, {**entered, "seen": "coming", "edit": "1"}).text
    client.post(PAGE, {**entered, "seen": "coming"})
    assert banner in Client().get("/tracks/").text
    assert "New &lt;disks&gt;." in Client().get("/tracks/").text
    outage = Outage.objects.get()
    Outage.objects.update(starts_at=now - HOUR)
    assert downtime_of(phase, now).total == HOUR
    client.post(f"/organize/outages/{outage.pk}/withdraw/")
    assert banner not in Client().get("/tracks/").text
    outage.refresh_from_db()
    assert outage.ends_at is not None
    assert outage.ends_at <= timezone.now()
    client.post(f"/organize/outages/{outage.pk}/withdraw/")
    assert not Outage.objects.exists()


def test_maintenance_in_the_last_day_of_a_phase_names_it_and_says_what_counting_means(
    client: Client, organizer, phase
) -> None:
    now = timezone.now()
    times = {"starts_at": f"{now + 4 * HOUR:%Y-%m-%dT%H:%M}", "ends_at": f"{now + 6 * HOUR:%Y-%m-%dT%H:%M}"}
    entered = {**times, "track": "", "text": "New disks."}
    for hours, is_named in ((3, False), (5, True), (7, True), (29, True), (31, False)):
        Phase.objects.filter(pk=phase.pk).update(ends_at=now + hours * HOUR)
        page = client.post(PAGE, entered).text
        named = f'/phases/{phase.pk}/">{phase.track}: “{phase}”</a>, until '
        assert (named in page) is is_named, hours
        assert "Deadlines don't move by themselves" in page
    Phase.objects.filter(pk=phase.pk).update(ends_at=now + 7 * HOUR)
    other = {**entered, "track": make_track(name="Other").slug}
    assert "takes time from the last day" not in client.post(PAGE, other).text


def test_what_was_entered_is_changed_with_its_banner(client: Client, organizer, phase) -> None:
    now = timezone.now().replace(microsecond=0)
    entered = {"starts_at": f"{now + HOUR:%Y-%m-%dT%H:%M}", "ends_at": f"{now + 2 * HOUR:%Y-%m-%dT%H:%M}"}
    client.post(PAGE, {**entered, "track": "track", "text": "New disks.", "seen": "coming"})
    outage = Outage.objects.get()
    edit = f"{PAGE}{outage.pk}/edit/"
    assert f'href="{edit}"' in client.get(PAGE).text
    assert 'value="New disks."' in (page := client.get(edit).text)
    assert 'value="track" selected' in page
    changed = {**entered, "ends_at": f"{now + 3 * HOUR:%Y-%m-%dT%H:%M}", "track": "", "text": "Newer disks."}
    assert "Every page shows this notice" in client.post(edit, changed).text
    assert "New disks." in Client().get("/tracks/").text
    client.post(edit, {**changed, "seen": "coming"})
    outage.refresh_from_db()
    assert (outage.track, outage.ends_at) == ("", (now + 3 * HOUR).replace(second=0))
    assert "Newer disks." in Client().get("/tracks/").text
    assert outage.notice.shown_until == outage.ends_at
    changes = AuditEntry.objects.get(action="outage.changed").details["changes"]
    assert changes["text"] == ["New disks.", "Newer disks."]
    assert set(changes) == {"text", "track", "ends_at"}
    # It took place earlier than was announced.
    over = {
        **changed,
        "starts_at": f"{now - 2 * HOUR:%Y-%m-%dT%H:%M}",
        "ends_at": f"{now - HOUR:%Y-%m-%dT%H:%M}",
    }
    assert "No page shows a notice." in client.post(edit, over).text
    assert "No page shows" in client.post(edit, {**over, "seen": "coming"}).text
    client.post(edit, {**over, "seen": "over"})
    assert "Newer disks." not in Client().get("/tracks/").text
    assert Outage.objects.get().cause == Cause.MAINTENANCE
    # What the site measured stays as it is.
    assert client.get(f"{PAGE}{add_outage(now - HOUR, HOUR).pk}/edit/").status_code == 404


def test_an_outage_that_is_over_is_added_without_a_banner(client: Client, organizer, phase) -> None:
    times = {"starts_at": "2026-01-01 10:00", "ends_at": "2026-01-01 11:00"}
    client.post(PAGE, {**times, "track": "track", "text": "The network.", "seen": "over"})
    outage = Outage.objects.get()
    assert (outage.cause, outage.track) == (Cause.REPORTED, "track")
    client.post(f"/organize/outages/{outage.pk}/withdraw/")
    for action in ("outage.reported", "outage.removed"):
        details = AuditEntry.objects.get(action=action).details
        assert details["starts_at"] == "2026-01-01T10:00:00+00:00"
        assert details["ends_at"] == "2026-01-01T11:00:00+00:00"
        assert details["track"] == "track"
    assert not Notice.objects.exists()
    page = client.post(PAGE, {**times, "ends_at": "2026-01-01 09:00", "track": "nowhere"}).text
    assert "The end must be after the start." in page
    assert "Select a valid choice" in page


def test_a_preview_says_what_counts_as_the_page_counts_it(client: Client, organizer, phase) -> None:
    def preview(starts_at: datetime) -> str:
        times = {
            "starts_at": f"{starts_at:%Y-%m-%dT%H:%M}",
            "ends_at": f"{starts_at + 2 * HOUR:%Y-%m-%dT%H:%M}",
        }
        return client.post(PAGE, {**times, "track": "", "text": ""}).text

    counted = f"{phase.track}: “{phase}” (1 h 0 min)"
    page = preview(phase.starts_at - HOUR)
    assert counted in page
    assert "Deadlines don't move by themselves" in page
    record(organizer, "track.published", phase.track)
    page = preview(phase.starts_at - HOUR)
    assert counted not in page
    assert "Nothing counts" in page
    assert "Deadlines don't move by themselves" not in page


def test_organizers_of_a_track_see_and_make_up_for_its_lost_time_alone(client: Client, phase) -> None:
    person = make_user(is_staff=True)
    make_track_organizer(person)
    client.force_login(person)
    phase.track.organizers.add(person)
    other = make_track(slug="other", opens_at=phase.starts_at, closes_at=phase.ends_at)
    outage = add_outage(phase.starts_at, 2 * HOUR, text="Ours.")
    add_outage(phase.starts_at, 2 * HOUR, track="other", text="Theirs.", cause=Cause.REPORTED)
    page = client.get(PAGE).text
    assert "Ours." in page
    assert "Theirs." not in page
    assert str(other) not in page
    assert "Announce maintenance" not in page
    assert client.post(PAGE, {}).status_code == 403
    assert client.post(f"{PAGE}{outage.pk}/withdraw/").status_code == 403
    assert "lost time" in client.get("/organize/").text
    assert "has been extended" in extend(client, phase).text
    assert client.post(f"/organize/tracks/other/phases/{other.phases.get().pk}/extend/").status_code == 404


def test_short_outages_and_coming_maintenance_are_said_to_be_so(client: Client, organizer, phase) -> None:
    short = add_outage(phase.starts_at, timedelta(seconds=8))
    assert "1 outage, under 1 min in total" in client.get(PAGE).text
    short.delete()
    add_outage(phase.starts_at, timedelta(minutes=8))
    add_outage(timezone.now() + HOUR, HOUR, cause=Cause.MAINTENANCE, text="New disks.")
    page = client.get(PAGE).text
    assert "8 min in total" in page
    assert "Less than ten minutes of lost time, which need no extension." in page
    assert 'Cancel<span class="visually-hidden"> planned maintenance: New disks.</span>' in page
    assert "The notice disappears from all pages." in page


def test_the_page_needs_its_permission(client: Client, phase) -> None:
    client.force_login(make_organizer("organize"))
    assert client.get(PAGE).status_code == 403
    assert client.post(f"/organize/tracks/track/phases/{phase.pk}/extend/").status_code == 403


def test_an_outage_of_a_queue_counts_for_the_tracks_whose_runs_waited(
    client: Client, organizer, phase
) -> None:
    now = timezone.now()
    start = now - 4 * HOUR
    queue = StepQueue.objects.create(pk=SCORING_QUEUE)
    _pause(queue, "OSError: no GPU", start)
    other = make_track(slug="other", name="Unconcerned").phases.get()
    waiting = make_run(make_submission(track=phase.track, state="submitted"), state=RunState.QUEUED)
    Evaluation.objects.create(
        run=waiting, attempt=1, step=Step.SCORING, created_at=start + HOUR, step_queued_at=start + HOUR
    )
    # No score waits for leakage.
    measured = make_run(make_submission(track=other.track, state="submitted"), state=RunState.SCORED)
    Evaluation.objects.create(run=measured, attempt=1, step=Step.LEAKAGE, created_at=start)
    for _ in range(2):  # while it goes on, and after its end
        assert downtime_of(phase, now).total == 3 * HOUR
        assert downtime_of(other, now).total == timedelta()
        page = client.get(PAGE).text
        assert "A queue was paused, because steps failed: evaluator.scoring (3 h 0 min)" in page
        assert f'<td data-label="Tracks">{phase.track}</td>' in page
        resume(queue)
        queue.refresh_from_db()
        Outage.objects.filter(ends_at__isnull=False).update(ends_at=now)
    assert Outage.objects.get().waited.keys() == {"track"}
