"""Which proofs have their pages drawn, and the end of their pages. `portal.proofs.drawing` draws them."""

from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from portal.proofs.models import Drawing, DrawingState, Page, page_key
from portal.proofs.pdf_pages import MAX_PAGES
from portal.proofs.reading import is_pdf
from portal.submissions.models import Artifact, Run
from portal.uploads.models import Upload
from portal.uploads.stores import current_store


def draw_submitted(*, runs: Iterable[Run], **_: object) -> None:
    """Have the pages of what was submitted drawn; receives `submissions.signals.runs_queued`."""
    for run in runs:
        if proof := run.submission.proof():
            draw_later(artifact=proof)
        # They are of one submission.
        return


def draw_later(*, artifact: Artifact, **_: object) -> None:
    """Have the pages of a proof drawn, if it is a PDF; receives `submissions.signals.proof_revised`."""
    if is_pdf(artifact.upload):
        Drawing.objects.get_or_create(upload=artifact.upload)


@transaction.atomic
def draw_again() -> None:
    """Have the pages of all proofs drawn again, for a store that doesn't have their images."""
    Page.objects.all().delete()
    Drawing.objects.update(state=DrawingState.WAITING, problem={}, tries=0, claimed_until=timezone.now())


def forget_pages(*, upload: Upload, **_: object) -> None:
    """Remove the pages of a removed file; receives `uploads.signals.file_deleted`. May be called again."""
    for drawing in Drawing.objects.filter(upload=upload):
        last = drawing.pages.order_by("-number").values_list("number", flat=True).first() or 0
        # One more, which a killed process may have stored without noting it.
        for number in range(1, min(last + 1, MAX_PAGES) + 1):
            current_store().delete(page_key(upload, number))
        drawing.delete()
