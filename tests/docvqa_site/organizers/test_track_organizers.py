"""Organizers of single tracks see these alone, everywhere."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import make_track_organizer, vouch_for_address
from docvqa_site.challenge.models import Track
from docvqa_site.evaluation.models import Examination
from docvqa_site.submissions.models import Run, RunState, SubmissionState
from docvqa_site.teams.models import Membership, PastMembership, Role
from tests.docvqa_site.factories import (
    make_run,
    make_submission,
    make_track,
    make_user,
    scored_submission,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def organizer(client: Client) -> User:
    organizer = make_user(is_staff=True)
    make_track_organizer(organizer)
    client.force_login(organizer)
    return organizer


def run_in(name: str, state: str = RunState.SCORED) -> Run:
    track = make_track(name=name, test_set=name.lower())
    submission = make_submission(
        track=track, title=f"Method {name}", state=SubmissionState.SUBMITTED, published_at=None
    )
    return make_run(submission, state=state)


def test_the_menu_leads_only_to_what_they_may_open(client: Client, organizer: User) -> None:
    page = client.get("/").text
    assert 'href="/organize/"' in page
    assert 'href="/admin/"' not in page


def test_desk_runs_exports_and_pages_show_their_track_alone(client: Client, organizer: User) -> None:
    own, other = run_in("Mine"), run_in("Theirs")
    own.submission.track.organizers.add(organizer)
    for address in (
        "/organize/",
        "/organize/runs/",
        "/organize/exports/",
        "/organize/exports/submissions.csv",
    ):
        answer = client.get(address)
        page = "".join(part.decode() for part in answer) if answer.streaming else answer.text
        assert "Mine" in page, address
        assert "Theirs" not in page, address
    for run, status in ((own, 200), (other, 404)):
        track, submission = run.submission.track, run.submission
        assert client.get(f"/organize/tracks/{track.slug}/").status_code == status
        assert client.get(f"/organize/tracks/{track.slug}/phases/add/").status_code == status
        assert client.get(f"/organize/runs/{run.pk}/").status_code == status
        assert client.get(f"/submissions/{submission.pk}/").status_code == status
    phase = other.submission.track.phases.get()
    assert client.post(f"/organize/tracks/{own.submission.track.slug}/phases/{phase.pk}/").status_code == 404


def test_others_drafts_new_tracks_and_the_administration_are_closed(client: Client, organizer: User) -> None:
    Track.with_drafts.create(slug="draft", name="Draft", ranking="bytes", is_draft=True)
    for address in ("/organize/tracks/new/", "/admin/", "/admin/challenge/track/"):
        assert client.get(address).status_code == 403, address
    assert client.get("/organize/tracks/draft/setup/").status_code == 404
    for export in ("people", "audit", "reviews"):
        assert client.get(f"/organize/exports/{export}.csv").status_code == 403


def test_failed_runs_of_other_tracks_are_neither_shown_nor_queued(client: Client, organizer: User) -> None:
    own, other = run_in("Mine", RunState.FAILED), run_in("Theirs", RunState.FAILED)
    own.submission.track.organizers.add(organizer)
    assert "1 failed run:" in client.get("/organize/").text
    client.post("/organize/failures/E_PLATFORM_FAULT/queue/")
    own.refresh_from_db()
    other.refresh_from_db()
    assert (own.state, other.state) == (RunState.QUEUED, RunState.FAILED)


def test_the_desk_names_what_their_track_waits_for_also_if_others_must_act(
    client: Client, organizer: User
) -> None:
    own, other = scored_submission(), scored_submission()
    long_ago = timezone.now() - timedelta(days=1)
    for submission in (own, other):
        Examination.objects.create(run=submission.runs.get(), level=3, requested_at=long_ago)
    assert "Nothing needs attention." in client.get("/organize/").text
    own.track.organizers.add(organizer)
    page = client.get("/organize/").text
    assert "No machine is running examinations" in page
    assert "1 examination waiting. The organizers of all tracks can start a machine." in page
    assert "1 proof with too few assigned reviewers" in page
    assert "/admin/" not in page
    assert "is silent" not in page


def competing(organizer: User) -> Track:
    """Return a track that the person organizes and in which a team of theirs has a ranked run."""
    run = run_in("Mine")
    run.submission.track.organizers.add(organizer)
    Membership.objects.create(team=run.submission.team, user=organizer, role=Role.OWNER)
    return run.submission.track


def test_nobody_changes_the_rules_by_which_they_are_judged(client: Client, organizer: User) -> None:
    track = competing(organizer)
    pages = f"/organize/tracks/{track.slug}/"
    phase = f"{pages}phases/{track.phases.get().pk}/"
    for address in (
        pages,
        f"{pages}rules/",
        f"{pages}phases/add/",
        phase,
        f"{phase}close/",
        f"{pages}setup/people/",
    ):
        answer = client.get(address)
        assert answer.status_code == 403, address
        assert f"You compete in {track}" in answer.text
    assert "You compete in this track" in client.get("/organize/").text
    # Baselines are for comparison.
    track.submissions.update(is_baseline=True)
    assert client.get(pages).status_code == 200
    assert "You compete in this track" not in client.get("/organize/").text


def test_who_invites_and_who_accepts_sees_that_the_invited_person_competes(client: Client) -> None:
    sign_in_organizer(client, is_superuser=True)
    person = make_user("ben@example.org")
    vouch_for_address(person)
    track = competing(person)
    people = f"/organize/tracks/{track.slug}/setup/people/"
    assert "competes in it" in client.get(people).text
    track.organizers.remove(person)
    page = client.post(
        people, {"invite": "1", "email": "Ben@example.org", "role": "organizer"}, follow=True
    ).text
    assert f"A team of ben@example.org has submissions in {track}." in page
    link = re.search(r"/organize/invitations/[^/\s]+/", str(mail.outbox[-1].body))
    assert link
    client.force_login(person)
    assert f"Your team has submissions in {track}." in client.get(link[0]).text
    # A role in every track is about all in which they compete, whichever the invitation is kept with.
    team = run_in("Theirs").submission.team
    PastMembership.objects.create(team=team, user=person, role=Role.OWNER, joined_at=timezone.now())
    sign_in_organizer(client, is_superuser=True)
    client.post("/organize/people/", {"email": person.email, "role": "reviewer", "track": ""})
    link = re.search(r"/organize/invitations/[^/\s]+/", str(mail.outbox[-1].body))
    assert link
    client.force_login(person)
    assert "Your team has submissions in Mine, Theirs." in client.get(link[0]).text
