"""The pages of proofs that are PDF files: drawn in a sandboxed process, a few seconds at a time, and stored.

The clock has the intake draw. Nothing here runs in a web process, and no process of the site opens a PDF itself. Killed
at any moment, the next call resumes at the first page that isn't there.
"""

import logging
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from django.db import transaction
from django.db.models import F, Sum
from django.utils import timezone
from pydantic import ValidationError

from docvqa_site.proofs.models import Drawing, DrawingState, Page, page_key
from docvqa_site.proofs.pdf_pages import (
    DRAWING_LIMITS,
    LIBRARIES,
    MAX_PAGES,
    DrawingRequest,
    Drawn,
    DrawnPage,
)
from docvqa_site.proofs.reading import MAX_PROOF_BYTES, read_proof
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ErrorCode, Problem, ProblemError
from evaluator.sandbox.sandbox import Ending, Sandbox, SandboxError, UnconfinedError

logger = logging.getLogger(__name__)

# After so long no further page is begun, so that the reports of workers wait no longer.
BATCH_S = 5.0
CLAIM = timedelta(minutes=5)
# A kernel that confines nothing won't before somebody has changed it.
UNCONFINED_PAUSE = timedelta(hours=1)
# Of a proof, in a row, without a page that came out of it.
MAX_TRIES = 3
MAX_IMAGES_BYTES = 40 * 1024 * 1024
# What the file is to blame for, however busy the machine is.
FAULTS_OF_FILE = {
    Ending.CPU_TIME: f"a page that takes more than {DRAWING_LIMITS.cpu_s} s to draw",
    Ending.MEMORY: f"a page that takes more than {DRAWING_LIMITS.memory_bytes // 1024**2} MiB to draw",
    Ending.OUTPUT: "a page whose picture is too large",
}


def draw_next() -> bool:
    """Draw pages of the proof that has waited longest, for some seconds; return whether there was one."""
    drawing = _claim()
    if drawing is None:
        return False
    try:
        if drawing.tries > MAX_TRIES:
            # Whatever drew it was killed each time.
            raise ProblemError(
                _problem(drawing, "pages that can be drawn", "a file with which drawing ended")
            )
        _draw(drawing)
    except FileNotFoundError:
        # A rule of retention was faster, or is about to be.
        logger.warning("The store has no file for the %s", drawing)
        _fail(drawing, _problem(drawing, "a file", "none"))
    except UnconfinedError as error:
        logger.error("No page of a proof is drawn here. %s", error)
        _release(drawing, UNCONFINED_PAUSE, tries=0)
    except ProblemError as error:
        if error.problem.code in {ErrorCode.STORE_UNAVAILABLE, ErrorCode.STORE_FULL}:
            _release(drawing, CLAIM, tries=0)
        else:
            _fail(drawing, error.problem)
    return True


def _claim() -> Drawing | None:
    now = timezone.now()
    waiting = Drawing.objects.filter(state=DrawingState.WAITING, claimed_until__lte=now)
    for drawing in waiting.select_related("upload").order_by("created_at")[:1]:
        # Another process may have been faster.
        own = waiting.filter(pk=drawing.pk)
        if own.update(claimed_until=now + CLAIM, tries=F("tries") + 1):
            drawing.tries += 1
            return drawing
    return None


def _draw(drawing: Drawing) -> None:
    """Draw and store pages.

    Raises:
        ProblemError: They can't be drawn, or the store doesn't answer.
        FileNotFoundError: The store doesn't have the file.
        UnconfinedError: The kernel would not confine the process that draws.
    """
    content = read_proof(drawing.upload)
    if len(content) > MAX_PROOF_BYTES:
        raise ProblemError(_problem(drawing, f"at most {MAX_PROOF_BYTES:,} bytes", "more"))
    first = drawing.pages.count() + 1
    pages: list[DrawnPage] = []
    used = drawing.pages.aggregate(total=Sum("size_bytes"))["total"] or 0
    try:
        found = _drawn(content, first, _collector(drawing, first, pages, MAX_IMAGES_BYTES - used))
    except SandboxError as error:
        _store(drawing, pages)
        _reject_hopeless(drawing, error, first + len(pages))
        # The end of what it printed is for the operators; the team reads nothing that the file could have written.
        logger.warning("Drawing the %s ended: %s", drawing, error)
        _release(drawing, timedelta(), tries=0 if pages else drawing.tries)
        return
    _store(drawing, pages)
    if found.found or not 1 <= found.total <= MAX_PAGES:
        raise ProblemError(_problem(drawing, found.expected, found.found or f"{found.total} pages"))
    if first + len(pages) > found.total:
        Drawing.objects.filter(pk=drawing.pk, state=DrawingState.WAITING).update(state=DrawingState.READY)
    else:
        _release(drawing, timedelta(), tries=0 if pages else drawing.tries)


def _drawn(content: bytes, first: int, on_page: Callable[[object], None]) -> Drawn:
    """Have a sandboxed process draw the pages from `first` on, and return what it says of the file."""
    with tempfile.TemporaryDirectory(prefix="proof-") as folder, Sandbox() as sandbox:
        path = Path(folder, "proof.pdf")
        path.write_bytes(content)
        sandbox.require_confinement()
        request = DrawingRequest(path=path, first=first, seconds=BATCH_S)
        found = sandbox.run(
            "docvqa_site.proofs.pdf_pages",
            "draw",
            request.model_dump(mode="json"),
            preload=LIBRARIES,
            readable=[path],
            limits=DRAWING_LIMITS,
            on_message=on_page,
        )
    try:
        return Drawn.model_validate(found)
    except ValidationError as error:
        raise SandboxError(Ending.GARBLED, "no result of a drawing") from error


def _collector(
    drawing: Drawing, first: int, pages: list[DrawnPage], allowed_bytes: int
) -> Callable[[object], None]:
    """Return what takes the pages as they come, in their order."""

    def take(message: object) -> None:
        try:
            page = DrawnPage.model_validate(message)
        except ValidationError as error:
            raise SandboxError(Ending.GARBLED, "no page") from error
        is_webp = page.image[:4] == b"RIFF" and page.image[8:12] == b"WEBP"
        if page.number != first + len(pages) or not is_webp:
            raise SandboxError(Ending.GARBLED, "another page")
        pages.append(page)
        if sum(len(page.image) for page in pages) > allowed_bytes:
            raise ProblemError(
                _problem(drawing, f"pages whose images have at most {MAX_IMAGES_BYTES:,} bytes", "more")
            )

    return take


def _store(drawing: Drawing, pages: list[DrawnPage]) -> None:
    store = current_store()
    for page in pages:
        key = page_key(drawing.upload, page.number)
        # The store is never asked inside a transaction, since it may take long.
        store.put(key, page.image)
        if not _note(drawing, page):
            store.delete(key)
            return


def _note(drawing: Drawing, page: DrawnPage) -> bool:
    """Add the row of a stored page; return whether the proof is still there."""
    with transaction.atomic():
        upload = Upload.objects.select_for_update().get(pk=drawing.upload_id)
        if upload.state != UploadState.COMPLETED:
            return False
        values = {"width": page.width, "height": page.height, "text": page.text}
        Page.objects.update_or_create(
            drawing=drawing, number=page.number, defaults={**values, "size_bytes": len(page.image)}
        )
        return True


def _reject_hopeless(drawing: Drawing, error: SandboxError, number: int) -> None:
    """Raise `ProblemError` if another try would end like this one did, or there were enough of them."""
    if (fault := FAULTS_OF_FILE.get(error.ending)) or drawing.tries >= MAX_TRIES:
        found = fault or "a page with which drawing ended"
        raise ProblemError(_problem(drawing, "pages that can be drawn", f"{found} (page {number})"))


def _problem(drawing: Drawing, expected: str, found: str) -> Problem:
    return Problem.of(ErrorCode.PROOF_PAGES, where=drawing.upload.filename, expected=expected, found=found)


def _fail(drawing: Drawing, problem: Problem) -> None:
    Drawing.objects.filter(pk=drawing.pk, state=DrawingState.WAITING).update(
        state=DrawingState.FAILED, problem=problem.model_dump(mode="json")
    )


def _release(drawing: Drawing, pause: timedelta, *, tries: int) -> None:
    """Let the next call draw it, after a pause."""
    Drawing.objects.filter(pk=drawing.pk).update(claimed_until=timezone.now() + pause, tries=tries)
