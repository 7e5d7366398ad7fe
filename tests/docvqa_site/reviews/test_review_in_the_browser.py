"""The reviewers' desk in a real browser: a draft that saves itself, keys, and three reviewers who settle a proof."""

import re

import pytest
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from docvqa_site.reviews.evidence import CHECKS_OF
from docvqa_site.reviews.models import Decision, ProofReview
from docvqa_site.reviews.selectors import verdict_on
from docvqa_site.reviews.threads import post_message
from docvqa_site.reviews.verdict import ResultStatus, verdict
from docvqa_site.submissions.models import RunState
from evaluator.messages.jobs import ArtifactKind
from tests.docvqa_site.factories import (
    change_results,
    make_artifact,
    make_epsilons,
    make_reviewer,
    make_run,
    make_upload,
    owner_of,
    revise_proof,
    scored_submission,
)
from tests.docvqa_site.reviews.test_decisions import accept, reject

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

HASH = "0123456789abcdef" * 4
# Longer than a window, with a list of contents.
PROOF = "# Proof\n" + "".join(
    f"\n## {title}\n" + "\nA lemma.\n" * 40 for title in ("Unit", "Sampling", "Noise")
)

IN_WINDOW = (
    "() => { const {top, bottom} = document.querySelector('iframe').getBoundingClientRect();"
    " return 0 <= top && bottom <= innerHeight }"
)


@pytest.fixture
def submission(settings, tmp_path):
    settings.STORE_FOLDER = tmp_path / "store"
    submission = scored_submission()
    make_artifact(submission, ArtifactKind.PRIVACY_PROOF, PROOF.encode(), "proof.md")
    checks = [
        {
            "id": "record.checkpoint",
            "status": "failed",
            "expected": HASH,
            "found": HASH,
            "where": f"round 3, {HASH}",
        }
    ]
    change_results(submission.runs.get(), checks=checks)
    return submission


@pytest.fixture
def desk(browser, live_server, client, submission):
    """Opens the desk as a new reviewer, or another page as somebody else, in a window of their own.

    No script of these pages may fail.
    """
    contexts, errors = [], []

    def open_desk(user=None, address=None):
        client.force_login(user or make_reviewer())
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        contexts.append(context)
        session = client.cookies["sessionid"].value
        context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(error))
        page.goto(live_server.url + (address or reverse("reviews:desk", args=[submission.pk])))
        return page

    yield open_desk
    for context in contexts:
        context.close()
    assert errors == []


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def answer_all(page):
    """Answer every question with yes, by keys."""
    page.locator("#review input[type=radio]").first.focus()
    for _ in range(16):
        page.keyboard.press("y")
        page.keyboard.press("j")


def decide(page, name):
    page.get_by_role("radio", name=name).check()
    page.get_by_label("I have no conflict of interest").check()
    button(page, "Record the decision").click()
    expect(page.get_by_text("is recorded")).to_be_visible()


def test_three_reviewers_settle_a_proof(desk, submission):
    page = desk()
    # A count that waits for the draft to be saved would be an old one.
    page.route("**/draft/", lambda route: None)
    answer_all(page)
    expect(page.locator("#desk-state")).to_have_text("16 of 16 answered Saving …")
    page.unroute("**/draft/")
    note = page.locator("#item-noise").get_by_label("Note")
    page.locator("#item-noise .note > summary").click()
    note.fill("j is a letter here")
    expect(page.locator("#desk-state")).to_contain_text("16 of 16 answered Saved ")
    # By a button, from where the reviewer is, with the same words above and beside it.
    note.fill("j is a letter here, too")
    button(page, "Save draft").press("Enter")
    expect(page.locator("#draft-state")).to_contain_text("16 of 16 answered Saved ")
    expect(page.locator("#desk-state")).to_contain_text("Saved ")
    expect(button(page, "Save draft")).to_be_focused()
    expect(page.locator("#draft-state")).to_be_in_viewport()
    page.reload()
    expect(page.locator("#desk-state")).to_contain_text("16 of 16 answered")
    expect(note).to_have_value("j is a letter here, too")
    decide(page, "Accept")

    page = desk()
    page.locator("#item-noise > summary").click()
    page.locator("#item-noise").get_by_role("radio", name="no").check()
    expect(page.get_by_label("Explanation for the team")).to_be_hidden()
    page.get_by_role("radio", name="Reject").check()
    page.get_by_label("Explanation for the team").fill("The noise is too small.")
    expect(page.get_by_label("Revised proof due by")).to_be_hidden()
    page.get_by_label("I have no conflict of interest").check()
    button(page, "Record the decision").click()
    problem = page.get_by_text("Your decision was not saved.")
    expect(problem).to_be_focused()
    expect(problem).to_be_in_viewport()
    for place in (page.get_by_role("list", name="What to fix"), page.locator("#item-noise")):
        expect(place.get_by_text("Add a note to every “no”")).to_be_visible()
    # The link leads to the note, which is what is missing, and nothing covers it.
    page.get_by_role("list", name="What to fix").get_by_role("link").click()
    note = page.locator("#item-noise").get_by_role("textbox", name="Note")
    expect(note).to_be_focused()
    expect(note).to_have_attribute("aria-invalid", "true")
    bottom = note.evaluate("it => it.getBoundingClientRect().bottom")
    assert bottom <= page.locator(".desk-bar").evaluate("it => it.getBoundingClientRect().top")
    note.fill("Half precision.")
    decide(page, "Reject")

    page = desk()
    answer_all(page)
    decide(page, "Accept")
    decisions = [(Decision(one.decision), one.reason) for one in ProofReview.objects.all()]
    assert verdict(decisions, 2).status == ResultStatus.VERIFIED


def test_the_keyboard_leads_back_from_the_last_question_to_the_first(desk):
    page = desk()
    answer_all(page)
    first = page.locator("#review details.item").first
    for _ in range(400):
        if first.evaluate("item => item.contains(document.activeElement)"):
            return
        page.keyboard.press("Shift+Tab")
    raise AssertionError("Shift+Tab doesn't reach the first question.")


def test_the_last_answer_is_saved_when_the_page_is_left_at_once(desk, submission, live_server):
    page = desk()
    page.locator("#item-unit").get_by_role("radio", name="yes").check()
    page.goto(live_server.url + "/reviews/")
    page.wait_for_function(
        "async (address) => (await (await fetch(address)).text()).includes('1 of 16 answered')",
        arg=reverse("reviews:desk", args=[submission.pk]),
    )


def test_a_message_is_written_from_its_question_and_kept_until_it_is_sent(desk, submission):
    page = desk()
    page.locator("#item-sampling > summary").click()
    page.get_by_role("link", name="Ask the team about").and_(page.locator("[data-ask=sampling]")).click()
    text = page.get_by_label("Message", exact=True)
    expect(text).to_be_focused()
    text.fill("Which sampler?\nPoisson?")
    page.goto(page.url.partition("#")[0].replace("/reviews/", "/submissions/"))
    page.go_back()
    page.reload()
    expect(text).to_have_value("Which sampler?\nPoisson?")
    expect(page.get_by_label("About", exact=True)).to_have_value("sampling")
    page.get_by_role("button", name="Send to the team").click()
    expect(page.locator("#item-sampling")).to_contain_text("Which sampler?")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    assert submission.review_messages.get().item == "sampling"


def test_a_rejection_against_the_answers_is_confirmed_at_once(desk):
    page = desk()
    # Without a choice, the browser leads to it.
    button(page, "Record the decision").click()
    expect(page.get_by_role("radio", name="Accept")).to_be_focused()
    answer_all(page)
    confirms = page.get_by_label("Yes, this is my decision")
    page.get_by_role("radio", name="Accept").check()
    expect(confirms).to_be_hidden()
    page.get_by_role("radio", name="Reject").check()
    expect(page.get_by_text("You answered “no” to no question, so none names")).to_be_visible()
    page.get_by_role("radio", name="Request changes").check()
    expect(confirms).to_be_visible()
    page.get_by_role("radio", name="Reject").check()
    page.locator("#item-noise").get_by_role("radio", name="no").check()
    expect(confirms).to_be_hidden()
    page.get_by_role("radio", name="Accept").check()
    expect(confirms).to_be_visible()
    page.get_by_role("radio", name="Reject").check()
    page.locator("#item-noise").get_by_role("radio", name="yes").check()
    page.get_by_label("Explanation for the team").fill("The bound is wrong.")
    confirms.check()
    decide(page, "Reject")


def test_a_draft_that_waits_is_not_saved_after_the_decision(desk):
    page = desk()
    answer_all(page)
    expect(page.locator("#desk-state")).to_contain_text("Saved ")
    page.get_by_role("radio", name="Accept").check()
    page.get_by_label("I have no conflict of interest").check()
    page.get_by_label("Explanation for the team").fill("Well done.")
    drafts = []
    page.on("request", lambda request: drafts.append(request.url) if "/draft/" in request.url else None)
    decisions = []
    page.route("**/reviews/*/", lambda route: decisions.append(route))
    button(page, "Record the decision").click(no_wait_after=True)
    # As long as a slow answer takes, and longer than a draft waits.
    page.wait_for_timeout(2_000)
    decisions.pop().continue_()
    expect(page.get_by_text("is recorded")).to_be_visible()
    assert drafts == []
    assert ProofReview.objects.get().draft is None


def test_a_rejected_proof_is_revised_by_its_team_and_accepted_by_two(desk, submission, tmp_path):
    page = desk()
    page.locator("#item-noise > summary").click()
    page.locator("#item-noise").get_by_role("radio", name="no").check()
    page.locator("#item-noise").get_by_label("Note").fill("No bound.")
    page.get_by_role("radio", name="Reject").check()
    page.get_by_label("Explanation for the team").fill("The noise is not bounded.")
    decide(page, "Reject")

    page = desk(owner_of(submission.team), submission.get_absolute_url() + "#uploads")
    expect(page.get_by_text("Upload a revised proof", exact=True)).to_be_in_viewport()
    (tmp_path / "better.md").write_text("# Bounded")
    section = page.locator("[data-kind=privacy_proof]")
    expect(section.locator(".dropzone")).to_be_visible()
    section.locator("input[type=file]").set_input_files(tmp_path / "better.md")
    send = page.get_by_role("link", name="Preview and send it", exact=True)
    expect(send).to_be_in_viewport(timeout=30_000)
    send.click()
    expect(page.frame_locator("iframe").get_by_text("Bounded")).to_be_visible()
    page.get_by_label("What changed").fill("The noise is bounded.")
    button(page, "Send version 2").click()
    expect(page.get_by_text("Version 2 is sent")).to_be_visible()
    assert submission.proof().version == 2

    for _ in range(2):
        page = desk()
        expect(page.frame_locator("iframe").get_by_text("Bounded")).to_be_visible()
        answer_all(page)
        decide(page, "Accept")
    assert verdict_on(submission).status == ResultStatus.VERIFIED


def test_every_question_can_be_answered_beside_the_opened_checks(desk):
    page = desk()
    first = page.get_by_role("radio", name="yes").first
    # Nothing lies over it on arrival.
    assert first.evaluate(
        "(it) => { const {x, y} = it.getBoundingClientRect();"
        " return document.elementFromPoint(x + 3, y + 3) === it }"
    )
    frame = page.locator("iframe")
    box = frame.bounding_box()
    assert 550 < box["height"] <= 900 - box["y"]
    page.get_by_text("Runs and checks").click()
    page.get_by_text("All checks of the run").click()
    assert frame.bounding_box()["height"] >= box["height"]
    # The proof stays beside the questions, and nothing around it scrolls by itself.
    page.evaluate("scrollTo(0, document.querySelector('#decision').offsetTop)")
    page.wait_for_function(IN_WINDOW)
    assert page.locator(".desk-proof").evaluate("(it) => it.scrollHeight - it.clientHeight") == 0
    assert page.locator(".desk-proof").evaluate("(it) => getComputedStyle(it).overflowY") == "visible"
    for width in (1280, 1600, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('.item').forEach((item) => (item.open = true))")
        answers = page.get_by_role("radio", name="yes")
        answers.first.click(timeout=10_000)
        expect(answers.first).to_be_checked()
        answers.last.click(timeout=10_000)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("link", name="Decide").click()
        page.get_by_role("radio", name="Request changes").check()
        bar = page.locator(".desk-bar").bounding_box()
        assert bar["height"] < 70
        # On a phone, two texts that scroll within each other can't be held apart.
        assert frame.is_visible() == (width > 640)
        expect(page.get_by_role("link", name="Proof on a page of its own")).to_be_visible()


def test_a_link_to_a_fact_shows_what_was_found(desk, submission):
    found = "18 providers in rounds that should have 30, " * 3
    checks = [{"id": id_, "status": "flagged", "found": found} for ids in CHECKS_OF.values() for id_ in ids]
    change_results(submission.runs.get(), checks=checks)
    page = desk()
    page.locator("#item-sampling > summary").click()
    page.locator('#item-sampling a[href="#fact-record.providers"]').click()
    expect(page.locator("#fact-record\\.providers").get_by_text("should have 30")).to_be_in_viewport()
    expect(page.locator("#fact-record\\.providers")).to_be_focused()
    every = page.locator(".recorded").get_by_text("should have 30")
    page.get_by_role("button", name="Open all results").click()
    assert all(one.is_visible() for one in every.all())
    page.get_by_role("button", name="Close all results").click()
    assert not any(one.is_visible() for one in every.all())
    # Though what is unfolded now has moved the question.
    page.go_back()
    expect(page.locator("#item-sampling > summary")).to_be_in_viewport()


def test_after_a_decision_that_lacks_answers_the_proof_is_read_and_the_desk_is_found_again(desk):
    page = desk()
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("#item-code > summary").click()
    page.locator("#item-code").get_by_role("radio", name="yes").check()
    page.get_by_role("link", name="Decide").click()
    page.get_by_role("radio", name="Accept").check()
    button(page, "Record the decision").click()
    expect(page.get_by_role("alert")).to_have_text(
        "Your decision was not saved. 16 entries are missing or wrong."
    )
    # A link of the summary leads into its question, as those of other forms lead into their field.
    page.get_by_role("list", name="What to fix").get_by_role("link").first.press("Enter")
    first = page.locator("#review .item").first.get_by_role("radio", name="yes")
    expect(first).to_be_focused()
    for leave in (page.go_back, lambda: page.get_by_role("link", name="Back to the review").click()):
        page.get_by_role("link", name="Proof on a page of its own").click()
        expect(page.get_by_role("heading", name="Privacy proof of")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        leave()
        expect(page.locator("#desk-state")).to_contain_text("1 of 16 answered")
        expect(page.locator("#item-code .answer")).to_have_text("yes")


def test_on_a_phone_the_proof_is_read_at_the_section_of_a_question_to_which_one_returns(desk):
    page = desk()
    page.set_viewport_size({"width": 390, "height": 844})
    question = page.locator("#item-sampling")
    question.locator("summary").first.click()
    question.get_by_role("link", name="Section “Sampling” of the proof").click()
    expect(page.get_by_role("heading", name="Sampling")).to_be_in_viewport()
    page.get_by_role("link", name="Back to the review").click()
    expect(question.get_by_role("radio", name="yes")).to_be_in_viewport()
    page.wait_for_function("() => document.activeElement.name === 'sampling'")
    # The link above the questions remembers which one was left.
    page.get_by_role("link", name="Proof on a page of its own").click()
    page.get_by_role("link", name="Back to the review").click()
    expect(question.get_by_role("radio", name="yes")).to_be_in_viewport()
    page.evaluate("document.querySelectorAll('.desk-review details').forEach((one) => (one.open = true))")
    small = page.locator(".question-links a, .recorded th a, .desk-review thead a").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect())"
        ".filter(({width, height}) => width && (width < 24 || height < 24)).length"
    )
    assert small == 0


def test_the_proof_begins_in_the_first_window_and_moves_to_the_section_of_a_question(desk):
    page = desk()
    proof = page.frame_locator("iframe")
    expect(proof.get_by_role("heading", name="Unit")).to_be_in_viewport()
    page.locator("#item-noise > summary").click()
    page.locator("#item-noise").get_by_role("link", name="Section “Noise” of the proof").click()
    expect(proof.get_by_role("heading", name="Noise")).to_be_in_viewport()
    # Also where the page is opened at the question, as after a message about it.
    page.locator("#messages").locator("..").get_by_label("About").select_option(value="sampling")
    page.get_by_label("Message", exact=True).fill("Is it Poisson?")
    button(page, "Send to the team").click()
    expect(page.get_by_text("Your message has been sent to the team.")).to_be_in_viewport()
    expect(proof.get_by_role("heading", name="Sampling")).to_be_in_viewport()


def test_a_long_list_of_cited_code_leaves_the_proof_in_sight(desk, submission):
    cited = "".join(f"  evaluator/file_{number}.py: {HASH}\n" for number in range(64))
    text = f"---\ncode:\n{cited}---\n{PROOF}"
    with transaction.atomic():
        upload = make_upload(submission.team, text.encode(), "proof.md")
        revise_proof(submission, upload, owner_of(submission.team))
    page = desk()
    page.get_by_text("Code cited in the proof: 64 files").click()
    last = page.locator(".cited-list li").last
    expect(last).not_to_be_in_viewport()
    page.evaluate("scrollTo(0, document.querySelector('#decision').offsetTop)")
    expect(page.locator("iframe")).to_be_in_viewport(ratio=0.9)
    last.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()


def test_letters_answer_only_where_an_answer_has_the_focus_and_answers_are_cleared(desk):
    page = desk()
    unit, noise = page.locator("#item-unit"), page.locator("#item-noise")
    checked = page.locator("#review .item input:checked")
    # On a folded question, on what opens a note, and when the focus has just left one.
    for summary in (noise.locator("summary").first, unit.locator(".note > summary")):
        summary.focus()
        page.keyboard.press("y")
    page.keyboard.press("Enter")
    unit.get_by_label("Note").fill("Only")
    unit.get_by_role("radio", name="yes").focus()
    page.keyboard.press("y")
    expect(checked).to_have_count(0)
    unit.get_by_role("radio", name="yes").check()
    expect(unit.locator("summary").first).to_contain_text("questions? yes")
    button(page, "Clear the answer").click()
    expect(unit.locator("summary").first).to_contain_text("questions? unanswered")
    expect(page.locator("#desk-state")).to_contain_text("Saved ")
    page.reload()
    expect(checked).to_have_count(0)
    expect(unit.get_by_label("Note")).to_have_value("Only")
    noise.locator("summary").first.click()
    noise.get_by_role("radio", name="yes").focus()
    page.keyboard.press("a")
    expect(noise.get_by_role("radio", name="n/a")).to_be_checked()


def test_what_was_missing_is_no_error_once_it_is_there(desk):
    page = desk()
    page.get_by_role("radio", name="Request changes").check()
    button(page, "Record the decision").click()
    error = page.locator("#decision").get_by_text("Confirm that you have no conflict of interest")
    expect(error).to_be_visible()
    page.get_by_label("I have no conflict of interest").check()
    expect(error).to_be_hidden()
    expect(page.locator("#decision .errorlist")).not_to_have_count(0)


def test_an_earlier_answer_and_its_note_are_taken_over_by_a_button(desk, submission):
    reviewer = make_reviewer()
    page = desk(reviewer)
    noise, notes = page.locator("#item-noise"), page.locator("#item-noise").get_by_label("Note")
    noise.locator("summary").first.click()
    noise.get_by_role("radio", name="no").check()
    notes.fill("Half precision.")
    page.get_by_role("radio", name="Request changes").check()
    page.get_by_label("Explanation for the team").fill("See the note.")
    decide(page, "Request changes")
    with transaction.atomic():
        upload = make_upload(submission.team, PROOF.encode() + b"More.", "proof.md")
        revise_proof(submission, upload, owner_of(submission.team), note="Nothing but the noise. " * 40)
    page = desk(reviewer)
    noise, notes = page.locator("#item-noise"), page.locator("#item-noise").get_by_label("Note")
    noise.locator("summary").first.click()
    button(noise, "Answer “no” again, with this note").click()
    expect(noise.get_by_role("radio", name="no")).to_be_checked()
    expect(notes).to_have_value("Half precision.")
    notes.fill("Only now.")
    again = button(noise, "Answer “no” again, with this note")
    again.click()
    expect(notes).to_have_value("Only now.\n\nHalf precision.")
    # It has been used, or something else was answered.
    expect(again).to_be_hidden()
    noise.get_by_role("radio", name="yes").check()
    expect(again).to_be_hidden()
    button(noise, "Clear the answer").click()
    again.click()
    expect(again).to_be_hidden()
    expect(page.locator("#desk-state")).to_contain_text("1 of 16 answered Saved ")
    page.reload()
    expect(notes).to_have_value("Only now.\n\nHalf precision.")


def test_a_revised_proof_begins_in_the_first_window_and_what_is_above_it_scrolls_away(desk, submission):
    reviewer = make_reviewer()
    reject(submission, reviewer, "The noise is too small. " * 30)
    cited = f"---\ncode:\n  starter_kit/dp/clipping.py: {HASH}\n---\n"
    with transaction.atomic():
        upload = make_upload(submission.team, f"{cited}{PROOF}".encode(), "proof.md")
        revise_proof(submission, upload, owner_of(submission.team), note="Nothing but the noise. " * 40)
    page = desk(reviewer)
    frame = page.locator("iframe")
    expect(page.frame_locator("iframe").get_by_text("A lemma.").first).to_be_in_viewport()
    page.wait_for_function(IN_WINDOW)
    assert frame.bounding_box()["y"] < 650
    page.locator("#item-noise > summary").scroll_into_view_if_needed()
    for place in ("#item-code", "#decision"):
        page.evaluate("place => scrollTo(0, document.querySelector(place).offsetTop)", place)
        page.wait_for_function(IN_WINDOW)
        page.wait_for_function("() => document.querySelector('iframe').offsetHeight > 700")


def test_a_preview_shows_nothing_that_is_not_saved_and_names_the_decision(desk):
    page = desk()
    page.route("**/draft/", lambda route: None)
    page.get_by_role("radio", name="Request changes").check()
    page.get_by_label("Explanation for the team").fill("The bound is missing.")
    page.get_by_text("Preview of what the team and the public").click()
    outdated = page.get_by_text("Your latest changes aren't in the preview yet.")
    expect(outdated).to_be_visible()
    expect(page.get_by_text("No notes on questions.")).to_be_hidden()
    page.unroute("**/draft/")
    button(page, "Save draft").click()
    expect(page.locator("#preview").get_by_text("The bound is missing.").first).to_be_visible()
    expect(page.locator("#preview").get_by_text("Changes requested.", exact=True)).to_be_visible()
    expect(outdated).to_be_hidden()
    page.reload()
    expect(page.get_by_role("radio", name="Request changes")).to_be_checked()
    expect(page.get_by_label("Explanation for the team")).to_be_visible()


def test_the_history_of_a_settled_proof_is_folded_above_it(desk, submission):
    reviewer = make_reviewer()
    accept(submission, reviewer)
    expect(desk(reviewer).get_by_text("accepted the proof")).to_be_visible()
    accept(submission, make_reviewer())
    page = desk(reviewer)
    expect(page.get_by_text("accepted the proof").first).to_be_hidden()
    page.get_by_text("History of 1 version").click()
    expect(page.get_by_text("accepted the proof").first).to_be_visible()


def test_a_team_replies_from_a_message_and_keeps_what_it_has_begun(desk, submission):
    post_message(submission, "sampling", "Which sampler?", author=make_reviewer())
    page = desk(owner_of(submission.team), reverse("reviews:team", args=[submission.pk]))
    page.get_by_role("link", name="Reply to Reviewer 1, who wrote about").click()
    text = page.get_by_label("Message", exact=True)
    expect(text).to_be_focused()
    text.fill("Poisson")
    page.reload()
    expect(text).to_have_value("Poisson")
    expect(page.get_by_label("About", exact=True)).to_have_value("sampling")


def test_a_long_line_of_code_keeps_its_place(desk, submission):
    code = f"def main():\n    {'long_name' * 30}\n".encode()
    artifact = make_artifact(submission.runs.get(), ArtifactKind.SETTINGS, code, "settings.yaml")
    page = desk(None, reverse("reviews:code_file", args=[submission.pk, artifact.pk]))
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        lines = page.locator(".code-lines code")
        assert lines.first.bounding_box()["height"] == lines.last.bounding_box()["height"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("region", name="Code").focus()


def test_tables_of_runs_and_proofs_fit_a_common_window(desk, submission):
    for budget in (4, 8):
        make_run(submission, budget=budget, state=RunState.SCORED)
    weak = "would have detected the reuse or cancellation of 98.9% of a round's noise"
    for number, run in enumerate(submission.runs.all(), 1):
        change_results(
            run,
            joint_epsilon=12.3456,
            joint_runs=number,
            epsilons=make_epsilons(3.9998, rdp=4.62715),
            # Its status is the longest.
            checks=[{"id": "record.noise_reuse", "status": "passed", "found": weak}],
        )
    submission.reviews.create(reviewer=make_reviewer(name="Rafael Reviewer"), assigned_at=timezone.now())
    reviewer = make_reviewer()
    page = desk(reviewer)
    left = "(it) => it.getBoundingClientRect().left + parseFloat(getComputedStyle(it).paddingLeft)"
    assert page.locator("main").evaluate(left) == page.locator(".site-bar").evaluate(left)
    page.get_by_text("Runs and checks").click()
    expect(page.get_by_role("cell", name="training run 2")).to_be_visible()
    page.get_by_text("All checks of the run at").first.click()
    checks = page.get_by_role("region", name="Checks").first
    width = "(it) => it.scrollWidth - it.clientWidth"
    region = page.get_by_role("region", name="Runs", exact=True)
    assert region.evaluate(width) == checks.evaluate(width) == 0
    # A check is a card where three columns have no room, as on the page of the evidence.
    name = checks.locator("tbody tr:nth-child(2) th")
    assert checks.get_by_text("Found").first.is_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    assert region.evaluate(width) == checks.evaluate(width) == 0
    assert name.bounding_box()["width"] > 150
    expect(region.get_by_role("link", name="Evidence at ε = 8", exact=True)).to_be_visible()
    page = desk(reviewer, reverse("admin:reviews_proof_changelist"))
    expect(page.get_by_role("columnheader", name="Track")).to_be_in_viewport(ratio=1)
    assert page.locator("#changelist .results").evaluate(width) == 0


def test_the_answers_in_the_administration_and_the_versions_on_the_desk_stand_apart(desk, submission):
    with transaction.atomic():
        upload = make_upload(submission.team, b"# Better", "proof.md")
        revise_proof(submission, upload, owner_of(submission.team))
    reviewer = make_reviewer()
    page = desk(reviewer, reverse("admin:reviews_proof_change", args=[submission.pk]))
    yes, no, _ = (
        page.locator(f"label:has(input[name=noise][value='{one}'])") for one in ("yes", "no", "n/a")
    )
    yes, no = yes.bounding_box(), no.bounding_box()
    assert no["x"] - (yes["x"] + yes["width"]) >= 12 or no["y"] >= yes["y"] + yes["height"]
    versions = desk(reviewer).get_by_role("list", name="Versions").locator("li").first
    assert versions.evaluate("one => getComputedStyle(one).listStyleType") == "none"


def test_the_administration_asks_before_a_decision_that_is_not_recorded_is_left(desk, submission):
    page = desk(address=reverse("admin:reviews_proof_change", args=[submission.pk]))
    page.locator("input[name=noise][value=yes]").check()
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.get_by_role("link", name="Open the desk").click()
    page.wait_for_timeout(500)
    assert asked == ["beforeunload"]
    expect(page.locator("input[name=noise][value=yes]")).to_be_checked()
    # Nor does a decision that lacks answers let go of those that are there.
    button(page, "Accept").click()
    expect(page.locator(".errornote")).to_be_visible()
    page.locator("body").click()
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.get_by_role("link", name="Open the desk").click()
    expect(page.locator("#review")).to_be_visible()
    assert len(asked) == 2


def test_a_draft_that_could_not_be_sent_is_sent_again_by_itself(desk):
    page = desk()
    page.route("**/draft/", lambda route: route.abort())
    page.locator("input[name=unit][value=yes]").check()
    state = page.locator("#desk-state")
    expect(state).to_contain_text("1 of 16 answered Not saved")
    page.unroute("**/draft/")
    expect(state).to_contain_text("1 of 16 answered Saved", timeout=15_000, use_inner_text=True)


def test_a_decision_that_lacks_answers_comes_back_with_what_was_open(desk):
    page = desk()
    page.get_by_text("Recorded facts").click()
    page.get_by_role("link", name="Section “Unit” of the proof").click()
    page.locator("input[name=decision][value=rejected]").check()
    button(page, "Record the decision").click()
    error = page.get_by_text("Your decision was not saved.")
    expect(error).to_be_focused()
    expect(error).to_be_in_viewport()
    expect(page.locator("details.recorded")).to_have_attribute("open", "")
    expect(page.locator('iframe[name="proof"]')).to_have_attribute("src", re.compile("#proof-unit$"))
