"""A revised proof is staged, read by its team as reviewers will, sent with a note, and found in the timeline."""

import json
import re
from datetime import timedelta

import pytest
from django.db import transaction
from django.urls import reverse

from docvqa_site.proofs.models import Drawing, DrawingState
from docvqa_site.reviews.drafts import draft_of
from docvqa_site.reviews.threads import post_message
from docvqa_site.reviews.timeline import timeline
from docvqa_site.submissions.models import Artifact
from docvqa_site.submissions.proof_versions import stage
from evaluator.errors import ErrorCode, Problem
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    make_artifact,
    make_reviewer,
    make_submission,
    make_track,
    make_upload,
    revise_proof,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, reject
from tests.docvqa_site.reviews.test_desk import ACCEPT

pytestmark = pytest.mark.django_db

KIND = ArtifactKind.PRIVACY_PROOF
OVERRIDE = {"confirms_contradiction": "on"}


@pytest.fixture
def submission():
    submission = scored_submission()
    make_artifact(submission, KIND, b"# Claim\n\nsigma is 1.\n", "proof.md")
    return submission


@pytest.fixture
def staged(submission):
    upload = make_upload(submission.team, b"# Claim\n\nsigma is 2.\n", "better.md")
    artifact = Artifact.pending.create(submission=submission, kind=KIND, upload=upload)
    stage(artifact, submission.created_by)
    return artifact


def address(name, submission):
    return reverse(f"reviews:{name}", args=[submission.pk])


def in_admin(submission):
    return reverse("admin:reviews_proof_change", args=[submission.pk])


def test_the_team_reads_it_with_what_changed_before_it_is_sent(client, submission, staged):
    client.force_login(submission.created_by)
    own = client.get(submission.get_absolute_url()).text
    assert address("revision", submission) in own
    place = own[own.index('data-kind="privacy_proof"') :]
    place = place[: place.index("</section>")]
    assert "better.md" in place
    assert "version 2, not sent yet" in place
    assert submission.proof().upload.filename not in place
    assert f'<a href="{address("proof", submission)}?version=2">Reviewers\' view</a>' in place
    assert "hasn't been sent yet" in client.get(address("team", submission)).text
    page = client.get(address("revision", submission)).text
    assert "Send version 2" in page
    assert "sigma is 2." in client.get(address("proof", submission) + "?version=2").text
    assert "sigma is 1." in client.get(address("proof", submission)).text
    changes = client.get(address("proof_changes", submission) + "?from=1&to=2").text
    assert "<ins>sigma is <mark>2.</mark></ins>" in changes


def test_a_draft_says_what_reviewers_cannot_see_and_leads_to_what_they_do(client):
    draft = make_submission(track=make_track("anls"))
    upload = make_artifact(draft, KIND, b"%PDF-1.7", "proof.pdf").upload
    problem = Problem.of(ErrorCode.PROOF_PAGES, found="99 pages").model_dump(mode="json")
    Drawing.objects.create(upload=upload, state=DrawingState.FAILED, problem=problem)
    client.force_login(draft.created_by)
    page = client.get(draft.get_absolute_url()).text
    assert "99 pages" in page
    assert f'<a href="{address("proof", draft)}">Reviewers\' view</a>' in page


def test_once_a_proof_is_accepted_its_team_reads_no_more_of_a_review(client, submission):
    client.force_login(submission.created_by)
    waits = "stays under review until"
    assert waits in client.get(submission.get_absolute_url()).text
    for _ in range(2):
        accept(submission, make_reviewer())
    assert waits not in client.get(submission.get_absolute_url()).text


def test_a_team_whose_proof_is_rejected_is_told_what_it_can_do(client, submission):
    for _ in range(2):
        reject(submission, make_reviewer())
    client.force_login(submission.created_by)
    page = client.get(submission.get_absolute_url()).text
    assert "The reviewers rejected the proof, so no run has a rank." in page
    assert "stays under review until" not in page
    # A browser unfolds what has the part that an address names.
    page = client.get(address("team", submission)).text
    assert f'{submission.get_absolute_url()}#uploads">Upload a revised proof' in page
    assert 'or <a href="#appeal">appeal</a> so that another reviewer reads this version.' in page
    assert page.index("<summary>Appeal the rejection") < page.index('id="appeal"')


def test_nobody_else_reads_it(client, submission, staged):
    client.force_login(make_reviewer())
    assert client.get(address("proof", submission) + "?version=2").status_code == 404
    assert client.get(address("revision", submission)).status_code == 404
    assert "better.md" not in client.get(address("desk", submission)).text


def test_it_is_sent_with_a_note_that_the_reviewers_read(client, submission, staged):
    accept(submission, make_reviewer())
    client.force_login(submission.created_by)
    assert client.post(address("revision", submission), {"note": " "}).status_code == 422
    assert submission.proof().version == 1
    sent = client.post(address("revision", submission), {"note": "Sigma is doubled."}, follow=True)
    assert "Version 2 is sent" in sent.text
    assert "Sigma is doubled." in sent.text
    assert client.get(address("revision", submission)).url == address("team", submission)
    client.force_login(make_reviewer())
    assert "Sigma is doubled." in client.get(address("desk", submission)).text


def test_the_first_version_is_sent_with_the_submission_and_not_with_its_upload(submission):
    proof = submission.proof()
    proof.created_at = submission.submitted_at - timedelta(minutes=9)
    proof.save()
    (first,) = timeline(submission)
    assert first.sent_at == submission.submitted_at


def test_a_reviewer_reads_what_they_wrote_on_the_version_before(client, submission, staged):
    reviewer = make_reviewer()
    ask(submission, reviewer, "State the sampling.")
    client.force_login(submission.created_by)
    client.post(address("revision", submission), {"note": "Sampling is stated."})
    client.force_login(reviewer)
    page = client.get(address("desk", submission)).text
    assert "Your decision on version 1: changes requested" in page
    assert page.index("State the sampling.") < page.index("Sampling is stated.")
    # It is folded, so that the proof has room.
    assert '<details class="message">' in page
    client.force_login(make_reviewer())
    assert "State the sampling." not in client.get(address("desk", submission)).text


def test_answers_about_the_version_before_count_once_they_are_given_again(client, submission, staged):
    reviewer = make_reviewer()
    client.force_login(reviewer)
    desk, draft = address("desk", submission), address("draft", submission)
    client.post(
        desk,
        {**ACCEPT, "noise": "no", "noise_note": "Cite the lines.", "reason": "Read the note."} | OVERRIDE,
    )
    client.force_login(submission.created_by)
    client.post(address("revision", submission), {"note": "Lines are cited."})
    client.force_login(reviewer)
    page = client.get(desk).text
    assert "<strong>0 of 16 answered</strong>, 16 to confirm" in page
    assert "answered “no” about version 1" in page
    assert "answered “yes” about version 1" in page
    # A note is shown, and not sent again.
    assert "Your note on version 1" in page
    assert "Cite the lines." in page
    assert "Cite the lines.</textarea>" not in page
    assert (
        'data-answer="no" data-note="Cite the lines." hidden>Answer “no” again, with this note</button>'
        in page
    )
    assert 'data-answer="yes" data-note="" hidden>Answer “yes” again</button>' in page
    assert "draft 0/16, 16 to confirm" in client.get(reverse("reviews:queue")).text
    assert "You answered 16 questions about an earlier version" in client.get(in_admin(submission)).text
    client.post(draft, {"version": "2", "noise": "yes"})
    assert "<strong>1 of 16 answered</strong>, 15 to confirm" in client.get(desk).text
    incomplete = client.post(
        desk, {"version": "2", "noise": "yes", "decision": "accepted", "no_conflict": "on"}
    )
    assert len(incomplete.context["form"].errors) == 15
    assert "answered “yes” about version 1" in incomplete.text
    assert client.post(desk, {**ACCEPT, "version": "2"}).status_code == 302
    assert submission.reviews.get().notes == {}


def test_what_is_written_on_a_page_of_the_version_before_is_about_that_version(client, submission, staged):
    reviewer = make_reviewer()
    client.force_login(submission.created_by)
    client.post(address("revision", submission), {"note": "Better."})
    client.force_login(reviewer)
    desk, draft = address("desk", submission), address("draft", submission)
    late = client.post(desk, {**ACCEPT, "version": "1"})
    assert "The team has uploaded a revised proof" in late.text
    # Pressing the button again accepts nothing.
    assert (
        "checked"
        not in late.text.replace('value="accepted" checked', "")
        .partition('id="review"')[2]
        .partition('id="decision"')[0]
    )
    assert "<strong>0 of 16 answered</strong>, 16 to confirm" in late.text
    client.post(draft, {"version": "2", "noise": "no"})
    old = client.post(draft, {"version": "1", "noise": "yes"}, headers={"HX-Request": "true"})
    assert "You have reviewed a newer version" in old.text
    assert draft_of(submission.reviews.get(), 2).answers == {"noise": "no"}


def test_nothing_in_a_frame_leads_to_a_page_that_needs_a_login(client, submission, staged):
    """Browsers send no cookie from there, so that the frame would be blank; the page around it has those links."""
    client.force_login(submission.created_by)
    framed = [client.get(address("revision", submission)).text]
    client.post(address("revision", submission), {"note": "Sigma is doubled."})
    pdf = make_upload(submission.team, b"%PDF-1.7", "proof.pdf")
    revise_proof(submission, pdf, submission.created_by)
    client.force_login(make_reviewer())
    desk = client.get(address("desk", submission)).text
    changes = address("proof_changes", submission)
    for before in (1, 2):
        assert f'<a href="{changes}?from={before}&amp;to=3">Changes since version {before}</a>' in desk
    for page in (*framed, desk):
        (frame,) = re.findall(r'<iframe [^>]*src="([^"]*)"', page)
        for link in re.findall(r"<a [^>]*>", client.get(frame.replace("&amp;", "&")).text):
            assert 'href="#' in link or 'target="_blank"' in link


def test_it_is_discarded_instead(client, submission, staged):
    client.force_login(submission.created_by)
    page = client.post(address("revision", submission), {"discard": "1"}, follow=True)
    assert "Version 2 is discarded" in page.text
    assert not Artifact.staged.exists()


def test_the_api_sends_it(client, submission, staged):
    client.force_login(submission.created_by)
    place = f"/api/v1/submissions/{submission.pk}/revision"
    for note, status in (("", 422), ("Sigma is doubled.", 200), ("Again.", 409)):
        answer = client.post(place, json.dumps({"note": note}), content_type="application/json")
        assert answer.status_code == status, answer.text
    assert submission.proof().version == 2


def test_the_timeline_keeps_what_a_revision_answers(client, submission):
    reviewer = make_reviewer(name="Rita Review")
    ask(submission, reviewer, "State the sampling.")
    post_message(submission, "noise", "Section 3 has it.", author=submission.created_by)
    with transaction.atomic():
        upload = make_upload(submission.team, b"better", "proof.md")
        revise_proof(submission, upload, submission.created_by, "Sampling is stated.")
    accept(submission, reviewer)
    accept(submission, make_reviewer())
    newest, first = timeline(submission)
    assert [event.who for event in newest.events] == ["Reviewer 1", "Reviewer 2"]
    assert newest.events[-1].outcome == "Proof accepted by 2 reviewers."
    assert [event.text for event in first.events] == ["State the sampling.", "Section 3 has it."]
    assert first.events[0].outcome == "Under review: changes to the proof requested."
    client.force_login(submission.created_by)
    page = client.get(address("team", submission)).text
    for text in ("Sampling is stated.", "State the sampling.", "Section 3 has it."):
        assert text in page
    assert "Rita" not in page
