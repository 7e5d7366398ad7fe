"""The draft's page in a real browser against a real server: parts, a lost connection, a reload, a pause."""

import os
import re
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from docvqa_site.evaluation.models import Evaluation
from docvqa_site.proofs.drawing import draw_next
from docvqa_site.submissions.models import Artifact, Run, RunState
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.stores import current_store
from evaluator.messages.jobs import ArtifactKind
from evaluator.messages.results import RunResults
from tests.docvqa_site.factories import SCORES, make_artifact, make_token
from tests.docvqa_site.submissions.contents import LOG
from tests.docvqa_site.submissions.contents import checkpoint as weights
from tests.docvqa_site.submissions.draft_page import MEGABYTE, PARTS, choose, draft_file, stored_content
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.docvqa_site.submissions.records import record_of
from tests.docvqa_site.submissions.submitting import codes
from tests.docvqa_site.uploads.sending import sha
from tests.evaluator.folding.made_runs import make_base
from tests.evaluator.folding.made_runs import make_run as make_folded_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "model.safetensors"
    path.write_bytes(weights(os.urandom(20 * MEGABYTE + 12345)))
    return path


@pytest.fixture(autouse=True)
def parts_of_two_megabytes(store_folder, settings):
    settings.UPLOAD_PART_SIZE_BYTES = 2 * MEGABYTE


def test_an_upload_survives_a_lost_connection_and_a_reload(open_page, checkpoint, complaints):
    page, puts, readings = open_page(), [], []
    page.on("worker", lambda worker: readings.append(worker.url))

    def break_off_after_four(route):
        puts.append(route.request.url)
        if len(puts) <= 4:
            route.continue_()
        else:
            route.abort("connectionreset")

    page.route(PARTS, break_off_after_four)
    choose(page, "checkpoint", checkpoint)
    expect(draft_file(page, "checkpoint").get_by_text("The connection is bad")).to_be_visible(timeout=30_000)
    upload = Upload.objects.get()
    stored = {part.number for part in current_store().list_parts(upload.store_key, upload.store_upload)}
    assert len(stored) == 4

    page.reload()  # with the connection still broken, so that no retry slips through before
    page.unroute(PARTS)
    puts.clear()
    page.on("request", lambda request: request.method == "PUT" and puts.append(request.url))
    expect(draft_file(page, "checkpoint").get_by_text("is incomplete")).to_be_visible()
    choose(page, "checkpoint", checkpoint)
    expect(draft_file(page, "checkpoint").get_by_text("model.safetensors is uploaded.")).to_be_visible(
        timeout=60_000
    )

    assert len(puts) == 11 - 4  # only what was missing
    assert len(readings) == 1  # and the whole file was read once
    assert stored_content("checkpoint") == checkpoint.read_bytes()
    assert Artifact.objects.get().upload == upload
    expect(draft_file(page, "checkpoint").get_by_text(sha(checkpoint.read_bytes()))).to_be_visible()
    expect(page.locator("#submit")).not_to_contain_text("The checkpoint is missing.")
    expect(page.locator("#submit")).to_contain_text("The communication log is missing.")
    assert complaints == []


def test_the_connection_comes_back_by_itself(open_page, checkpoint, complaints):
    page, broken = open_page(), []

    def break_three(route):
        broken.append(route.request.url)
        if len(broken) in (2, 3, 4):
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route(PARTS, break_three)
    choose(page, "checkpoint", checkpoint)
    expect(draft_file(page, "checkpoint").get_by_text("is uploaded.")).to_be_visible(timeout=60_000)
    assert len(broken) == 11 + 3
    assert stored_content("checkpoint") == checkpoint.read_bytes()
    assert complaints == []


def expect_buttons(file, *names):
    """Wait until these are what the team can press for a file, in the order of the page."""
    expect(file.locator(".button:visible")).to_have_text([re.compile(rf"^\s*{name}\b") for name in names])


def warns_on_leaving(page):
    return page.evaluate("() => !dispatchEvent(new Event('beforeunload', {cancelable: true}))")


def test_an_upload_is_paused_resumed_and_canceled(open_page, checkpoint, complaints):
    page = open_page()
    held: list[Any] = []
    page.route(
        PARTS, lambda route: held.append(route) if len(held) > 2 else (held.append(0), route.continue_())
    )
    file = draft_file(page, "checkpoint")
    expect_buttons(file, "Choose a file or shards")
    assert not warns_on_leaving(page)
    choose(page, "checkpoint", checkpoint)
    numbers = file.locator(".transfer-numbers")
    expect(numbers).to_have_text(re.compile(r"^model\.safetensors · .* of 21\.0 MB sent"))
    expect(file.get_by_text("No file yet.")).to_be_hidden()
    expect(page).to_have_title(re.compile(r"^\d+% · "))
    expect_buttons(file, "Pause", "Cancel")
    assert warns_on_leaving(page)
    file.get_by_role("button", name="Pause").click()
    expect(file.get_by_text("Paused.")).to_be_visible()
    expect_buttons(file, "Resume", "Cancel")
    assert not warns_on_leaving(page)
    page.unroute(PARTS)
    # Pressed twice, it starts once.
    file.locator("[data-action=resume]").evaluate("button => { button.click(); button.click(); }")
    expect(file.get_by_text("is uploaded.")).to_be_visible(timeout=60_000)
    expect(file.locator(".problem")).to_have_count(0)
    expect_buttons(file, "Remove", "Replace")
    assert stored_content("checkpoint") == checkpoint.read_bytes()
    assert page.evaluate("() => Object.keys(localStorage)") == []
    assert "%" not in page.title()

    page.route(PARTS, lambda route: None)  # never answered
    log = checkpoint.with_name("log.csv")
    log.write_bytes(LOG + b"1,-1,0,5\n" * 1000)
    choose(page, "communication_log", log)
    file = draft_file(page, "communication_log")
    expect(file.get_by_text(re.compile(r"^log\.csv · 0 B of 9\.\d\d kB sent$"))).to_be_visible()
    file.get_by_role("button", name="Cancel").click()
    expect(file.get_by_text("Canceled.")).to_be_visible()
    expect_buttons(file, "Choose a file")
    assert Upload.objects.get(filename="log.csv").state == UploadState.ABORTED
    assert not Artifact.pending.filter(upload__state=UploadState.OPEN).exists()
    assert complaints == []


def test_the_focus_stays_with_the_file_that_is_sent(open_page, checkpoint):
    page = open_page()
    page.route(PARTS, lambda route: None)  # never answered
    file = draft_file(page, "checkpoint")
    chooser = file.locator("input[type=file]")
    chooser.focus()
    choose(page, "checkpoint", checkpoint)
    pause, resume = (file.get_by_role("button", name=name) for name in ("Pause", "Resume"))
    expect(pause).to_be_focused()
    page.keyboard.press("Enter")
    expect(resume).to_be_focused()
    page.unroute(PARTS)
    page.keyboard.press("Enter")
    expect(file.get_by_text("is uploaded.")).to_be_visible(timeout=60_000)
    expect(chooser).to_be_focused()


def test_the_focus_of_a_reader_elsewhere_is_left_alone(open_page, checkpoint):
    page = open_page()
    elsewhere = page.get_by_role("button", name="Submit")
    elsewhere.focus()
    choose(page, "checkpoint", checkpoint)
    file = draft_file(page, "checkpoint")
    expect(file.get_by_text("is uploaded.")).to_be_visible(timeout=60_000)
    expect(elsewhere).to_be_focused()


def test_after_a_rejection_another_file_can_be_chosen(open_page, tmp_path):
    page = open_page()
    wrong = tmp_path / "model.pt"
    wrong.write_bytes(b"pickle")
    choose(page, "checkpoint", wrong)
    file = draft_file(page, "checkpoint")
    expect(file.locator(".problem")).to_contain_text("E_ARTIFACT_KIND")
    expect(file.get_by_text("model.pt was not accepted.")).to_be_visible()
    # Whoever comes back to the button hears what was wrong, and a code leads to what it means.
    chooser = file.locator("input[type=file]")
    expect(chooser).to_have_attribute("aria-invalid", "true")
    expect(chooser).to_have_accessible_description(re.compile("E_ARTIFACT_KIND.*every tensor"))
    code = file.get_by_role("link", name="E_ARTIFACT_KIND")
    assert code.get_attribute("href").endswith("/docs/errors/#row-e_artifact_kind")
    expect_buttons(file, "Choose a file or shards")
    empty = tmp_path / "log.csv"
    empty.touch()
    choose(page, "communication_log", empty)
    expect(draft_file(page, "communication_log").locator(".problem")).to_contain_text("The file is empty.")
    other = tmp_path / "transcript.jsonl"
    other.write_bytes(b"{}\n")
    choose(page, "transcript", other)
    document = draft_file(page, "transcript").get_by_role("link", name="docs/bytes.md")
    expect(document).to_have_attribute("href", re.compile("/docs/bytes/$"))


def test_a_large_file_that_is_wrong_from_its_beginning_is_neither_read_nor_sent(open_page, tmp_path):
    page, readings, requests = open_page(), [], []
    page.on("worker", lambda worker: readings.append(worker.url))
    page.on("request", lambda request: requests.append(request.url))
    wrong = tmp_path / "model.safetensors"
    wrong.write_bytes(b"PK\x03\x04")
    os.truncate(wrong, 40 * MEGABYTE)
    choose(page, "checkpoint", wrong)
    expect(draft_file(page, "checkpoint").locator(".problem")).to_contain_text("E_CHECKPOINT_FORMAT")
    assert readings == []
    assert [url for url in requests if "/uploads" in url and not url.endswith("/uploads/check")] == []
    assert not Upload.objects.exists()


def test_a_dropped_file_is_uploaded(open_page, complaints):
    page = open_page()
    page.evaluate(
        """(LOG) => {
            const data = new DataTransfer();
            data.items.add(new File([LOG], "log.csv"));
            const place = document.querySelector("[data-kind=communication_log]");
            place.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        LOG.decode(),
    )
    expect(draft_file(page, "communication_log").get_by_text("log.csv is uploaded.")).to_be_visible(
        timeout=30_000
    )
    assert stored_content("communication_log") == LOG
    assert complaints == []


# A journey goes the same way, from the registration on.
@pytest.mark.slow
def test_from_the_files_to_a_score_without_a_reload(open_page, tmp_path, complaints):
    page, early = open_page(), ""
    held: list[Any] = []
    # The page hears late what it asked for after the first file: the second one is attached in the meantime.
    page.route(page.url, lambda route: held.append(route) if len(held) < 3 else route.continue_())
    files = {"checkpoint": ("model.safetensors", weights()), "communication_log": ("log.csv", LOG)}
    for kind, (name, content) in files.items():
        (tmp_path / name).write_bytes(content)
        choose(page, kind, tmp_path / name)
        expect(draft_file(page, kind).get_by_text("is uploaded.")).to_be_visible(timeout=30_000)
        early = early or page.request.get(page.url).text()
    for route in held:
        route.fulfill(body=early, content_type="text/html")
    expect(page.locator("#submit")).to_contain_text("The draft is complete.")
    expect(page.locator("#progress")).to_contain_text("2 of 4 files")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".badge-queued")).to_be_visible()
    expect(page.locator("#status")).to_contain_text("you're next in the queue")

    Run.objects.update(state=RunState.RUNNING)
    Evaluation.objects.update(state="running", done=3, total=10)
    expect(page.locator("#status")).to_contain_text("Validation: 3 of 10", timeout=60_000)
    page.evaluate("document.body.dataset.stays = 1")
    page.get_by_text("Edit description and links").focus()
    results = RunResults(**{**SCORES, "anls": 0.875})
    Run.objects.update(state=RunState.SCORED, results=results, scored_at=timezone.now())
    Evaluation.objects.update(state="passed")
    # The part with the results comes; the page stays, with the focus where it was.
    expect(page.locator(".badge-scored", has_text="scored").first).to_be_visible(timeout=60_000)
    expect(page.locator("main")).to_contain_text("0.8750")
    expect(page.locator("#status-line")).to_have_text("Run: scored")
    expect(page).to_have_title(re.compile("^Run: scored"))
    assert page.evaluate("document.body.dataset.stays") == "1"
    assert page.evaluate("document.activeElement.textContent") == "Edit description and links"
    polls = []
    page.on("request", lambda request: polls.append(request.url) if "/status/" in request.url else None)
    page.wait_for_timeout(4500)
    assert polls == []  # it stopped asking
    assert complaints == []


def test_an_index_says_that_the_site_removed_the_messages_of_another_run(open_page, tmp_path):
    page = open_page()
    written = make_folded_run(make_base(tmp_path / "base"), rounds=2).write(tmp_path / "run")
    other = tmp_path / "messages.bin"
    other.write_bytes(b"those of another run")
    choose(page, "messages", other)
    expect(draft_file(page, "messages").locator(".tick")).to_be_visible(timeout=30_000)
    expect(draft_file(page, "messages").locator("label")).to_contain_text("Replace")
    choose(page, "transcript", written[ArtifactKind.TRANSCRIPT])
    expect(draft_file(page, "transcript").get_by_text("The site removed messages.bin")).to_be_visible(
        timeout=30_000
    )
    expect(draft_file(page, "messages").locator("label")).to_contain_text("Choose a file")
    expect(page.locator("#storage")).not_to_contain_text("use 0 B of")


def test_a_training_record_is_replaced_once_that_is_confirmed(open_page, draft, tmp_path, complaints):
    draft.track = make_private_track()
    draft.save()
    draft.runs.update(budget=1.0)
    record = make_artifact(draft.runs.get(), ArtifactKind.TRAINING_RECORD, b"record", "first.jsonl")
    page, requests = open_page(), []
    page.on("request", lambda request: requests.append(request.url) if "/uploads" in request.url else None)
    other = tmp_path / "second.jsonl"
    other.write_bytes(record_of(make_token(draft.team, draft.track).token))
    file = draft_file(page, "training_record")
    choose(page, "training_record", other)
    expect(file.get_by_text("Replace first.jsonl with second.jsonl?")).to_be_visible()
    keep = file.get_by_role("button", name="Keep the uploaded file")
    expect(keep).to_be_focused()
    keep.click()
    expect(file.get_by_text("first.jsonl is kept.")).to_be_visible()
    expect(file.get_by_text("Replace first.jsonl with")).to_be_hidden()
    assert requests == []
    assert Artifact.objects.get(kind=ArtifactKind.TRAINING_RECORD) == record
    choose(page, "training_record", other)
    file.get_by_role("button", name="Yes, replace").click()
    expect(file.get_by_text("second.jsonl is uploaded.")).to_be_visible(timeout=30_000)
    expect(file.locator(".tick + strong")).to_have_text("second.jsonl")
    assert stored_content("training_record") == other.read_bytes()
    assert complaints == []


def test_a_problems_address_of_this_site_is_a_link(open_page):
    page = open_page()
    page.evaluate(
        """async () => {
          const script = document.querySelector("script[type=module]").src.replace("draft.js", "problem-card.js");
          const { problemCard } = await import(script);
          const next_step = `See ${location.origin}/submissions/, or https://elsewhere.example/.`;
          document.querySelector("main").append(problemCard({ code: "E_X", message: "Wrong.", next_step }));
        }"""
    )
    # Beside that of the code, which leads to its meaning.
    links = page.locator(".problem dd a")
    expect(links).to_have_count(1)
    expect(links).to_have_attribute("href", re.compile("/submissions/$"))


def test_the_button_that_submits_stays_while_files_arrive(open_page, checkpoint):
    page = open_page()
    button = page.get_by_role("button", name="Submit").element_handle()
    choose(page, "checkpoint", checkpoint)
    expect(page.locator("#submit")).not_to_contain_text("The checkpoint is missing.", timeout=60_000)
    # A press on a button that is replaced before it ends is lost.
    assert button.evaluate("button => button.isConnected")


def test_what_prevents_submitting_takes_the_focus(open_page):
    page = open_page()
    page.get_by_role("button", name="Submit").press("Enter")
    alert = page.get_by_role("alert").filter(has_text="Not submitted.")
    expect(alert).to_be_focused()
    expect(alert).to_be_in_viewport()


def test_what_is_missing_is_one_link_away(open_page):
    page = open_page()
    page.get_by_role("link", name="The communication log is missing.").press("Enter")
    expect(page.get_by_role("heading", name="Communication log")).to_be_focused()
    names = draft_file(page, "communication_log").locator("code")
    expect(names.first).to_have_text("federated_round,sender,receiver,amount_of_bytes")


def test_once_a_file_has_arrived_nothing_says_that_there_is_none(open_page, tmp_path):
    page = open_page()
    (tmp_path / "settings.yaml").write_text("rounds: 1")
    # What the page asks for after an upload never comes.
    page.route(page.url, lambda route: route.fulfill(status=503))
    choose(page, "settings", tmp_path / "settings.yaml")
    file = draft_file(page, "settings")
    expect(file.get_by_text("settings.yaml is uploaded.")).to_be_visible(timeout=30_000)
    expect(file.get_by_text("No file yet.")).to_have_count(0)


def test_what_a_button_did_takes_the_focus(open_page):
    page = open_page()
    page.locator("summary", has_text="Discard this draft").press("Enter")
    page.get_by_role("button", name="Discard this draft").press("Enter")
    done = page.get_by_role("status").filter(has_text="was discarded.")
    expect(done).to_be_focused()


def test_without_javascript_it_says_how_else_to_upload(open_page):
    page = open_page(java_script_enabled=False)
    assert "pfl submit" in page.locator("noscript").first.text_content()
    expect(page.locator("input[type=file]").first).to_be_hidden()
    expect(page.get_by_role("button", name="Submit")).to_be_visible()


def test_a_run_is_removed_only_after_a_question_and_the_focus_stays_at_its_place(open_page, draft):
    draft.track = make_private_track()
    draft.runs.update(budget=1.0)
    draft.save()
    page = open_page()
    page.get_by_role("button", name="Add a run at ε = 4").press("Enter")
    heading = page.get_by_role("heading", name="Run at ε = 4")
    expect(heading).to_be_focused()
    expect(heading).to_have_accessible_description("The run at ε = 4 was added.")
    page.keyboard.press("Tab")
    remove = page.locator("summary", has_text="Remove the run at ε = 4")
    expect(remove).to_be_focused()
    page.keyboard.press("Enter")
    assert draft.runs.count() == 2
    page.get_by_role("button", name="Yes, remove").press("Enter")
    expect(heading).to_be_focused()
    expect(heading).to_have_accessible_description("The run at ε = 4 and its files were removed.")
    assert draft.runs.get().budget == 1.0


def test_a_broken_pdf_is_announced_once_its_pages_are_drawn_and_does_not_count(
    live_server, client, draft, open_page, tmp_path, complaints
):
    draft.track = make_private_track()
    draft.save()
    draft.runs.update(budget=8.0)
    path = tmp_path / "bad.pdf"
    path.write_bytes(b"%PDF-1.7 nothing else")
    page = open_page()
    choose(page, "privacy_proof", path)
    proof = draft_file(page, "privacy_proof")
    expect(proof.get_by_text("The pages of this PDF are being rendered.")).to_be_visible()
    expect(page.locator("#progress")).to_contain_text("1 of")
    assert draw_next()
    expect(proof.get_by_role("status")).to_have_text("The pages of bad.pdf can't be shown. Replace the file.")
    expect(proof.get_by_text("E_PROOF_PAGES")).to_be_visible()
    expect(proof.get_by_text("Replace it with an unencrypted PDF")).to_be_visible()
    expect(proof.locator(".tick")).to_have_text("✗")
    expect(page.locator("#progress")).to_contain_text("0 of")
    expect(page.locator("#readiness")).to_contain_text("The pages of the PDF can't be shown on the site.")
    assert "E_PROOF_PAGES" in codes(draft)
    assert complaints == []
