"""A run folder, or several files, in a draft's page in a real browser: each file goes to its place by its name."""

import json
import re

import pytest
from playwright.sync_api import expect

from docvqa_site.submissions.models import Artifact
from docvqa_site.uploads.models import Upload
from tests.docvqa_site.factories import make_token
from tests.docvqa_site.submissions.contents import LOG
from tests.docvqa_site.submissions.contents import checkpoint as weights
from tests.docvqa_site.submissions.draft_page import MEGABYTE, PARTS, draft_file, stored_content
from tests.docvqa_site.submissions.drafts import make_private_track
from tests.docvqa_site.submissions.records import annex_for, record_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]


@pytest.fixture(autouse=True)
def parts_of_two_megabytes(store_folder, settings):
    settings.UPLOAD_PART_SIZE_BYTES = 2 * MEGABYTE


@pytest.fixture
def run_folder(tmp_path):
    """What `pfl train` leaves of a run with a method of one's own, and vectors that nobody may send."""
    run = tmp_path / "run"
    (run / "vectors").mkdir(parents=True)
    (run / "vectors" / "model.safetensors").write_bytes(b"vectors")
    (run / "model.safetensors").write_bytes(weights())
    (run / "communication_log.csv").write_bytes(LOG)
    (run / "settings.yaml").write_text("method: ../methods/mine.py\nrounds: 1\n")
    (run / "mine.py").write_text("class Mine: pass\n")
    (run / "other.py").write_text("")
    (run / "summary.json").write_text("{}")
    return run


def choose_folder(page, folder):
    page.get_by_label("Choose the run folder").set_input_files(folder)


def stored_files():
    return {artifact.kind: artifact.upload.filename for artifact in Artifact.objects.select_related("upload")}


def test_each_file_of_a_run_folder_goes_to_its_place(open_page, run_folder, complaints):
    page = open_page()
    choose_folder(page, run_folder)
    status = page.locator(".run-folder-status")
    expect(status.locator("p")).to_have_text(
        [
            "Uploaded: model.safetensors, communication_log.csv, settings.yaml, mine.py.",
            "Not among the files: transcript.jsonl, messages.bin.",
        ],
        timeout=30_000,
    )
    assert stored_files() == {
        "checkpoint": "model.safetensors",
        "communication_log": "communication_log.csv",
        "settings": "settings.yaml",
        "method_file": "mine.py",
    }
    assert stored_content("checkpoint") == weights()
    expect(page.locator("#submit")).to_contain_text("The draft is complete.")
    assert complaints == []


def test_a_draft_is_not_submitted_while_optional_files_are_on_their_way(open_page, run_folder, complaints):
    page, held = open_page(), []
    method = (run_folder / "mine.py").read_text()

    def hold_the_method(route):
        if route.request.post_data == method:
            held.append(route)
        else:
            route.continue_()

    page.route(PARTS, hold_the_method)
    choose_folder(page, run_folder)
    expect(page.locator(".run-folder-status")).to_contain_text("Sending mine.py.", timeout=30_000)
    ready = page.get_by_text("The draft is complete.")
    warning = page.get_by_text("Files are still on their way.")
    expect(ready).to_be_hidden()
    expect(page.locator("#progress").get_by_text("files on their way")).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    expect(warning).to_be_focused()
    while not held:
        page.wait_for_timeout(50)
    held.pop().continue_()
    expect(ready).to_be_visible(timeout=30_000)
    expect(warning).to_be_hidden()
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".badge-queued")).to_be_visible()
    assert "method_file" in stored_files()
    assert complaints == []


def test_several_files_may_be_chosen_and_one_that_is_missing_is_named(open_page, run_folder):
    page = open_page()
    several = page.get_by_label("Choose several files")
    several.set_input_files([run_folder / "settings.yaml", run_folder / "model.safetensors"])
    status = page.locator(".run-folder-status")
    expect(status).to_contain_text("Uploaded: model.safetensors, settings.yaml.", timeout=30_000)
    expect(status).to_contain_text(
        "Not among the files: communication_log.csv, transcript.jsonl, messages.bin."
    )
    several.set_input_files([run_folder / "summary.json"])
    expect(page.locator(".run-folder-problems .problem")).to_contain_text("E_ARTIFACT_MISSING")
    expect(several).to_have_accessible_description(re.compile("E_ARTIFACT_MISSING.*Each goes to its place"))


def test_a_rejected_file_keeps_none_of_the_others_out(open_page, run_folder):
    (run_folder / "model.safetensors").write_bytes(b"PK\x03\x04 and more")
    page = open_page()
    choose_folder(page, run_folder)
    status = page.locator(".run-folder-status")
    expect(status).to_contain_text("Not uploaded: model.safetensors.", timeout=30_000)
    expect(draft_file(page, "checkpoint").locator(".problem")).to_contain_text("E_CHECKPOINT_FORMAT")
    assert "checkpoint" not in stored_files()
    assert "communication_log" in stored_files()


def test_dropped_files_go_to_their_places(open_page, complaints):
    page = open_page()
    page.evaluate(
        """(LOG) => {
            const data = new DataTransfer();
            data.items.add(new File(["rounds: 1"], "settings.yaml"));
            data.items.add(new File([LOG], "communication_log.csv"));
            const area = document.querySelector(".run-folder");
            area.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        LOG.decode(),
    )
    expect(page.locator(".run-folder-status")).to_contain_text(
        "Uploaded: communication_log.csv, settings.yaml.", timeout=30_000
    )
    assert stored_content("communication_log") == LOG
    assert complaints == []


def test_a_run_folder_may_be_dropped_as_a_whole(open_page, run_folder, complaints):
    page = open_page()
    box = page.locator(".run-folder").bounding_box()
    data = {"items": [], "files": [str(run_folder)], "dragOperationsMask": 1}
    devtools = page.context.new_cdp_session(page)
    for kind in ("dragEnter", "dragOver", "drop"):
        place = {"x": box["x"] + 20, "y": box["y"] + 20}
        devtools.send("Input.dispatchDragEvent", {"type": kind, **place, "data": data})
    expect(page.locator(".run-folder-status")).to_contain_text(
        "Uploaded: model.safetensors, communication_log.csv, settings.yaml, mine.py.", timeout=30_000
    )
    assert stored_content("checkpoint") == weights()
    assert complaints == []


def test_an_annex_follows_once_it_answers_the_challenge_of_the_record(
    open_page, draft, run_folder, complaints
):
    draft.track = make_private_track()
    draft.save()
    draft.runs.update(budget=1.0)
    record = record_of(make_token(draft.team, draft.track).token)
    (run_folder / "training_record.jsonl").write_bytes(record)
    annex = run_folder / "training_annex.jsonl"
    annex.write_bytes(annex_for("0" * 64))
    page = open_page()
    headings = page.locator(".draft-file h4")
    expect(headings).to_contain_text(
        ["1. Training record", "2. Training annex", "3. Checkpoint", "4. Communication log", *[""] * 4]
    )
    choose_folder(page, run_folder)
    status = page.locator(".run-folder-status")
    question = page.get_by_role("group", name="Upload the training record, too?")
    expect(question).to_contain_text(
        "Uploading it spends its run token, unless the record was uploaded before."
    )
    expect(question.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(status).to_contain_text("Nothing was uploaded.")
    expect(question).to_be_hidden()
    assert not Upload.objects.exists()
    choose_folder(page, run_folder)
    expect(question).to_be_visible()
    expect(status).to_be_empty()
    question.get_by_role("button", name="Yes, upload").click()
    expect(status).to_contain_text("Uploaded: training_record.jsonl, model.safetensors", timeout=30_000)
    expect(status).to_contain_text("training_annex.jsonl must answer the challenge that the site has drawn.")
    expect(draft_file(page, "training_annex").locator(".problem")).to_have_count(0)
    assert "training_annex" not in stored_files()

    uploads = Upload.objects.count()
    annex.write_bytes(annex_for(draft.runs.get().challenge))
    choose_folder(page, run_folder)
    # The record is the same, so nobody is asked whether it is replaced, and nothing is sent twice.
    expect(status).to_contain_text("Uploaded: training_record.jsonl, training_annex.jsonl", timeout=30_000)
    assert Upload.objects.count() == uploads + 1
    assert stored_content("training_annex") == annex.read_bytes()
    assert complaints == []


def test_a_run_folder_is_chosen_by_keyboard(open_page):
    page = open_page()
    folder = page.get_by_label("Choose the run folder")
    expect(draft_file(page, "checkpoint").locator(".dropzone")).to_be_visible()  # the page's script has run
    page.get_by_role("heading", name="Run", exact=True).focus()
    page.keyboard.press("Tab")
    expect(folder).to_be_focused()
    with page.expect_file_chooser():
        page.keyboard.press("Enter")


def test_without_javascript_no_folder_can_be_chosen(open_page):
    page = open_page(java_script_enabled=False)
    expect(page.locator(".run-folder")).to_be_hidden()


@pytest.fixture
def private_draft(draft):
    """A draft without runs in a track with budgets 1, 4 and 8, of a team that has a run token."""
    draft.track = make_private_track()
    draft.save()
    draft.runs.all().delete()
    return draft


def test_the_run_of_a_folder_is_found_by_its_record(open_page, private_draft, run_folder, complaints):
    record = record_of(make_token(private_draft.team, private_draft.track).token)
    (run_folder / "training_record.jsonl").write_bytes(record)
    claim = json.loads(record.partition(b"\n")[0])["claimed_epsilon"]
    (budget,) = [budget for budget in (1, 4, 8) if claim <= budget][:1]
    page = open_page()
    chooser = page.get_by_label("Choose a run folder")
    chooser.focus()
    chooser.set_input_files(run_folder)
    agree = page.get_by_role("group", name="Upload the training record, too?").get_by_role("button")
    agree.first.click()
    expect(page.locator(".any-run-status")).to_have_text("Nothing was uploaded.")
    assert not private_draft.runs.exists()
    expect(chooser).to_be_focused()
    chooser.set_input_files(run_folder)
    expect(agree.last).to_be_visible()
    expect(page.locator(".any-run-status")).to_be_empty()
    agree.last.click()
    status = page.locator(".run-folder-status")
    expect(status).to_contain_text("Uploaded: training_record.jsonl, model.safetensors", timeout=30_000)
    assert [run.budget for run in private_draft.runs.all()] == [budget]
    assert stored_content("training_record") == record
    expect(chooser).to_be_focused()
    expect(page.locator("#progress")).to_contain_text("of 5 files")
    page.locator(".any-run-status").get_by_role("link", name=f"run at ε = {budget}").press("Enter")
    expect(page.get_by_role("heading", name=f"Run at ε = {budget}")).to_be_focused()
    # The part of the page that came with the run takes files and can be removed like any other.
    expect(page.get_by_label(f"Choose a file (Training annex at ε = {budget})")).to_have_count(1)
    uploads = Upload.objects.count()
    chooser.set_input_files(run_folder)
    expect(status).to_contain_text("training_annex.jsonl must answer the challenge", timeout=30_000)
    assert (private_draft.runs.count(), Upload.objects.count()) == (1, uploads)
    assert complaints == []


def test_a_team_without_a_key_is_not_asked_to_spend_a_token(open_page, private_draft, run_folder):
    record = record_of(make_token(private_draft.team, private_draft.track).token)
    (run_folder / "training_record.jsonl").write_bytes(record)
    private_draft.team.keys.all().delete()
    page = open_page()
    question = page.get_by_role("group", name="Upload the training record, too?")
    page.get_by_label("Choose a run folder").set_input_files(run_folder)
    expect(page.locator(".any-run-problems .problem")).to_contain_text("E_RECORD_KEY")
    expect(page.locator(".any-run-status")).to_have_text("Nothing was uploaded.")
    page.get_by_role("button", name="Add a run at ε = 1").click()
    choose_folder(page, run_folder)
    expect(page.locator(".run-folder-problems .problem")).to_contain_text("E_RECORD_KEY")
    expect(question).to_have_count(0)
    assert not Upload.objects.exists()


def test_a_folder_whose_run_cannot_be_found_is_rejected_with_the_reason(open_page, private_draft, run_folder):
    page = open_page()
    chooser, problem = page.get_by_label("Choose a run folder"), page.locator(".any-run-problems .problem")
    chooser.set_input_files(run_folder)
    expect(problem).to_contain_text("it was trained without privacy")
    (run_folder / "summary.json").unlink()
    chooser.set_input_files(run_folder)
    expect(problem).to_contain_text("Without the training record")
    record = run_folder / "training_record.jsonl"
    record.write_text('{"claimed_epsilon":0.5}\n{"claimed_epsilon":9.125}\n')
    chooser.set_input_files(run_folder)
    expect(problem).to_contain_text("at most 8")
    expect(problem).to_contain_text("9.125")
    record.write_text("no record")
    chooser.set_input_files(run_folder)
    expect(problem).to_contain_text("E_RECORD_FORMAT")
    assert private_draft.runs.count() == 0
    assert not Upload.objects.exists()
