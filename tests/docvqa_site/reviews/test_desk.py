import re
from datetime import timedelta

import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from docvqa_site.limits import Limit
from docvqa_site.notifications.kinds import Kind
from docvqa_site.reviews.checklist import CHECKLIST
from docvqa_site.reviews.drafts import draft_of
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.threads import post_message
from docvqa_site.submissions.models import RunState, Submission, SubmissionState
from docvqa_site.teams.models import Membership
from tests.docvqa_site.factories import (
    change_results,
    make_epsilons,
    make_organizer,
    make_reviewer,
    make_run,
    make_upload,
    make_user,
    revise_proof,
)
from tests.docvqa_site.reviews.test_decisions import accept, ask, reject

pytestmark = pytest.mark.django_db

QUEUE = "/reviews/"
ACCEPT = {
    **{item.key: "yes" for item in CHECKLIST},
    "decision": "accepted",
    "reason": "",
    "no_conflict": "on",
}


def address(submission):
    return reverse("reviews:desk", args=[submission.pk])


def test_the_proof_is_beside_every_question_and_the_recomputed_numbers(client, submission, reviewer):
    change_results(submission.runs.get(), epsilons=make_epsilons(0.98765, rdp=1.23456))
    page = client.get(address(submission))
    assert f'src="{reverse("reviews:proof", args=[submission.pk])}?framed"' in page.text
    assert all(page.text.count(f'name="{item.key}"') == 3 for item in CHECKLIST)
    assert "0.98765" in page.text
    assert "1.2346" in page.text  # rounded up


def test_accepting_is_recorded_and_leads_back_to_the_list(client, submission, reviewer):
    response = client.post(address(submission), ACCEPT)
    assert response.url == QUEUE
    review = ProofReview.objects.get()
    assert (review.reviewer, review.decision) == (reviewer, Decision.ACCEPTED)
    assert review.checklist["noise"] == "yes"


def test_a_decision_that_settles_the_review_is_called_final(client, submission, reviewer):
    page = client.post(address(submission), ACCEPT, follow=True).text
    assert "is recorded: accepted." in page
    assert "final" not in page.partition("is recorded: accepted.")[2].partition("</p>")[0]
    client.force_login(make_reviewer())
    page = client.post(address(submission), ACCEPT, follow=True).text
    assert "is recorded: accepted. The verdict is final: proof accepted." in page


def test_a_chosen_decision_is_part_of_the_draft_of_this_version(client, submission, reviewer):
    chosen = 'value="changes_requested" checked'
    given = {"decision": "changes_requested", "reason": "The bound is missing."}
    client.post(reverse("reviews:draft", args=[submission.pk]), given)
    page = client.get(address(submission)).text
    assert chosen in page
    assert "The bound is missing." in page
    with transaction.atomic():
        upload = make_upload(submission.team, b"# Better", "proof.md")
        revise_proof(submission, upload, submission.created_by)
    assert chosen not in client.get(address(submission)).text


def test_opening_the_page_of_a_notification_marks_it_as_read(client, submission, reviewer):
    team, organizer = submission.created_by, make_organizer("organize")
    pages = {reviewer: "desk", team: "team", organizer: "assign"}
    for person, name in pages.items():
        for page in (reverse(f"reviews:{name}", args=[submission.pk]), "/submissions/"):
            person.notifications.create(kind=Kind.PROOFS, subject="Proof", page=page)
    for person, name in pages.items():
        client.force_login(person)
        assert client.get(reverse(f"reviews:{name}", args=[submission.pk])).status_code == 200
        assert [one.page for one in person.notifications.filter(read_at=None)] == ["/submissions/"]


def test_an_unanswered_question_is_pointed_out_beside_it(client, submission, reviewer):
    page = client.post(address(submission), {**ACCEPT, "noise": ""})
    assert page.context["form"].errors.keys() == {"noise"}
    assert ProofReview.objects.get().decision == Decision.PENDING
    assert "15 of 16 answered" in client.get(address(submission)).text


def test_a_rejection_without_a_reason_is_pointed_out(client, submission, reviewer):
    page = client.post(address(submission), {"decision": "rejected", "no_conflict": "on"})
    assert page.context["form"].errors.keys() == {"reason", "confirms_contradiction"}
    assert page.context["form"].errors["reason"] == ["Explain to the team why you reject the proof."]
    # The list of what is missing is read when the reader gets there, and not at once.
    alert = page.text[page.text.index('role="alert"') :]
    assert "2 entries are missing or wrong." in alert[: alert.index("</div>")]
    assert "Explain to the team" not in alert[: alert.index("</div>")]
    # In view and read aloud, wherever the form was sent from.
    assert 'role="alert"><p tabindex="-1" autofocus>Your decision was not saved.' in page.text


def test_a_rejection_against_the_answers_lists_all_that_is_missing_at_once(client, submission, reviewer):
    page = client.post(address(submission), {**ACCEPT, "decision": "rejected"})
    assert page.context["form"].errors.keys() == {"reason", "confirms_contradiction"}


@pytest.mark.parametrize("bad", [{"decision": "pending"}, {"noise": "maybe"}, {"decision": ""}])
def test_invented_values_are_rejected(client, submission, reviewer, bad):
    assert client.post(address(submission), {**ACCEPT, **bad}).status_code == 422
    assert not ProofReview.objects.exclude(decision=Decision.PENDING).exists()


def test_a_member_of_the_team_sees_why_there_is_no_form_and_cannot_post(client, submission, reviewer):
    Membership.objects.create(team=submission.team, user=reviewer)
    page = client.get(address(submission))
    assert page.status_code == 403
    assert "You are or were a member of the submitting team." in page.text
    assert 'name="decision"' not in page.text
    assert client.post(address(submission), ACCEPT).status_code == 403


def test_staff_without_the_permission_and_others_are_locked_out(client, submission):
    client.force_login(make_user(is_staff=True))
    assert client.get(address(submission)).status_code == 403
    client.force_login(submission.created_by)
    assert client.get(address(submission)).status_code == 403
    client.logout()
    assert "/login/" in client.get(address(submission)).url


def test_what_others_decided_is_shown_after_ones_own_decision(client, submission, reviewer):
    accept(submission, make_reviewer())
    assert "roof accepted by" not in client.get(address(submission)).text
    client.post(address(submission), ACCEPT)
    assert "Proof accepted by 2 reviewers" in client.get(address(submission)).text


def test_the_history_names_reviewers_to_reviewers_and_never_to_the_team(client, submission, reviewer):
    accept(submission, make_reviewer(name="Olga Other"))
    accept(submission, reviewer)
    page = client.get(address(submission)).text
    assert "Reviewer 1 (Olga Other)" in page
    assert "Reviewer 2 (you)" in page
    client.force_login(submission.created_by)
    page = client.get(reverse("reviews:team", args=[submission.pk])).text
    assert "Reviewer 1" in page
    assert "Olga Other" not in page


def test_a_reviewer_writes_to_the_organizers_about_the_proof(client, submission, reviewer, settings):
    settings.CONTACT = "mailto:organizers@example.org"
    link = f'href="mailto:organizers@example.org?subject=Proof%20of%20{submission.title.replace(" ", "%20")}"'
    assert link in client.get(address(submission)).text
    settings.CONTACT = ""
    assert "Write to the organizers" not in client.get(address(submission)).text


def test_a_track_without_proofs_has_nothing_to_review(client, reviewer):
    assert client.get(address(make_run(state=RunState.SCORED).submission)).status_code == 404


def test_a_past_decision_is_read_with_its_history_and_not_edited(client, submission, reviewer):
    review = reject(submission, reviewer)
    change = reverse("admin:reviews_proofreview_change", args=[review.pk])
    page = client.get(change)
    assert "No composition over rounds." in page.text
    assert reverse("admin:reviews_proof_change", args=[submission.pk]) in page.text
    assert client.post(change, {"decision": "accepted"}).status_code == 403
    assert client.get("/admin/reviews/proofreview/add/").status_code == 403
    delete = reverse("admin:reviews_proofreview_delete", args=[review.pk])
    assert client.post(delete, {"post": "yes"}).status_code == 403


def test_the_list_of_decisions_leads_to_what_waits(client, submission, reviewer):
    reject(submission, reviewer)
    page = client.get("/admin/reviews/proofreview/")
    assert reverse("admin:reviews_proof_change", args=[submission.pk]) in page.text
    assert submission.title in page.text


def test_a_new_decision_starts_from_the_last_answers(client, submission, reviewer):
    client.post(address(submission), {**ACCEPT, "noise": "n/a"})
    page = client.get(address(submission))
    assert "You accepted this proof" in page.text
    assert "Decision recorded" in page.text
    assert "Not saved yet" not in page.text
    assert page.context["form"].initial["noise"] == "n/a"
    changed = {"decision": "rejected", "reason": "Found a gap.", "change_reason": "I read it again."}
    client.post(address(submission), {**ACCEPT, **changed, "confirms_contradiction": "on"})
    assert ProofReview.objects.get().decision == Decision.REJECTED
    # Its message and declaration aren't those of the next decision.
    initial = client.get(address(submission)).context["form"].initial
    assert (initial["reason"], initial["no_conflict"]) == ("", False)
    page = client.post(address(submission), ACCEPT)
    assert page.context["form"].errors == {"change_reason": ["Tell the team why you changed your decision."]}
    assert 'name="change_reason"' in page.text
    client.force_login(submission.created_by)
    assert "I read it again." in client.get(reverse("reviews:team", args=[submission.pk])).text


def test_an_acceptance_despite_a_no_is_explained_and_confirmed(client, submission, reviewer):
    given = {**ACCEPT, "noise": "no", "noise_note": "Half precision.", "reason": "It is minor."}
    page = client.post(address(submission), given)
    assert page.status_code == 422
    assert "You answered “no” to 1 question: Are the noise" in page.text
    assert 'name="confirms_contradiction"' in page.text
    assert not ProofReview.objects.exclude(decision=Decision.PENDING).exists()
    assert client.post(address(submission), {**given, "confirms_contradiction": "on"}).url == QUEUE


def test_reviewers_read_every_check_in_full(client, submission, reviewer):
    found = {
        "id": "record.providers",
        "status": "flagged",
        "expected": "17 providers",
        "found": "18 providers",
        "where": "round 3",
    }
    checks = [found, {"id": "record.rounds", "status": "passed"}]
    change_results(submission.runs.get(), checks=checks, joint_epsilon=8.70001, joint_runs=3)
    page = client.get(address(submission)).text
    assert "1 flagged, 1 passed" in page
    assert all(text in page for text in ("17 providers", "18 providers", "round 3"))
    assert "8.7001" in page
    assert "(training run 3)" in page
    # The words of the table are explained beside it.
    for text in ("ε two-stage", "who knows which clients take part", "/docs/glossary/#privacy"):
        assert text in page


def test_a_page_that_shows_an_older_version_records_nothing(client, submission, reviewer):
    assert 'name="version" value="1"' in client.get(address(submission)).text
    with transaction.atomic():
        revise_proof(submission, make_upload(submission.team, b"better"), submission.created_by)
    page = client.post(address(submission), {**ACCEPT, "version": "1"})
    assert page.status_code == 422
    assert 'name="version" value="2"' in page.text
    assert not ProofReview.objects.exclude(decision=Decision.PENDING).exists()
    assert client.post(address(submission), {**ACCEPT, "version": "2"}).url == QUEUE


def hidden(page):
    """Return what a page of the desk knows of the draft that it shows."""
    return {
        name: re.search(rf'name="{name}" value="([^"]*)"', page).group(1) for name in ("window", "drafted_at")
    }


class TestDraft:
    def address(self, submission):
        return reverse("reviews:draft", args=[submission.pk])

    def test_it_is_found_again_and_decides_nothing(self, client, submission, reviewer):
        given = {"noise": "no", "noise_note": "Half precision.", "reason": "Fix it."}
        assert client.post(self.address(submission), given).url == address(submission)
        review = ProofReview.objects.get()
        assert (review.decision, review.checklist, review.notes) == (Decision.PENDING, {}, {})
        page = client.get(address(submission)).text
        assert "1 of 16 answered" in page
        assert "Half precision." in page
        assert "Fix it." in page
        assert "Saved " in page

    def test_a_script_gets_the_bar_and_the_preview(self, client, submission, reviewer):
        given = {"noise": "yes", "reason": "<b>Fix</b> it."}
        page = client.post(self.address(submission), given, headers={"HX-Request": "true"})
        assert "1 of 16 answered" in page.text
        assert "UTC" in page.text
        assert "&lt;b&gt;Fix&lt;/b&gt; it." in page.text
        assert "<html" not in page.text

    def test_what_is_too_long_is_said_and_not_saved(self, client, submission, reviewer):
        given = {"noise_note": "x" * 2_001}
        page = client.post(self.address(submission), given, headers={"HX-Request": "true"})
        assert "Not saved: " in page.text
        assert client.post(self.address(submission), given).status_code == 422
        assert not ProofReview.objects.exists()

    def test_a_decision_stays_until_the_next_one(self, client, submission, reviewer):
        client.post(address(submission), {**ACCEPT, "noise_note": "Fine."})
        client.post(self.address(submission), {"noise": "no", "noise_note": "Not so fine."})
        review = ProofReview.objects.get()
        assert (review.decision, review.notes) == (Decision.ACCEPTED, {"noise": "Fine."})
        assert "Not so fine." in client.get(address(submission)).text

    def test_one_from_before_the_decision_is_ignored(self, client, submission, reviewer):
        late = {"noise": "no", "reason": "Old text.", "decided_at": ""}
        client.post(address(submission), ACCEPT)
        page = client.post(self.address(submission), late, headers={"HX-Request": "true"})
        assert "Not saved: You have recorded a decision since you opened this page." in page.text
        assert ProofReview.objects.get().draft is None
        shown = re.search(r'name="decided_at" value="([^"]+)"', client.get(address(submission)).text).group(1)
        client.post(self.address(submission), {**late, "decided_at": shown})
        assert draft_of(ProofReview.objects.get(), 1).reason == "Old text."

    def test_one_of_another_window_is_not_overwritten(self, client, submission, reviewer):
        first, second = (hidden(client.get(address(submission)).text) for _ in range(2))
        script = {"HX-Request": "true"}
        for reason in ("Once", "Twice"):
            page = client.post(self.address(submission), {**second, "reason": reason}, headers=script)
            assert "Saved " in page.text
        page = client.post(self.address(submission), {**first, "reason": "Late"}, headers=script)
        assert "Not saved: You have edited this review in another window" in page.text
        assert draft_of(ProofReview.objects.get(), 1).reason == "Twice"
        reloaded = hidden(client.get(address(submission)).text)
        client.post(self.address(submission), {**reloaded, "reason": "Again"}, headers=script)
        assert draft_of(ProofReview.objects.get(), 1).reason == "Again"

    def test_others_neither_read_nor_write_it(self, client, submission, reviewer):
        client.post(self.address(submission), {"reason": "A secret thought."})
        client.force_login(make_reviewer())
        assert "A secret thought." not in client.get(address(submission)).text
        client.force_login(submission.created_by)
        assert client.post(self.address(submission), {"reason": "x"}).status_code == 403
        page = client.get(reverse("reviews:team", args=[submission.pk])).text
        assert "A secret thought." not in page
        assert client.get(self.address(submission)).status_code == 405

    def test_a_member_of_the_team_saves_none(self, client, submission, reviewer):
        Membership.objects.create(team=submission.team, user=reviewer)
        assert client.post(self.address(submission), {"reason": "x"}).status_code == 403

    def test_it_is_saved_so_often_a_minute(self, client, submission, reviewer, monkeypatch):
        monkeypatch.setattr("docvqa_site.reviews.desk_views.DRAFTS", Limit("review-draft", 0))
        page = client.post(self.address(submission), {"reason": "x"}, headers={"HX-Request": "true"})
        assert "Not saved: saved too often" in page.text


def test_the_tick_is_needed_and_stored(client, submission, reviewer):
    page = client.post(address(submission), {**ACCEPT, "no_conflict": ""})
    assert page.context["form"].errors.keys() == {"no_conflict"}
    client.post(address(submission), ACCEPT)
    assert ProofReview.objects.get().declares_no_conflict


def test_the_top_of_the_page_lists_what_is_missing_with_links(client, submission, reviewer):
    page = client.post(address(submission), {**ACCEPT, "noise": "", "no_conflict": ""}).text
    assert "2 entries are missing or wrong" in page
    top = page[page.index("Your decision was not saved") : page.index("“Yes” always counts")]
    assert '<a href="#item-noise">Are the noise' in top
    assert "An answer is required to accept the proof.<ul" in top
    assert '<a href="#id_no_conflict">I have no conflict of interest</a>' in top
    assert top.count("<a ") == 2
    assert 'id="item-noise"' in page
    assert 'aria-describedby="why-noise id_noise_error"' in page
    assert 'id="id_noise_error"' in page
    assert 'id="id_no_conflict"' in page
    # Questions that lack the same are one list, by the words of their headings.
    answers = {**ACCEPT, "noise": "", "unit": "", "empty_rounds": "", "sampling": "no"}
    page = client.post(address(submission), answers).text
    top = " ".join(page[page.index("What to fix") : page.index("“Yes” always counts")].split())
    assert top.count("An answer is required to accept the proof.") == 1
    assert '<li><a href="#item-unit">Is the privacy unit one provider, added' in top
    assert top.index("#item-empty_rounds") < top.index("#id_sampling_note")


def test_answers_that_could_not_be_recorded_are_counted_as_saved(client, submission, reviewer):
    page = client.post(address(submission), {**ACCEPT, "no_conflict": ""}).text
    bar = page[page.index('id="desk-state"') : page.index('id="decision"')]
    assert "16 of 16 answered" in bar
    assert "Not saved yet" not in bar


def test_changes_are_asked_for_with_a_day(client, submission, reviewer):
    asked = {"decision": "changes_requested", "reason": "State the sampling.", "no_conflict": "on"}
    asked |= {"sampling": "no", "sampling_note": "Is it Poisson?"}
    assert client.post(address(submission), asked).context["form"].errors.keys() == {"changes_due"}
    due = timezone.now().date() + timedelta(days=14)
    assert f'value="{due.isoformat()}"' in client.get(address(submission)).text
    client.post(address(submission), {**asked, "changes_due": due.isoformat()})
    assert ProofReview.objects.get().changes_due == due


def test_who_has_not_decided_sees_that_changes_were_requested_and_not_which(client, submission, reviewer):
    assert "requested changes" not in client.get(address(submission)).text
    ask(submission, make_reviewer(), reason="Say how clients are sampled.")
    page = client.get(address(submission)).text
    assert "A reviewer has requested changes" in page
    assert "Say how clients are sampled." not in page
    queue = client.get(reverse("reviews:queue")).text
    assert "Changes requested" in queue
    assert "shown after your decision" not in queue


def test_a_passed_check_is_offered_and_never_ticked(client, submission, reviewer):
    passed = [{"id": "record.track_rules", "status": "passed"}, {"id": "record.clients", "status": "passed"}]
    change_results(submission.runs.get(), checks=[*passed, {"id": "record.providers", "status": "flagged"}])
    page = client.get(address(submission))
    offers = {one.key: one.offer for _, questions in page.context["groups"] for one in questions}
    offered = "The passed check supports “yes”; the decision is yours."
    assert (offers["unit"], offers["sampling"], offers["code"]) == (offered, "", "")
    assert offered in page.text
    assert "Sampled providers: flagged</span>" in page.text
    assert " checked" not in page.text


def test_a_check_that_passed_with_hardly_any_power_supports_no_answer(client, submission, reviewer):
    reuse = {"id": "record.noise_reuse", "status": "passed"}
    found = "would have detected the reuse or cancellation of {}% of a round's noise"

    def desk(percent):
        change_results(submission.runs.get(), checks=[{**reuse, "found": found.format(percent)}])
        page = client.get(address(submission))
        return page, {one.key: one.offer for _, questions in page.context["groups"] for one in questions}

    _, offers = desk(12.0)
    supported = [key for key, offer in offers.items() if offer]
    assert supported
    page, offers = desk(98.9)
    assert not any(offers.values())
    assert "hardly any power</span>" in page.text
    assert page.context["facts"].tally == "1 passed (1 with hardly any power)"


def test_questions_are_folded_but_the_first_open_one_and_what_is_missing(client, submission, reviewer):
    def unfolded(page):
        return [one.key for _, questions in page.context["groups"] for one in questions if one.is_open]

    assert unfolded(client.get(address(submission))) == [CHECKLIST[0].key]
    page = client.post(address(submission), {**ACCEPT, "noise": ""})
    assert unfolded(page) == ["noise"]
    assert page.text.count('<span class="answer answer-yes">yes</span>') == 15
    assert 'value="accepted" checked' in page.text


def test_drafts_and_what_is_withdrawn_have_no_desk(client, submission, reviewer):
    for state in (SubmissionState.DRAFT, SubmissionState.WITHDRAWN):
        Submission.objects.filter(pk=submission.pk).update(state=state)
        assert client.get(address(submission)).status_code == 404


def test_lists_and_exports_hide_others_until_ones_own_decision(client, submission):
    user = make_user(is_staff=True, is_superuser=True)
    client.force_login(user)
    reject(submission, make_reviewer(name="Rita Review"))
    listed, exported = "/admin/reviews/proofreview/", "/organize/exports/reviews.csv"
    assert submission.title not in client.get(listed).text
    assert "No composition" not in client.get(listed + f"{ProofReview.objects.get().pk}/change/").text
    assert "No composition" not in client.get(exported).getvalue().decode()
    accept(submission, user)
    assert "Rita Review" in client.get(listed).text
    assert "No composition" in client.get(exported).getvalue().decode()


def test_the_desk_takes_as_many_queries_for_many_messages_and_reviews_as_for_few(
    client, submission, reviewer, django_assert_max_num_queries
):
    accept(submission, reviewer)
    with django_assert_max_num_queries(45) as few:
        client.get(address(submission))
    for _ in range(4):
        post_message(submission, "noise", "Hello.", author=make_reviewer())
        accept(submission, make_reviewer())
    with django_assert_max_num_queries(len(few)):
        client.get(address(submission))
