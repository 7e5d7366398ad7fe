"""When a privacy proof is public, and that nothing of it leaks in any other state."""

import itertools

import pytest
from django.urls import reverse

from docvqa_site.audit.models import AuditEntry
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.publication import is_public, public_checklist
from docvqa_site.reviews.verdict import ResultStatus
from docvqa_site.submissions.models import SubmissionState
from docvqa_site.submissions.proof_consent import publish_or_not
from docvqa_site.submissions.services import withdraw
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_organizer,
    make_reviewer,
    make_submission,
    make_upload,
    make_user,
    owner_of,
    revise_proof,
    scored_submission,
)
from tests.docvqa_site.proofs.pages import add_pages
from tests.docvqa_site.reviews.test_decisions import accept, reject

SECRET = "Theorem 17"


@pytest.mark.parametrize(("status", "state"), list(itertools.product(ResultStatus, SubmissionState)))
def test_a_proof_is_public_in_one_case_only(status, state):
    for consents, is_visible, is_named in itertools.product([True, False], repeat=3):
        shown = is_public(
            consents=consents, status=status, state=state, is_visible=is_visible, is_named=is_named
        )
        settled = (status, state) == (ResultStatus.VERIFIED, SubmissionState.SUBMITTED)
        assert shown is (settled and consents and is_visible and is_named)


@pytest.fixture
def submission(db):
    """A verified one whose team has agreed."""
    submission = scored_submission(publishes_proof=True)
    change_results(submission.runs.get(), epsilon=0.9)
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, f"# {SECRET}".encode(), "proof.md")
    accept(submission, make_reviewer(name="Ada"), "Sound, says Ada.")
    accept(submission, make_reviewer(name="Grace"))
    return submission


def addresses(submission):
    """Everything that a visitor may ask for of the proof."""
    key = submission.pk
    return [
        reverse("submissions:proof", args=[key]),
        reverse("submissions:proof_file", args=[key]),
        reverse("submissions:proof_page", args=[key, 1]),
    ]


def everywhere_else(client, submission):
    """The texts of all pages and exports that could lead to the proof."""
    slug = submission.track.slug
    places = [
        submission.get_absolute_url(), f"/leaderboard/{slug}/", f"/leaderboard/{slug}/?epsilon=1",
        f"/leaderboard/{slug}.csv", f"/leaderboard/{slug}.json", f"/api/v1/leaderboards/{slug}",
    ]  # fmt: skip
    return [client.get(place).text for place in places]


def test_everybody_reads_proof_and_checklist(client, submission):
    page = client.get(addresses(submission)[0])
    assert page.status_code == 200
    assert SECRET in page.text
    assert page["Cache-Control"] == "private, no-store"
    for item in CHECKLIST:
        assert item.question in page.text or item.question.replace("'", "&#x27;") in page.text
    assert page.text.count(">yes</td>") == 2 * len(CHECKLIST)
    file = client.get(addresses(submission)[1], follow=True)
    assert SECRET in b"".join(file.streaming_content).decode()


def test_reviewers_are_numbers_and_what_they_wrote_stays_private(client, submission):
    page = client.get(addresses(submission)[0])
    assert "Reviewer 1</th>" in page.text
    assert "Reviewer 2</th>" in page.text
    assert not [word for word in ("Ada", "Grace", "Sound", "person", "Reviewer 3") if word in page.text]


def test_of_the_checklist_nothing_but_answers_is_read(submission):
    review = submission.reviews.first()
    key = CHECKLIST[0].key
    for stored in (
        {key: "yes, but <note>"},
        {key: {"answer": "yes", "note": "secret"}},
        ["secret"],
        {"secret": "yes"},
    ):
        ProofReview.objects.filter(pk=review.pk).update(checklist=stored)
        assert "secret" not in str(public_checklist(submission))
        first = public_checklist(submission).groups[0][1][0]
        assert first.answers == ["", "yes"]


def test_the_team_finds_the_public_page_and_the_guide_where_its_proof_is_listed(client, submission):
    public, guide = f'<a href="{addresses(submission)[0]}">Public page</a>', "Guide to proofs</a>"
    revised = make_upload(submission.team, b"# Another", "second.md")
    client.force_login(owner_of(submission.team))

    def listed(name):
        page = client.get(submission.get_absolute_url()).text.partition('id="files"')[2]
        return page.partition(f">{name}</a>")[2].partition("</th>")[0]

    assert public in listed("proof.md")
    assert guide in listed("proof.md")
    revise_proof(submission, revised, owner_of(submission.team))
    assert guide not in listed("proof.md")
    assert guide in listed("second.md")
    assert public not in listed("second.md")


def test_a_pending_review_is_not_counted(submission):
    ProofReview.objects.create(submission=submission, reviewer=make_reviewer(), checklist={"unit": "no"})
    assert public_checklist(submission).reviewers == ["Reviewer 1", "Reviewer 2"]


def test_pages_of_a_pdf_are_public_with_it(client, submission):
    artifact = submission.artifacts.get()
    artifact.upload.filename = "proof.pdf"
    artifact.upload.save()
    add_pages(artifact, SECRET)
    page, _, image = addresses(submission)
    assert f'<img src="{image}"' in client.get(page).text
    assert client.get(image).content == b"image 1"
    assert client.get(image.replace("/1.", "/2.")).status_code == 404
    publish_or_not(submission, False, owner_of(submission.team))
    assert client.get(image).status_code == 404


def test_method_boards_and_exports_lead_to_it(client, submission):
    link = addresses(submission)[0]
    assert [text.count(link) > 0 for text in everywhere_else(client, submission)] == [True] * 6


CLOSED = {
    "the team takes its consent back": lambda one: publish_or_not(one, False, owner_of(one.team)),
    "a reviewer rejects it": lambda one: reject(one, one.reviews.first().reviewer),
    "it is revised": lambda one: revise_proof(
        one, make_upload(one.team, b"# New", "proof.md"), owner_of(one.team)
    ),
    "a review is missing": lambda one: one.reviews.first().delete(),
    "it is withdrawn": lambda one: withdraw(one, owner_of(one.team)),
    "no run is scored": lambda one: one.runs.update(state="failed", scored_at=None),
    "it is a draft again": lambda one: type(one).objects.filter(pk=one.pk).update(state="draft"),
    "the file is removed": lambda one: one.artifacts.all().delete(),
}


@pytest.mark.parametrize("close", CLOSED.values(), ids=CLOSED.keys())
def test_in_any_other_state_it_is_not_found_by_anyone(client, submission, close):
    add_pages(submission.artifacts.get(), SECRET)
    close(submission)
    for reader in (None, make_user(), submission.created_by, make_organizer()):
        if reader:
            client.force_login(reader)
        for place, nowhere in zip(addresses(submission), addresses(make_submission()), strict=True):
            answer = client.get(place)
            assert answer.status_code == 404
            assert SECRET not in answer.text
            assert len(answer.text) == len(client.get(nowhere).text)


@pytest.mark.parametrize(
    "close", [close for name, close in CLOSED.items() if name != "the file is removed"],
    ids=[name for name in CLOSED if name != "the file is removed"],
)  # fmt: skip
def test_then_nothing_leads_to_it_either(client, submission, close):
    close(submission)
    assert not [text for text in everywhere_else(client, submission) if addresses(submission)[0] in text]


def test_it_is_only_read(client, submission):
    for place in addresses(submission):
        assert client.post(place).status_code == 405


@pytest.mark.django_db
class TestConsent:
    def post(self, client, submission, **fields):
        return client.post(reverse("submissions:publish_proof", args=[submission.pk]), fields)

    def test_the_team_gives_it_and_takes_it_back_and_both_are_recorded(self, client):
        submission = scored_submission()
        client.force_login(submission.created_by)
        for fields, consents in (({"publish_proof": "1"}, True), ({"publish_proof": "1"}, True), ({}, False)):
            assert self.post(client, submission, **fields).url == submission.get_absolute_url()
            submission.refresh_from_db()
            assert submission.publishes_proof is consents
        actions = AuditEntry.objects.filter(object_id=str(submission.pk), action__contains="proof_")
        assert sorted(actions.values_list("action", flat=True)) == [
            "submission.proof_published", "submission.proof_unpublished",
        ]  # fmt: skip

    def test_nobody_else_does(self, client):
        submission = scored_submission()
        assert self.post(client, submission, publish_proof="1").status_code == 302
        for other in (make_user(), make_organizer("change_submission", "view_submission"), make_reviewer()):
            client.force_login(other)
            assert self.post(client, submission, publish_proof="1").status_code == 404
        client.force_login(submission.created_by)
        assert client.get(reverse("submissions:publish_proof", args=[submission.pk])).status_code == 405
        submission.refresh_from_db()
        assert not submission.publishes_proof

    def test_a_withdrawn_submission_takes_none(self, client):
        submission = scored_submission()
        withdraw(submission, owner_of(submission.team))
        client.force_login(submission.created_by)
        self.post(client, submission, publish_proof="1")
        submission.refresh_from_db()
        assert not submission.publishes_proof

    def test_it_is_asked_for_where_a_draft_is_submitted_and_off_unless_chosen(self, client):
        submission = make_submission(track=scored_submission().track)
        client.force_login(submission.created_by)
        page = client.get(submission.get_absolute_url())
        assert (
            'type="checkbox" name="publish_proof" value="1" aria-describedby="publish-proof-help">'
            in page.text
        )
        for fields, consents in (({}, False), ({"publish_proof": "1"}, True)):
            client.post(reverse("submissions:submit", args=[submission.pk]), fields)
            submission.refresh_from_db()
            assert submission.publishes_proof is consents
        # It isn't complete, and remembers what was chosen.
        assert submission.state == SubmissionState.DRAFT
        assert (
            'aria-describedby="publish-proof-help" checked>' in client.get(submission.get_absolute_url()).text
        )

    def test_a_track_without_proofs_does_not_ask(self, client):
        submission = make_submission()
        client.force_login(submission.created_by)
        assert "publish_proof" not in client.get(submission.get_absolute_url()).text

    def test_the_method_page_shows_the_team_what_it_has_agreed_to(self, client, submission):
        client.force_login(submission.created_by)
        assert "Publish the proof: yes" in client.get(submission.get_absolute_url()).text
        client.logout()
        assert "Publish the proof:" not in client.get(submission.get_absolute_url()).text


def test_a_decision_that_a_reviewer_takes_back_closes_the_page(client, submission):
    place = addresses(submission)[0]
    assert client.get(place).status_code == 200
    submission.reviews.filter(reviewer__name="Ada").update(decision=Decision.PENDING, decided_at=None)
    assert client.get(place).status_code == 404
