"""The pages of PDF proofs: drawn in a real sandboxed process, stored, resumed, and removed."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from docvqa_site.audit.models import AuditEntry
from docvqa_site.celery import DRAW_TASK, app
from docvqa_site.proofs import drawing as drawings
from docvqa_site.proofs import pdf_pages
from docvqa_site.proofs.drawing import draw_next
from docvqa_site.proofs.models import Drawing, DrawingState, Page, page_key
from docvqa_site.proofs.pages import draw_again, draw_later
from docvqa_site.proofs.shown import prepare, shown_proof
from docvqa_site.uploads import services as uploads
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.jobs import ArtifactKind
from evaluator.sandbox.sandbox import Ending, Sandbox, SandboxError
from tests.docvqa_site.factories import (
    make_artifact,
    make_submission,
    make_team,
    make_track,
    make_upload,
)
from tests.docvqa_site.proofs import pdfs

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def in_one_sandbox(monkeypatch, sandbox):
    """Starting the sandbox's server is half of the time, and tested elsewhere."""
    monkeypatch.setattr(drawings, "Sandbox", lambda: Kept(sandbox))


class Kept:
    """A sandbox that isn't closed at the end of a `with` block."""

    def __init__(self, sandbox):
        self.sandbox = sandbox

    def __enter__(self):
        return self.sandbox

    def __exit__(self, *_):
        pass


def waiting(content, filename="proof.pdf"):
    """A submitted proof whose pages wait to be drawn."""
    submission = make_submission(track=make_track("anls"), state="submitted")
    artifact = make_artifact(submission, ArtifactKind.PRIVACY_PROOF, content, filename)
    draw_later(artifact.upload)
    return artifact


def drawn(content):
    """The drawing after the call that draws it."""
    artifact = waiting(content)
    assert draw_next()
    return Drawing.objects.get(upload=artifact.upload)


def stored(artifact, number):
    with current_store().open(page_key(artifact.upload, number)) as file:
        return file.read()


class TestWhichAreDrawn:
    @pytest.mark.parametrize(("filename", "count"), [("proof.PDF", 1), ("proof.md", 0)])
    def test_a_pdf_that_has_arrived_is_and_a_text_is_not(self, filename, count):
        upload = make_upload(make_team(), b"x", filename)
        for _ in range(2):
            prepare(upload=upload)
        assert Drawing.objects.filter(upload=upload).count() == count

    def test_a_pdf_from_before_is_once_somebody_looks_at_it(self):
        submission = make_submission(track=make_track("anls"), state="submitted")
        artifact = make_artifact(submission, ArtifactKind.PRIVACY_PROOF, b"x", "proof.pdf")
        assert shown_proof(artifact, str).is_waiting
        assert Drawing.objects.get().upload == artifact.upload

    def test_the_clock_calls_for_it(self):
        (entry,) = (entry for entry in app.conf.beat_schedule.values() if entry["task"] == DRAW_TASK)
        assert entry["schedule"] <= 10
        assert entry["options"]["expires"]
        app.loader.import_default_modules()
        artifact = waiting(b"no PDF")
        app.tasks[DRAW_TASK]()
        assert Drawing.objects.get(upload=artifact.upload).state == DrawingState.FAILED


class TestDrawing:
    def test_every_page_becomes_an_image_with_its_text(self):
        artifact = waiting(pdfs.make_pdf("Theorem \\(1\\)", "Proof"))
        assert draw_next()
        drawing = Drawing.objects.get()
        assert drawing.state == DrawingState.READY
        assert list(drawing.pages.values_list("number", "width", "height", "text")) == [
            (1, 910, 1287, "Theorem (1)"),
            (2, 910, 1287, "Proof"),
        ]
        for page in drawing.pages.all():
            image = stored(artifact, page.number)
            assert image[:4] + image[8:12] == b"RIFFWEBP"
            assert page.size_bytes == len(image)
        assert not draw_next()

    def test_it_resumes_at_the_first_page_that_is_not_there(self, monkeypatch, in_one_sandbox):
        artifact = waiting(pdfs.make_pdf("one", "two", "three"))
        # Each call draws one page.
        monkeypatch.setattr(drawings, "BATCH_S", 0.0)
        seen = []
        while draw_next():
            seen.append(Drawing.objects.get().pages.count())
        assert seen == [1, 2, 3]
        assert Drawing.objects.get().state == DrawingState.READY
        assert [page.text for page in Page.objects.all()] == ["one", "two", "three"]
        assert stored(artifact, 3)

    def test_what_a_killed_process_left_is_replaced(self, in_one_sandbox):
        artifact = waiting(pdfs.make_pdf("one"))
        current_store().put(page_key(artifact.upload, 1), b"half a page")
        Drawing.objects.update(tries=1, claimed_until=timezone.now() - timedelta(seconds=1))
        assert draw_next()
        assert stored(artifact, 1)[:4] == b"RIFF"

    def test_two_processes_never_draw_the_same_proof(self):
        waiting(pdfs.make_pdf("one"))
        assert drawings._claim()
        assert drawings._claim() is None
        assert not draw_next()

    def test_the_oldest_comes_first_and_a_broken_one_keeps_nobody_waiting(self, in_one_sandbox):
        broken, good = waiting(b"%PDF-1.7 nothing"), waiting(pdfs.make_pdf("one"))
        assert draw_next()
        assert draw_next()
        assert Drawing.objects.get(upload=broken.upload).state == DrawingState.FAILED
        assert Drawing.objects.get(upload=good.upload).state == DrawingState.READY

    def test_a_file_that_is_not_the_announced_one_is_never_opened(self):
        artifact = waiting(pdfs.make_pdf("one"))
        artifact.upload.sha256 = "0" * 64
        artifact.upload.save()
        assert draw_next()
        assert Drawing.objects.get().problem["code"] == ErrorCode.ARTIFACT_HASH

    def test_a_store_that_is_away_is_asked_again_later(self, monkeypatch):
        waiting(pdfs.make_pdf("one"))
        problem = ProblemError.of(ErrorCode.STORE_UNAVAILABLE)
        monkeypatch.setattr(drawings, "read_proof", lambda _: (_ for _ in ()).throw(problem))
        assert draw_next()
        drawing = Drawing.objects.get()
        assert (drawing.state, drawing.tries) == (DrawingState.WAITING, 0)
        assert drawing.claimed_until > timezone.now()

    def test_nothing_is_drawn_where_the_kernel_confines_nothing(self, monkeypatch, caplog):
        waiting(pdfs.make_pdf("one"))
        monkeypatch.setattr("evaluator.sandbox.confinement.Protection.missing", ["no network"])
        assert draw_next()
        assert Drawing.objects.get().state == DrawingState.WAITING
        assert not Page.objects.exists()
        assert "no network" in caplog.text
        assert not draw_next()


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("content", "found"),
        [
            (pdfs.encrypted(), "one that is encrypted"),
            (pdfs.with_count(10_000), "10,000 pages"),
            (pdfs.with_count(5), "page 2 is damaged"),
            (pdfs.endless_pages(), "page 1 is damaged"),
            (b"%PDF-1.7 nothing", "one that PDFium can't open"),
            (b"", "one that PDFium can't open"),
        ],
        ids=["encrypted", "10,000 pages", "too few pages", "endless pages", "no PDF", "empty"],
    )
    def test_what_cannot_be_drawn_is_a_coded_problem(self, in_one_sandbox, content, found):
        drawing = drawn(content)
        assert drawing.state == DrawingState.FAILED
        assert drawing.problem["code"] == ErrorCode.PROOF_PAGES
        assert drawing.problem["found"] == found
        assert drawing.problem["where"] == "proof.pdf"

    @pytest.mark.parametrize(
        ("content", "limits", "found"),
        [
            (pdfs.slow_page(), {"cpu_s": 1}, "more than 15 s"),
            (pdfs.nested_forms(), {"memory_bytes": 150 * 1024**2}, "more than 384 MiB"),
        ],
        ids=["time", "memory"],
    )
    def test_a_page_without_end_is_given_up_within_its_limits(
        self, monkeypatch, in_one_sandbox, content, limits, found
    ):
        # Only one limit can be reached, however fast the machine and however busy.
        reachable = {"wall_s": 3600, "address_space_bytes": None, **limits}
        monkeypatch.setattr(drawings, "DRAWING_LIMITS", replace(pdf_pages.DRAWING_LIMITS, **reachable))
        drawing = drawn(content)
        assert drawing.state == DrawingState.FAILED
        assert found in drawing.problem["found"]

    def test_a_picture_that_unpacks_to_much_more_is_drawn_small(self, in_one_sandbox):
        drawing = drawn(pdfs.image_bomb(8_000))
        assert drawing.state == DrawingState.READY
        assert drawing.pages.get().size_bytes < 100_000

    @pytest.mark.parametrize("box", [b"0 0 14400 14400", b"0 0 14400 1", b"0 0 0 0", b"0 0 1e30 1e30"])
    def test_a_page_of_any_size_becomes_an_image_within_the_limit(self, in_one_sandbox, box):
        page = drawn(pdfs.make_pdf("x", media_box=box)).pages.get()
        assert page.width * page.height < 1.01 * pdf_pages.MAX_PIXELS
        assert max(page.width, page.height) <= pdf_pages.MAX_SIDE_PIXELS

    def test_scripts_programs_and_addresses_in_it_do_nothing(self, in_one_sandbox):
        drawing = drawn(pdfs.with_actions())
        assert drawing.state == DrawingState.READY
        assert drawing.pages.get().text == "harmless"

    def test_a_crash_is_tried_again_some_times(self, monkeypatch):
        waiting(pdfs.make_pdf("one"))

        def crash(*_):
            raise SandboxError(Ending.CRASHED, "SIGSEGV", "what the file printed")

        monkeypatch.setattr(drawings, "_drawn", crash)
        tries = 0
        while draw_next():
            tries += 1
        assert tries == drawings.MAX_TRIES
        problem = Drawing.objects.get().problem
        assert problem["found"] == "a page with which drawing ended (page 1)"
        assert "printed" not in str(problem)

    def test_a_file_that_kills_whoever_draws_it_is_given_up(self):
        waiting(pdfs.make_pdf("one"))
        Drawing.objects.update(tries=drawings.MAX_TRIES)
        assert draw_next()
        assert Drawing.objects.get().state == DrawingState.FAILED

    @pytest.mark.parametrize(
        "message",
        [
            {"number": 2, "width": 1, "height": 1, "text": "", "image": "UklGRjAwMDBXRUJQ"},
            {"number": 1, "width": 1, "height": 1, "text": "", "image": "PHNjcmlwdD4="},
            {"number": 1, "width": 10**9, "height": 1, "text": "", "image": "UklGRjAwMDBXRUJQ"},
            "a page",
            None,
        ],
        ids=["another page", "no image", "too wide", "text", "nothing"],
    )
    def test_what_is_no_page_never_reaches_the_store(self, monkeypatch, message):
        artifact = waiting(pdfs.make_pdf("one"))

        def send(content, first, on_page):
            on_page(message)

        monkeypatch.setattr(drawings, "_drawn", send)
        assert draw_next()
        assert not Page.objects.exists()
        assert current_store().size(page_key(artifact.upload, 1)) is None

    def test_images_of_many_bytes_together_are_a_problem(self, monkeypatch, in_one_sandbox):
        monkeypatch.setattr(drawings, "MAX_IMAGES_BYTES", 1_000)
        assert "images have at most" in drawn(pdfs.make_pdf("one", "two")).problem["expected"]


class TestRemoval:
    def test_a_store_without_the_images_has_them_drawn_again(self, in_one_sandbox):
        artifact = waiting(pdfs.make_pdf("one"))
        draw_next()
        current_store().delete(page_key(artifact.upload, 1))
        draw_again()
        assert draw_next()
        assert stored(artifact, 1)
        assert Page.objects.count() == 1

    def test_the_images_go_with_the_proof(self, in_one_sandbox, django_capture_on_commit_callbacks):
        artifact = waiting(pdfs.make_pdf("one", "two"))
        draw_next()
        # Of a process that was killed before it noted the page.
        current_store().put(page_key(artifact.upload, 3), b"a page")
        with django_capture_on_commit_callbacks(execute=True):
            uploads.expire(artifact.upload, rule="test")
        assert not Drawing.objects.exists()
        assert [current_store().size(page_key(artifact.upload, number)) for number in (1, 2, 3)] == [None] * 3
        assert AuditEntry.objects.filter(action="upload.expired").exists()

    def test_a_page_that_is_drawn_while_the_proof_is_removed_is_not_kept(self, in_one_sandbox):
        artifact = waiting(pdfs.make_pdf("one"))
        artifact.upload.state = "expired"
        artifact.upload.save()
        draw_next()
        assert not Page.objects.exists()
        assert current_store().size(page_key(artifact.upload, 1)) is None

    def test_a_removed_file_without_pages_is_no_error(self, django_capture_on_commit_callbacks):
        upload = make_upload(make_submission().team)
        with django_capture_on_commit_callbacks(execute=True):
            uploads.discard(upload)
        upload.refresh_from_db()
        assert upload.removed_at
