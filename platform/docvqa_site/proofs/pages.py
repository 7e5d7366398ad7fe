"""The beginning and the end of the pages of proofs that are PDF files. `docvqa_site.proofs.drawing` draws them."""

from django.db import transaction
from django.utils import timezone

from docvqa_site.proofs.models import Drawing, DrawingState, Page, page_key
from docvqa_site.proofs.pdf_pages import MAX_PAGES
from docvqa_site.uploads.models import Upload
from docvqa_site.uploads.stores import current_store


def draw_later(upload: Upload) -> Drawing:
    """Return the drawing of a PDF's pages, which begins soon if there is none."""
    drawing, _ = Drawing.objects.prefetch_related("pages").get_or_create(upload=upload)
    return drawing


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
