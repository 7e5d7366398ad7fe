"""The desk changes the phases of a track: with a preview, a public note and an audit entry."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.boards import stored_boards
from docvqa_site.challenge.models import Anonymity, Phase, ResultsTiming, RuleChange
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.notifications.models import Notification
from docvqa_site.organizers.phase_changes import NAMES
from docvqa_site.organizers.track_changes import in_words
from docvqa_site.submissions.models import SubmissionState
from tests.docvqa_site.factories import (
    make_organizer,
    make_phase,
    make_run,
    make_submission,
    make_track,
    owner_of,
)

pytestmark = pytest.mark.django_db


CHOICES: list[dict[str, Any]] = [{"anonymous": True}, {"keep_private": True}]


@pytest.fixture
def track():
    return make_track(slug="track", closes_at=timezone.now() + timedelta(days=7))


def address(phase: Phase) -> str:
    return f"/organize/tracks/{phase.track.slug}/phases/{phase.pk}/"


def fields(phase: Phase | None = None, **changed) -> dict[str, object]:
    """What the form of a phase sends when nothing but this is changed."""
    phase = phase or Phase(name="Final")
    times = {name: getattr(phase, name) for name in ("starts_at", "ends_at")}
    return {
        "name": phase.name,
        **{name: f"{moment:%Y-%m-%d %H:%M:%S.%f}" if moment else "" for name, moment in times.items()},
        "submissions_per_day": phase.submissions_per_day,
        "results": phase.results,
        "anonymity": phase.anonymity,
        "examined_ranks": phase.examined_ranks,
        "examined_level": phase.examined_level,
        **({"allows_private": "on"} if phase.allows_private else {}),
        **({"requires_counted": "on"} if phase.requires_counted else {}),
        "reason": "",
        **changed,
    }


def confirmed(client: Client, path: str, data: dict[str, object]) -> str:
    """The preview; the change is made as well."""
    page = client.post(path, data).text
    seen = re.search(r'name="seen" value="(\w+)"', page).group(1)
    assert client.post(path, {**data, "seen": seen}).status_code == 302
    return page


def test_a_phase_is_added_noted_publicly_and_audited(client: Client, organizer, track) -> None:
    first = track.phases.get()
    data = fields(
        starts_at=f"{first.ends_at:%Y-%m-%d %H:%M:%S.%f}", submissions_per_day=1, reason="As announced."
    )
    page = confirmed(client, "/organize/tracks/track/phases/add/", data)
    assert "Phase “Final” added." in page
    # The note has the names of the form's fields.
    assert "Unpublished submissions: no." in page
    form = client.get("/organize/tracks/track/phases/add/").text
    assert {one for one in NAMES.values() if f"{one}</label>" not in form and f"{one} <" not in form} == set()
    assert "This doesn&#x27;t change whether teams can submit." in page
    assert [phase.name for phase in track.phases.all()] == ["Submissions", "Final"]
    shown = client.get("/tracks/track/").text
    assert "Phase “Final” added." in shown
    assert "As announced." in shown
    assert 'id="phases"' in shown
    entry = AuditEntry.objects.get(action="phase.added")
    assert entry.actor == organizer
    assert entry.details["changes"]["submissions_per_day"] == [None, 1]


def test_teams_with_a_draft_are_notified_of_another_deadline(client: Client, organizer, track) -> None:
    phase, draft = track.phases.get(), make_submission(track=track)
    make_submission()
    soon = f"{timezone.now() + timedelta(minutes=3):%Y-%m-%d %H:%M}"
    page = confirmed(client, address(phase), fields(phase, ends_at=soon, reason="Sorry."))
    assert f"Teams can submit until {in_words(track.phases.get().ends_at)}." in page
    assert "change whether teams can submit" not in page
    assert (
        "1 person whose team has registered for this track, or has a draft or submission in it, is notified"
        in page
    )
    found = Notification.objects.get()
    assert found.user == owner_of(draft.team)
    assert found.subject == f"{track}: the phases have changed"
    assert "Sorry." in found.text
    assert [message.to for message in mail.outbox] == [[found.user.email]]


def test_an_end_on_short_notice_says_how_soon_it_is_and_needs_a_reason(
    client: Client, organizer, track
) -> None:
    phase = track.phases.get()
    soon = fields(phase, ends_at=f"{timezone.now() + timedelta(minutes=2, seconds=30):%Y-%m-%d %H:%M:%S}")
    page = client.post(address(phase), soon).text
    assert "UTC (in 2\xa0min)</time>" in page
    assert "less than a day&#x27;s notice" in page.replace("'", "&#x27;")
    assert "so the change needs a public reason" in page
    assert "Apply and publish" not in page
    confirmed(client, address(phase), {**soon, "reason": "The test set has leaked."})
    later = fields(track.phases.get(), ends_at="2100-01-01 00:00")
    assert "Apply and publish" in client.post(address(phase), later).text


def test_a_changed_end_says_what_it_means_for_submitting(client: Client, organizer, track) -> None:
    phase = track.phases.get()
    make_submission(track=track)
    page = confirmed(client, address(phase), fields(phase, ends_at="2020-01-01 00:00", reason="Over."))
    assert "1 draft can&#x27;t be submitted until it opens." in page
    phase.refresh_from_db()
    assert f"{phase.ends_at:%Y-%m-%d}" == "2020-01-01"
    assert "→ Jan 1, 2020, 00:00 UTC" in RuleChange.objects.get().text


def test_an_end_that_has_passed_is_named(client: Client, organizer, track) -> None:
    phase = track.phases.get()
    passed = "The new end has already passed: the phase ends as soon as you confirm"
    past = fields(phase, ends_at=f"{timezone.now() - timedelta(minutes=1):%Y-%m-%d %H:%M:%S.%f}")
    page = confirmed(client, address(phase), {**past, "reason": "Over."})
    assert passed in page
    assert "Teams can&#x27;t submit now" in page
    assert passed not in client.post(address(phase), fields(Phase.objects.get(), name="Autumn")).text


def test_ending_a_phase_says_what_becomes_public_and_makes_it_so(
    client: Client, organizer, django_capture_on_commit_callbacks
) -> None:
    track = make_track(results=ResultsTiming.AFTER_END, anonymity=Anonymity.UNTIL_END, allows_private=True)
    phase = track.phases.get()
    waiting, private = (
        make_submission(track=track, state=SubmissionState.SUBMITTED, published_at=None, **choice)
        for choice in CHOICES
    )
    with django_capture_on_commit_callbacks(execute=True):
        page = confirmed(client, address(phase), fields(phase, ends_at="2020-01-01 00:00", reason="Over."))
    assert "1 submission becomes public at once." in page
    assert "The team of 1 submission will be named at once." in page
    assert "1 submission waits for the team to publish." in page
    waiting.refresh_from_db()
    private.refresh_from_db()
    assert not waiting.is_unpublished
    assert not waiting.anonymous
    assert private.is_unpublished


def test_other_slots_say_how_many_teams_have_none_left(client: Client, organizer, track) -> None:
    make_submission(track=track, state=SubmissionState.SUBMITTED)
    phase = track.phases.get()
    page = client.post(address(phase), fields(phase, submissions_per_day=1)).text
    assert "1 team would be out of submissions now, compared with none before." in page
    phase.refresh_from_db()
    assert phase.submissions_per_day == 5


def test_counted_bytes_are_required_with_a_look_at_what_that_does_to_ranks(client: Client, organizer) -> None:
    track = make_track(slug="track", anls_threshold=0.5, requires_counted=False)
    phase = track.phases.get()
    runs = [
        make_run(make_submission(track=track, state=SubmissionState.SUBMITTED), state="scored", **results)
        for results in ({"counting": "declared", "bytes_total": 10}, {"bytes_total": 20})
    ]
    shown = client.get("/tracks/track/").text
    assert "<dt>Bytes</dt><dd>Counted and declared bytes are ranked" in shown
    page = confirmed(client, address(phase), fields(phase, requires_counted="on"))
    assert "Counted bytes only: no → yes." in page
    assert "1 run loses its rank." in page
    assert "1 run changes rank." in page
    assert "<dt>Bytes</dt><dd>Only counted bytes are ranked" in client.get("/tracks/track/").text
    reason = "the bytes are declared, not counted: the run has no transcript"
    (board,) = stored_boards(track)
    assert [(row.entry.run, row.rank, row.reason) for row in board] == [
        (runs[1].pk, 1, ""),
        (runs[0].pk, None, reason),
    ]


def test_where_bytes_do_not_rank_a_phase_says_nothing_of_them(client: Client, organizer) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET, slug="track")
    phase = track.phases.get()
    assert "requires_counted" not in client.get(address(phase)).text
    assert "<dt>Bytes</dt>" not in client.get("/tracks/track/").text
    page = client.post("/organize/tracks/track/phases/add/", fields()).text
    assert "Counted bytes" not in page


def test_rules_that_become_stricter_say_which_drafts_they_stop(client: Client, organizer) -> None:
    track = make_track(allows_private=True, anonymity=Anonymity.UNTIL_NAMED)
    make_submission(track=track, keep_private=True, anonymous=True)
    phase = track.phases.get()
    data = fields(phase, anonymity=Anonymity.NONE, results=ResultsTiming.AFTER_END)
    del data["allows_private"]
    page = client.post(address(phase), data).text.replace("&#x27;", "'")
    assert "1 draft can't be kept unpublished in this phase." in page
    assert "1 draft can't be submitted anonymously in this phase." in page
    assert "Public submissions stay public" in page


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"ends_at": "2030-02-01 00:00"}, "overlap"),
        ({"starts_at": "2030-02-01 00:00", "ends_at": "2030-01-01 00:00"}, "ends before it starts"),
        ({"name": "Later"}, "The track already has a phase with this name."),
        ({"submissions_per_day": 0}, "Enter at least 1."),
        ({"results": "never"}, "Select a valid choice"),
    ],
)
def test_what_is_not_possible_is_explained(client: Client, organizer, changed, problem) -> None:
    track = make_track(closes_at="2030-01-15T00:00Z")
    phase = track.phases.get()
    make_phase(track, name="Later", starts_at="2030-01-20T00:00Z")
    phase.refresh_from_db()
    assert problem in client.post(address(phase), fields(phase, **changed)).text
    assert not RuleChange.objects.exists()


def test_a_change_whose_effect_is_another_by_now_is_shown_again(client: Client, organizer, track) -> None:
    phase = track.phases.get()
    data = fields(phase, ends_at="2020-01-01 00:00")
    seen = re.search(r'name="seen" value="(\w+)"', client.post(address(phase), data).text).group(1)
    make_submission(track=track)
    assert "1 draft" in client.post(address(phase), {**data, "seen": seen}).text
    assert not RuleChange.objects.exists()


def test_an_empty_phase_is_removed_unless_it_is_the_only_one(client: Client, organizer, track) -> None:
    first = track.phases.get()
    client.post(address(first) + "remove/")
    assert track.phases.count() == 1
    second = make_phase(track, starts_at=first.ends_at)
    make_submission(track=track, state=SubmissionState.SUBMITTED, phase=first)
    for phase in (first, second):
        client.post(address(phase) + "remove/")
    assert track.phases.get() == first
    assert RuleChange.objects.get().text == f"Phase “{second.name}” removed."


def test_the_pages_need_their_permission_an_existing_phase_and_a_known_method(
    client: Client, organizer, track
) -> None:
    phase, other = track.phases.get(), make_track().phases.get()
    paths = ["/organize/tracks/track/phases/add/", address(phase)]
    for path in paths:
        assert client.get(path).status_code == 200
        assert client.delete(path).status_code == 405
    assert client.get(address(phase) + "remove/").status_code == 405
    for path in ("/organize/tracks/nowhere/phases/add/", f"/organize/tracks/track/phases/{other.pk}/"):
        assert client.get(path).status_code == 404
    client.force_login(make_organizer("organize"))
    for path in (*paths, address(phase) + "remove/"):
        assert client.post(path, fields(phase)).status_code == 403
    client.logout()
    assert client.get(paths[0]).status_code == 302


def test_removing_the_phase_that_runs_says_first_that_the_track_closes(
    client: Client, organizer, track
) -> None:
    running = track.phases.get()
    make_phase(track, starts_at=running.ends_at)
    make_submission(track=track)
    page = client.get(address(running)).text
    assert "Teams can't submit now: Opens on" in page.replace("&#x27;", "'")
    assert "1 draft" in page


def test_a_required_examination_says_how_many_ranks_wait_and_is_public(
    client: Client, organizer, track
) -> None:
    phase = track.phases.get()
    for _ in range(3):
        make_run(make_submission(track=track, state=SubmissionState.SUBMITTED), state="scored")
    page = confirmed(client, address(phase), fields(phase, examined_ranks=2))
    assert "2 ranks would wait for an examination, compared with none before." in page
    assert "Ranks to examine: 0 → 2." in page
    assert "First 2 ranks: a rerun (L3)" in client.get("/tracks/track/").text


def test_a_replay_is_not_required_where_runs_have_no_record(client: Client, organizer, track) -> None:
    phase = track.phases.get()
    page = client.post(address(phase), fields(phase, examined_ranks=2, examined_level=2)).text
    assert "no training record to replay" in page
    phase.refresh_from_db()
    assert phase.examined_ranks == 0
