"""Sharded checkpoints in a draft's page, in a real browser: joined there, and uploaded as one file."""

import json
import re
from pathlib import Path

import pytest
import torch
from django.contrib.staticfiles import finders
from playwright.sync_api import expect

from docvqa_site.submissions.models import Artifact
from docvqa_site.submissions.templatetags.error_texts import FOUND_BY_BROWSER
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.stores import current_store
from evaluator.checkpoints.sharding import join, joined_sha256
from evaluator.errors.codes import EXPLANATIONS, ErrorCode
from tests.docvqa_site.submissions.draft_page import MEGABYTE, PARTS, choose, draft_file, stored_content
from tests.evaluator.checkpoints.sharded import save_shards, split, write_index

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

FIRST, SECOND, THIRD = (f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3))
# Names and shapes at which Python and JavaScript could write different bytes.
TENSORS = {
    "shared.weight": torch.arange(600_000.0).reshape(-1, 4),
    "10": torch.ones(3),
    "9": torch.ones(2, 2),
    "größe.ε": torch.tensor([1.5, -2.5]),
    '"\\\b\f\n\r\t\x01\x7f\u2028/': torch.tensor([3.0]),
    "scalar": torch.tensor(4.0),
    "empty \U0001f600": torch.zeros(0, 3),
    "empty \ufb01": torch.zeros(3, 0),
    "constructor": torch.ones(1),
    "half": torch.arange(300_000.0).half(),
    "long": torch.arange(3),
    "last": torch.ones(500_000),
}


@pytest.fixture(autouse=True)
def parts_of_two_megabytes(store_folder, settings):
    settings.UPLOAD_PART_SIZE_BYTES = 2 * MEGABYTE


@pytest.fixture
def index(tmp_path):
    return save_shards(tmp_path / "run", split(TENSORS, 3))


def all_files(index):
    return sorted(index.parent.iterdir())


def test_shards_are_uploaded_as_the_one_file_that_the_kit_makes(open_page, index, tmp_path, complaints):
    page = open_page()
    (index.parent / "config.json").write_text("{}")  # may be chosen along with them
    choose(page, "checkpoint", all_files(index))
    file = draft_file(page, "checkpoint")
    expect(file.get_by_text("model.safetensors is uploaded.")).to_be_visible(timeout=30_000)
    expect(file.get_by_text(joined_sha256(index))).to_be_visible()
    upload = Artifact.objects.get().upload
    assert (upload.filename, upload.sha256) == ("model.safetensors", joined_sha256(index))
    join(index, tmp_path / "joined")
    assert stored_content("checkpoint") == (tmp_path / "joined").read_bytes()
    assert complaints == []


def test_dropped_shards_are_joined_too(open_page, tmp_path, complaints):
    index = save_shards(tmp_path / "run", split({"a": torch.ones(2), "b": torch.ones(1)}, 2))
    page = open_page()
    page.evaluate(
        """(files) => {
            const data = new DataTransfer();
            for (const [name, bytes] of files) data.items.add(new File([new Uint8Array(bytes)], name));
            const place = document.querySelector("[data-kind=checkpoint]");
            place.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }""",
        [[path.name, list(path.read_bytes())] for path in all_files(index)],
    )
    expect(draft_file(page, "checkpoint").get_by_text("is uploaded.")).to_be_visible(timeout=30_000)
    assert Artifact.objects.get().upload.sha256 == joined_sha256(index)
    assert complaints == []


def test_an_upload_of_shards_resumes_after_a_reload(open_page, index, complaints):
    page, puts, readings = open_page(), [], []
    page.on("worker", lambda worker: readings.append(worker.url))

    def break_off_after_two(route):
        puts.append(route.request.url)
        if len(puts) <= 2:
            route.continue_()
        else:
            route.abort("connectionreset")

    page.route(PARTS, break_off_after_two)
    choose(page, "checkpoint", all_files(index))
    expect(draft_file(page, "checkpoint").get_by_text("The connection is bad")).to_be_visible(timeout=30_000)
    upload = Upload.objects.get()
    total = -(-upload.size_bytes // (2 * MEGABYTE))
    assert len(list(current_store().list_parts(upload.store_key, upload.store_upload))) == 2 < total

    page.reload()
    page.unroute(PARTS)
    puts.clear()
    page.on("request", lambda request: request.method == "PUT" and puts.append(request.url))
    expect(draft_file(page, "checkpoint").get_by_text("is incomplete")).to_be_visible()
    choose(page, "checkpoint", all_files(index)[::-1])  # in another order
    expect(draft_file(page, "checkpoint").get_by_text("is uploaded.")).to_be_visible(timeout=60_000)
    assert len(puts) == total - 2  # only what was missing
    assert len(readings) == 1  # and the shards were read once
    assert Artifact.objects.get().upload == upload
    assert complaints == []


def test_a_later_shard_that_changed_is_read_again(open_page, index, complaints):
    page = open_page()
    choose(page, "checkpoint", all_files(index))
    file = draft_file(page, "checkpoint")
    expect(file.get_by_text("is uploaded.")).to_be_visible(timeout=30_000)
    third = index.parent / THIRD
    content = bytearray(third.read_bytes())
    content[-1] ^= 1
    third.write_bytes(content)
    choose(page, "checkpoint", all_files(index))
    expect(file.get_by_text(joined_sha256(index))).to_be_visible(timeout=30_000)
    assert complaints == []


def rejection(page, files, kind="checkpoint"):
    choose(page, kind, files)
    card = draft_file(page, kind).locator(".problem")
    expect(card).to_be_visible()
    expect(draft_file(page, kind).locator(".transfer-status")).to_have_text(
        "Nothing was uploaded." if isinstance(files, list) and files[1:] else re.compile("was not uploaded")
    )
    expect(draft_file(page, kind).locator(".dropzone")).to_be_visible()
    return card.text_content()


def test_what_is_missing_among_the_chosen_files_is_named(open_page, index, complaints):
    page = open_page()
    shards = [index.parent / name for name in (FIRST, SECOND, THIRD)]
    without_index = rejection(page, shards)
    assert "E_CHECKPOINT_INDEX" in without_index
    assert "without the index" in without_index
    assert "E_CHECKPOINT_INDEX" in rejection(page, shards[:1])
    missing = rejection(page, [index, shards[1]])
    assert "E_CHECKPOINT_SHARD" in missing
    assert f"2 missing: {FIRST}, {THIRD}" in missing
    assert "3 missing" in rejection(page, index)
    assert Upload.objects.count() == 0
    choose(page, "checkpoint", all_files(index))  # and all of them, in the end
    expect(draft_file(page, "checkpoint").get_by_text("is uploaded.")).to_be_visible(timeout=30_000)
    expect(draft_file(page, "checkpoint").locator(".problem")).to_have_count(0)
    assert complaints == []


def test_several_files_that_are_no_sharded_checkpoint_are_rejected(open_page, index, tmp_path, complaints):
    page = open_page()
    for name in ("a.safetensors", "b.safetensors"):
        (tmp_path / name).write_bytes(b"x")
    several = rejection(page, [tmp_path / "a.safetensors", tmp_path / "b.safetensors"])
    assert "E_ARTIFACT_KIND" in several
    assert "index of a sharded checkpoint" in several
    assert "a.safetensors" in rejection(page, [*all_files(index), tmp_path / "a.safetensors"])
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            for (const name of ["a.csv", "b.csv"]) data.items.add(new File(["1"], name));
            const place = document.querySelector("[data-kind=communication_log]");
            place.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
        }"""
    )
    expect(draft_file(page, "communication_log").locator(".problem")).to_contain_text("a.csv, b.csv")
    assert Upload.objects.count() == 0
    assert complaints == []


def test_a_damaged_sharded_checkpoint_is_rejected_before_anything_is_sent(open_page, index, complaints):
    page = open_page()
    third, whole = index.parent / THIRD, (index.parent / THIRD).read_bytes()
    weight_map = json.loads(index.read_text())["weight_map"]

    third.write_bytes(whole[:-4])
    damaged = rejection(page, all_files(index))
    assert "E_CHECKPOINT_OFFSETS" in damaged
    assert THIRD in damaged
    third.write_bytes(b"PK\x03\x04 no tensors here")
    assert "E_CHECKPOINT_FORMAT" in rejection(page, all_files(index))
    header = b"[1]".ljust(8)
    third.write_bytes(len(header).to_bytes(8, "little") + header)
    assert "E_CHECKPOINT_FORMAT" in rejection(page, all_files(index))
    header = b"{nothing"
    third.write_bytes(len(header).to_bytes(8, "little") + header)
    assert "E_CHECKPOINT_HEADER" in rejection(page, all_files(index))
    header = b'{"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}}'
    third.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    assert "tensor a" in rejection(page, all_files(index))
    third.write_bytes(whole)

    for weights, code in (
        ({**weight_map, "absent": FIRST}, "E_CHECKPOINT_SHARD"),
        ({name: shard for name, shard in weight_map.items() if name != "9"}, "E_CHECKPOINT_SHARD"),
        ({**weight_map, "9": "../" + FIRST}, "E_CHECKPOINT_INDEX"),
        ({**weight_map, "9": "möbel.safetensors"}, "E_CHECKPOINT_INDEX"),
        ({**weight_map, "9": 7}, "E_CHECKPOINT_INDEX"),
        ([], "E_CHECKPOINT_INDEX"),
        ({}, "E_CHECKPOINT_INDEX"),
    ):
        write_index(index.parent, weights)
        assert code in rejection(page, all_files(index)), weights
    index.write_text("{")
    assert "E_CHECKPOINT_INDEX" in rejection(page, all_files(index))
    assert Upload.objects.count() == 0
    assert complaints == []


def test_one_shard_of_one_is_a_checkpoint_like_any(open_page, tmp_path, complaints):
    index = save_shards(tmp_path, [{"a": torch.ones(2)}])
    index.unlink()
    page = open_page()
    choose(page, "checkpoint", list(tmp_path.glob("model*")))
    expect(draft_file(page, "checkpoint").get_by_text("is uploaded.")).to_be_visible(timeout=30_000)
    assert Artifact.objects.get().upload.filename == "model-00001-of-00001.safetensors"
    assert complaints == []


def test_the_choice_is_reached_by_keyboard_and_named(open_page, index):
    page = open_page()
    expect(draft_file(page, "checkpoint").locator(".dropzone")).to_be_visible()  # the page's script has run
    control = page.get_by_label("Choose a file or shards (Checkpoint)")
    control.focus()
    expect(control).to_be_focused()
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    assert chooser.value.is_multiple()
    chooser.value.set_files([path for path in all_files(index) if path != index])
    alert = draft_file(page, "checkpoint").get_by_role("alert")
    expect(alert).to_contain_text("E_CHECKPOINT_INDEX")
    expect(
        draft_file(page, "checkpoint").get_by_role("region", name="Problem E_CHECKPOINT_INDEX")
    ).to_be_visible()


def scripts():
    return [path.read_text() for path in Path(finders.find("submissions/draft.js") or "").parent.glob("*.js")]


def test_the_browser_has_the_texts_of_all_codes_that_it_finds():
    found = {
        code
        for script in scripts()
        for code in re.findall(r'problem\("(E_\w+)"|rejection\("(E_\w+)"', script)
    }
    stored = re.findall(r'\d: "(E_\w+)"', "".join(scripts()))
    assert {*filter(None, (code for pair in found for code in pair)), *stored} == set(FOUND_BY_BROWSER)


def test_no_script_repeats_a_text_of_the_table_of_codes():
    for text in EXPLANATIONS.values():
        assert not [script for script in scripts() if text.meaning in script or text.next_step in script]


def test_a_rejected_choice_says_what_the_table_of_codes_says(open_page, index):
    page = open_page()
    index.write_text("{")
    choose(page, "checkpoint", all_files(index))
    text = EXPLANATIONS[ErrorCode.CHECKPOINT_INDEX]
    alert = draft_file(page, "checkpoint").get_by_role("alert")
    expect(alert).to_contain_text(text.meaning)
    expect(alert).to_contain_text(text.next_step)
