import re
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import make_track_organizer
from docvqa_site.audit.models import AuditEntry, personal, record
from docvqa_site.boards.models import FinalResults
from docvqa_site.boards.ordering import ranks_of
from docvqa_site.challenge.models import RuleChange, Track
from docvqa_site.challenge.rankings import BEST_ANLS_AT_BUDGET
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.models import Notification
from docvqa_site.notifications.preferences import choose_mails
from docvqa_site.organizers.track_changes import quota_sentences
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.submissions.models import RunState, SubmissionState
from tests.docvqa_site.factories import (
    make_organizer,
    make_run,
    make_submission,
    make_track,
    make_user,
    sign_in_organizer,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def track():
    track = make_track(anls_threshold=0.5)
    for anls in (0.6, 0.7, 0.9):
        make_run(
            make_submission(track=track, state=SubmissionState.SUBMITTED), state=RunState.SCORED, anls=anls
        )
    return track


def fields(**changed) -> dict[str, object]:
    return {
        "anls_threshold": 0.5,
        "reason": "",
        **changed,
    }


def confirmed(client: Client, address: str, data: dict[str, object]):
    page = client.post(address, data).content.decode()
    seen = re.search(r'name="seen" value="(\w+)"', page).group(1)
    return client.post(address, {**data, "seen": seen})


def test_a_new_threshold_shows_its_effect_and_changes_nothing(client: Client, organizer, track) -> None:
    page = client.post(f"/organize/tracks/{track.slug}/", fields(anls_threshold=0.8)).content.decode()
    assert "2 runs lose their rank." in page
    assert "ANLS threshold: 0.5000 → 0.8000." in page
    assert "is below the threshold of 0.8000" in page
    # Without a reason, it can't be applied either.
    assert "the change needs a public reason" in page
    assert "Apply and publish" not in page
    confirmed(client, f"/organize/tracks/{track.slug}/", fields(anls_threshold=0.8))
    track.refresh_from_db()
    assert track.anls_threshold == 0.5


def test_the_preview_shows_runs_that_change_rank_and_who_is_notified(client: Client, organizer) -> None:
    track = make_track(anls_threshold=0.5)
    for anls, size in ((0.6, 10), (0.9, 20)):
        submission = make_submission(track=track, state=SubmissionState.SUBMITTED, title=f"At {anls}")
        make_run(submission, state=RunState.SCORED, anls=anls, bytes_total=size)
    page = client.post(f"/organize/tracks/{track.slug}/", fields(anls_threshold=0.8)).text
    assert "1 run loses its rank." in page
    assert "1 run changes rank." in page
    ranks = '<td class="num" data-label="Now">2</td><td class="num" data-label="Then">1</td>'
    assert re.search(rf"At 0.9</a>.*?{ranks}", page, re.DOTALL)
    assert (
        "2 people whose team has registered for this track, or has a draft or submission in it, are notified"
        in page
    )
    assert not Notification.objects.exists()


def test_teams_are_notified_and_learn_which_rank_they_lose(client: Client, organizer, track) -> None:
    make_user("spectator@example.org")
    data = fields(anls_threshold=0.8, reason="As announced.")
    confirmed(client, f"/organize/tracks/{track.slug}/", data)
    losing = Notification.objects.filter(kind=Kind.RESULTS)
    assert {one.subject for one in losing} == {f"{track}: your team loses a rank"}
    assert len(losing) == 2
    assert "ANLS threshold: 0.5000 → 0.8000. As announced." in losing[0].text
    assert "these runs of your team lose their ranks: Method " in losing[0].text
    others = Notification.objects.get(kind=Kind.ANNOUNCEMENTS)
    assert others.subject == f"{track}: the rules have changed"
    assert len(mail.outbox) == 3


def test_a_change_of_rules_is_mailed_to_those_who_turned_its_kind_off_as_well(
    client: Client, organizer, track
):
    for person in User.objects.exclude(pk=organizer.pk):
        choose_mails(person, [])
    data = fields(anls_threshold=0.8, reason="As announced.")
    assert "notified, on the site and by email.<" in client.post(f"/organize/tracks/{track.slug}/", data).text
    confirmed(client, f"/organize/tracks/{track.slug}/", data)
    assert len(mail.outbox) == 3
    for sent in mail.outbox:
        assert "You can't unsubscribe from emails about disqualifications and changes of rules" in sent.body
        assert "List-Unsubscribe" not in sent.extra_headers
    client.force_login(track.submissions.first().created_by)
    assert "about disqualifications and changes of rules" in client.get("/account/notifications/").text


def test_the_forms_say_which_rules_reach_ranked_runs_and_when_a_reason_is_required(
    client: Client, organizer, track
) -> None:
    page = client.get(f"/organize/tracks/{track.slug}/").text
    assert "applies at once, also to runs that are submitted or ranked" in page
    assert ">Reason (required if ranks change)</label>" in page
    page = client.get(f"/organize/tracks/{track.slug}/rules/").text
    assert "applies only to new submissions" in page
    assert 'Reason <span class="optional">(optional)' in page


def test_the_runs_of_the_track_are_linked_for_who_may_read_them(client: Client, organizer, track) -> None:
    link = f'href="/organize/runs/?track={track.slug}"'
    assert link not in client.get(f"/organize/tracks/{track.slug}/").text
    sign_in_organizer(client, "organize", "change_track", "view_submission")
    assert link in client.get(f"/organize/tracks/{track.slug}/").text


def test_registrations_and_their_questions_are_linked(client: Client, organizer, track) -> None:
    page = client.get(f"/organize/tracks/{track.slug}/").text
    assert f'href="/organize/registrations/?track={track.slug}">Registrations of teams</a>' in page
    rules = f"/organize/tracks/{track.slug}/rules/"
    assert f'href="{rules}#id_registration">Admission and registration questions</a>' in page
    assert 'id="id_registration_questions"' in client.get(rules).text


def test_a_preview_leads_back_to_the_form_as_it_was_filled_in(client: Client, organizer, track) -> None:
    address, data = f"/organize/tracks/{track.slug}/", fields(anls_threshold=0.8, reason="As announced.")
    assert 'name="edit"' in client.post(address, data).text
    page = client.post(address, {**data, "seen": "x", "edit": "1"}).text
    assert "Preview the effect" in page
    assert 'value="As announced."' in page
    track.refresh_from_db()
    assert track.anls_threshold == 0.5


def test_a_confirmed_change_is_made_noted_publicly_and_audited(client: Client, organizer, track) -> None:
    data = fields(anls_threshold=0.8, reason="As announced.")
    assert confirmed(client, f"/organize/tracks/{track.slug}/", data).status_code == 302
    track.refresh_from_db()
    assert track.anls_threshold == 0.8
    page = client.get(f"/tracks/{track.slug}/").content.decode()
    assert "ANLS threshold: 0.5000 → 0.8000. As announced." in page
    entry = AuditEntry.objects.get(action="track.changed")
    assert (entry.actor, entry.details["changes"]) == (organizer, {"anls_threshold": [0.5, 0.8]})


def test_organizers_of_single_tracks_read_the_history_of_theirs(client: Client, organizer, track) -> None:
    confirmed(client, f"/organize/tracks/{track.slug}/", fields(anls_threshold=0.8, reason="As announced."))
    other = make_track(name="Other")
    record(organizer, "track.changed", other, reason="Not theirs.")
    own = make_user(is_staff=True)
    make_track_organizer(own)
    track.organizers.add(own)
    client.force_login(own)
    page = client.get(f"/organize/tracks/{track.slug}/history/").text
    assert f"{organizer} changed track {track}" in page
    assert "As announced." in page
    assert "anls threshold: 0.5 → 0.8" in page
    assert "Not theirs." not in page
    assert client.get(f"/organize/tracks/{other.slug}/history/").status_code == 404


def test_a_history_has_words_and_only_what_is_about_its_track(client: Client, organizer, track) -> None:
    phase, ada = track.phases.get(), make_user(name="Ada")
    for email, role in (("ben@example.org", "reviewer"), ("rita@example.org", "organizer")):
        record(organizer, "staff.invited", track, email=personal(email), role=role)
    record(ada, "staff.joined", track, role="all_tracks")
    record(organizer, "staff.removed", track, user=ada.pk)
    sizes = {"max_checkpoint_bytes": [2 * 1024**3, 500_000_000], "registration": ["none", "approval"]}
    record(organizer, "track.changed", track, changes=sizes)
    ends = {"ends_at": [None, "2026-11-30T16:27:00+00:00"]}
    record(organizer, "phase.changed", phase, track=track.slug, changes=ends)
    results = FinalResults.objects.create(slug="final", title="Final results", phase=phase)
    record(organizer, "phase.closed", phase, results=results.slug)
    own = make_user(is_staff=True)
    make_track_organizer(own)
    track.organizers.add(own)
    for reader, is_linked in ((organizer, True), (own, False)):
        client.force_login(reader)
        page = client.get(f"/organize/tracks/{track.slug}/history/").text
        text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
        for value in ("role: organizer of this track alone", "email: rita@example.org", "user: Ada"):
            assert value in text
        assert "ben@example.org" not in page
        assert "joined" not in text
        assert "removed a person from the staff" in text
        assert "max checkpoint size: 2 GiB → 500 MB" in text
        assert "registration: teams submit without registering → teams register, and" in text
        assert "ends at: – → Nov 30, 2026, 16:27:00 UTC" in text
        assert f"closed phase {phase} results: Final results" in text
        assert f'<a href="{results.get_absolute_url()}">Final results</a>' in page
        assert ("/admin/challenge/" in page) is is_linked


def test_a_change_whose_effect_is_another_by_now_is_shown_again(client: Client, organizer, track) -> None:
    address, data = f"/organize/tracks/{track.slug}/", fields(anls_threshold=0.8)
    seen = re.search(r'name="seen" value="(\w+)"', client.post(address, data).content.decode()).group(1)
    late = make_submission(track=track, state=SubmissionState.SUBMITTED)
    make_run(late, state=RunState.SCORED, anls=0.55)
    page = client.post(address, {**data, "seen": seen}).content.decode()
    assert "3 runs lose their rank." in page
    assert not RuleChange.objects.exists()


@pytest.fixture
def private_track():
    track = make_track(BEST_ANLS_AT_BUDGET, budgets=[1, 4], required_reviews=2)
    submission = make_submission(track=track, state=SubmissionState.SUBMITTED)
    make_run(submission, state=RunState.SCORED, budget=4.0, epsilon=3.9)
    ProofReview.objects.create(
        submission=submission, reviewer=make_user(), decision=Decision.ACCEPTED, decided_at=timezone.now()
    )
    make_run(make_submission(track=track), budget=4.0)
    return track


def private_fields(**changed) -> dict[str, object]:
    return fields(required_reviews=2, unbound_level=2, budgets="[1, 4]", **changed)


def test_fewer_reviews_say_which_proofs_become_accepted(client: Client, organizer, private_track) -> None:
    address, data = f"/organize/tracks/{private_track.slug}/", private_fields() | {"required_reviews": 1}
    assert "The proof of 1 method becomes accepted." in client.post(address, data).content.decode()
    confirmed(client, address, data)
    private_track.refresh_from_db()
    assert private_track.required_reviews == 1
    note = RuleChange.objects.get().text
    assert note == "Accepting reviewers required for each proof: 2 → 1."


def test_another_list_of_budgets_says_which_boards_come_and_go(client: Client, organizer, private_track):
    address, data = f"/organize/tracks/{private_track.slug}/", private_fields() | {"budgets": "[1, 2]"}
    page = client.post(address, data).content.decode()
    assert "The board at ε\xa0=\xa02 (no runs) appears." in page
    assert "The board at ε\xa0=\xa04 (1 run, 1 with a rank) will be removed; its results are kept." in page
    assert "1 run of drafts must be removed" in page
    confirmed(client, address, data | {"reason": "As announced."})
    private_track.refresh_from_db()
    assert private_track.budgets == [1, 2]
    assert RuleChange.objects.get().text == "Privacy budgets ε: 1, 4 → 1, 2."


def test_a_removed_budget_names_the_runs_that_lose_their_rank_and_needs_a_reason(
    client: Client, organizer, private_track
) -> None:
    address, data = f"/organize/tracks/{private_track.slug}/", private_fields() | {"budgets": "[1]"}
    ranked = private_track.submissions.get(state=SubmissionState.SUBMITTED)
    page = client.post(address, data).text
    assert "ε\xa0=\xa04: 1 run loses its rank." in page
    assert "No rank changes" not in page
    lost = page[page.index('aria-label="Runs that lose their rank"') :]
    assert f'<a href="{ranked.get_absolute_url()}">{ranked.title}</a>' in lost
    assert "ε\xa0=\xa04 is no longer a budget of this track" in lost
    assert "Ranks change, so the change needs a public reason" in page
    assert "Apply and publish" not in page
    confirmed(client, address, data)
    private_track.refresh_from_db()
    assert private_track.budgets == [1, 4]


def test_teams_are_notified_of_the_rank_that_they_lose_with_a_budget(
    client: Client, organizer, private_track
) -> None:
    data = private_fields() | {"budgets": "[1]", "reason": "As announced."}
    confirmed(client, f"/organize/tracks/{private_track.slug}/", data)
    losing = Notification.objects.get(kind=Kind.RESULTS)
    assert losing.subject == f"{private_track}: your team loses a rank"
    run = private_track.submissions.get(state=SubmissionState.SUBMITTED).runs.get()
    assert f"these runs of your team lose their ranks: {run}." in losing.text
    assert f"these runs of your team lose their ranks: {run}." in "".join(
        str(sent.body) for sent in mail.outbox
    )


def test_a_budget_that_returns_names_the_runs_that_get_their_rank_again(
    client: Client, organizer, private_track
) -> None:
    Track.objects.update(budgets=[1])
    page = client.post(f"/organize/tracks/{private_track.slug}/", private_fields()).text
    assert "The board at ε\xa0=\xa04 (1 run, 1 with a rank) appears." in page
    assert "ε\xa0=\xa04: 1 run gets a rank." in page
    assert 'aria-label="Runs that get a rank"' in page


@pytest.mark.parametrize("budgets", ["[0]", "[1, 1]", "4; 8", "nonsense", '["1"]'])
def test_impossible_budgets_are_rejected(client: Client, organizer, private_track, budgets) -> None:
    address, data = f"/organize/tracks/{private_track.slug}/", private_fields() | {"budgets": budgets}
    assert "errorlist" in client.post(address, data).content.decode()
    assert not RuleChange.objects.exists()


def test_a_pause_says_how_many_drafts_it_stops(client: Client, organizer, track) -> None:
    make_submission(track=track)
    address, data = f"/organize/tracks/{track.slug}/", fields(paused="on")
    assert "1 draft can&#x27;t be submitted until it opens." in client.post(address, data).content.decode()
    confirmed(client, address, data)
    track.refresh_from_db()
    assert track.paused
    assert "Paused: no → yes." in client.get(f"/tracks/{track.slug}/").content.decode()


def test_a_smaller_quota_says_how_many_teams_have_no_slot_left() -> None:
    now = timezone.now()
    times = [[now], [now, now - timedelta(hours=2)], [now - timedelta(hours=25)]]
    assert list(quota_sentences(times, (2, 1), now)) == [
        "2 teams would be out of submissions now, compared with 1 before."
    ]
    assert list(quota_sentences(times, (1, 3), now)) == [
        "No team would be out of submissions now, compared with 2 before."
    ]
    assert not list(quota_sentences(times, (4, 3), now))


def test_a_track_with_budgets_has_no_threshold_to_change(client: Client, organizer) -> None:
    track = make_track(BEST_ANLS_AT_BUDGET)
    assert "anls_threshold" not in client.get(f"/organize/tracks/{track.slug}/").content.decode()


def test_the_panel_needs_its_permission_an_existing_track_and_a_known_method(
    client: Client, organizer, track
) -> None:
    assert client.get("/organize/tracks/nowhere/").status_code == 404
    assert client.delete(f"/organize/tracks/{track.slug}/").status_code == 405
    client.force_login(make_organizer("organize"))
    assert client.get(f"/organize/tracks/{track.slug}/").status_code == 403
    assert client.post(f"/organize/tracks/{track.slug}/", fields(anls_threshold=0.8)).status_code == 403


def test_ranking_unbound_runs_says_who_gets_a_rank(client: Client, organizer, private_track) -> None:
    submission = make_submission(track=private_track, state=SubmissionState.SUBMITTED)
    run = make_run(submission, state="scored", budget=4.0, epsilon=3.9, unbound="record.linkage: flagged")
    assert "unbound (linkage: flagged)" in client.get(submission.get_absolute_url()).text
    address = f"/organize/tracks/{private_track.slug}/"
    data = private_fields() | {"unbound_level": 0, "reason": "As announced."}
    page = client.post(address, data).text
    assert "ε\xa0=\xa04: 1 run gets a rank." in page
    confirmed(client, address, data)
    note = RuleChange.objects.get().text
    assert note == (
        "Unbound runs: not ranked until a replay (L2) or rerun (L3) confirms them → ranked like any other run."
    )
    assert ranks_of(Track.objects.get(), 4.0, [run.pk]) == {run.pk: 2}
