"""What a team is notified of that others decide about its submission, and its appeal against a disqualification."""

from datetime import timedelta

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.boards.models import FinalResults
from docvqa_site.challenge.models import Phase, Track
from docvqa_site.notifications.models import Notification
from docvqa_site.reviews.models import RunAppeal
from docvqa_site.submissions.models import RunState, SubmissionState
from docvqa_site.submissions.phase_ends import notify_of_closed_phases
from docvqa_site.submissions.services import disqualify, withdraw
from docvqa_site.teams.models import Membership
from tests.docvqa_site.factories import (
    make_organizer,
    make_run,
    make_submission,
    make_team,
    make_track,
    make_user,
)

pytestmark = pytest.mark.django_db
REASON = "Trained on the test set."


@pytest.fixture
def run():
    track = make_track(anls_threshold=0.5)
    return make_run(
        make_submission(track=track, state=SubmissionState.SUBMITTED), state=RunState.SCORED, anls=0.6
    )


@pytest.fixture
def organizer():
    return make_organizer("organize", "view_submission", "change_submission", "change_evaluation")


def notified(user):
    """The newest notification of a user: its subject, its text, and the page that it leads to."""
    newest = Notification.objects.filter(user=user).first()
    return (newest.subject, newest.text, newest.page) if newest else None


def appeal_page(run):
    return reverse("reviews:run_appeal", args=[run.pk])


class TestAppeal:
    @pytest.fixture(autouse=True)
    def disqualified(self, run, organizer):
        disqualify(run, REASON, organizer)

    def test_a_team_appeals_once_and_reads_the_answer(
        self, client, run, organizer, django_capture_on_commit_callbacks
    ):
        member = run.submission.created_by
        subject, text, page = notified(member)
        assert subject == f"Your run “{run}” has been disqualified"
        assert REASON in text
        assert page == appeal_page(run)
        client.force_login(member)
        assert page in client.get(run.submission.get_absolute_url()).text
        assert REASON in client.get(page).text
        mail.outbox.clear()
        with django_capture_on_commit_callbacks(execute=True):
            assert client.post(page, {"text": "It is the validation set."}).status_code == 302
        assert {to for message in mail.outbox for to in message.to} == {organizer.email}
        assert client.post(page, {"text": "Again."}).status_code == 422

        client.force_login(organizer)
        assert "1 appeal to answer" in client.get("/organize/").text
        assert "It is the validation set." in client.get(f"/organize/runs/{run.pk}/").text
        client.post(f"/organize/runs/{run.pk}/appeal/", {"answer": "The hashes are those of the test set."})
        run.refresh_from_db()
        assert run.disqualified_because == REASON
        assert "appeal to answer" not in client.get("/organize/").text
        subject, text, page = notified(member)
        assert subject == f"Your appeal for “{run}” has been answered"
        assert "stands" in text
        client.force_login(member)
        assert "The hashes are those of the test set." in client.get(page).text

    def test_lifting_the_disqualification_answers_the_appeal(self, client, run, organizer):
        client.force_login(run.submission.created_by)
        client.post(appeal_page(run), {"text": "It is the validation set."})
        client.force_login(organizer)
        client.post(f"/organize/runs/{run.pk}/requalify/", {"reason": "So it is.", "confirmed": "yes"})
        run.refresh_from_db()
        assert run.disqualified_because == ""
        assert RunAppeal.objects.get().answered_at is not None
        subjects = set(
            Notification.objects.filter(user=run.submission.created_by).values_list("subject", flat=True)
        )
        assert {
            f"Your run “{run}” is no longer disqualified",
            f"Your appeal for “{run}” has been answered",
        } <= subjects

    def test_another_disqualification_may_be_appealed_against(self, client, run, organizer):
        client.force_login(run.submission.created_by)
        client.post(appeal_page(run), {"text": "It is the validation set."})
        disqualify(run, "", organizer)
        disqualify(run, "Its log is invented.", organizer)
        assert client.post(appeal_page(run), {"text": "It is not."}).status_code == 302

    def test_the_page_is_the_teams_alone(self, client, run):
        assert client.get(appeal_page(run)).status_code == 302
        client.force_login(make_team().memberships.get().user)
        assert client.get(appeal_page(run)).status_code == 404
        assert client.post(appeal_page(run), {"text": "Not mine."}).status_code == 404
        assert not RunAppeal.objects.exists()


def test_a_run_that_was_never_disqualified_has_no_such_page(client, run):
    client.force_login(run.submission.created_by)
    assert client.get(appeal_page(run)).status_code == 404


def test_a_withdrawal_is_reported_to_the_rest_of_the_team_with_its_reason(run):
    owner, member = run.submission.created_by, make_user()
    Membership.objects.create(team=run.submission.team, user=member)
    withdraw(run.submission, owner, "The log missed a round.")
    assert notified(owner) is None
    subject, text, _ = notified(member)
    assert subject == f"Your team's submission “{run.submission}” has been withdrawn"
    assert "Reason: The log missed a round." in text


def test_a_discarded_draft_is_no_news():
    draft = make_submission()
    withdraw(draft, draft.created_by)
    assert notified(draft.created_by) is None


def test_a_new_evaluation_is_reported_with_its_reason(client, run, organizer):
    client.force_login(organizer)
    client.post(
        f"/organize/runs/{run.pk}/evaluate/", {"confirmed": "yes", "reason": "The test set is corrected."}
    )
    subject, text, page = notified(run.submission.created_by)
    assert subject == f"Your run “{run}” is being re-evaluated"
    assert "Reason: The test set is corrected." in text
    assert page == run.submission.get_absolute_url()
    assert (
        AuditEntry.objects.get(action="run.evaluated_again").details["reason"] == "The test set is corrected."
    )


def test_the_end_of_a_phase_is_reported_once_to_those_who_take_part(run):
    phase = run.submission.phase
    draft = make_submission(track=run.submission.track)
    bystander = make_user()
    single = make_user(is_staff=True)
    run.submission.track.organizers.add(single)
    now = timezone.now()
    assert notify_of_closed_phases(now) == 0
    phase.ends_at = now - timedelta(minutes=1)
    phase.save()
    assert notify_of_closed_phases(now) == 3
    assert notify_of_closed_phases(now) == 0
    for user in (run.submission.created_by, draft.created_by):
        subject, text, _ = notified(user)
        assert subject == f"{phase.track}: the phase “{phase.name}” has ended"
        assert "The track no longer accepts submissions." in text
    assert notified(bystander) is None
    subject, _, desk = notified(single)
    assert subject == f"{phase.track}: close the phase “{phase.name}”"
    assert desk.endswith(f"/phases/{phase.pk}/close/")


def test_the_end_of_a_phase_with_final_results_is_reported_to_nobody(run):
    Phase.objects.update(ends_at=timezone.now() - timedelta(minutes=1))
    FinalResults.objects.create(slug="final", title="Final results", phase=run.submission.phase)
    assert notify_of_closed_phases() == 0


def test_the_end_of_a_drafts_phase_is_reported_to_nobody(organizer):
    track = make_track(closes_at=timezone.now() - timedelta(minutes=1))
    make_submission(track=track)
    Track.with_drafts.filter(pk=track.pk).update(is_draft=True)
    assert notify_of_closed_phases() == 0
