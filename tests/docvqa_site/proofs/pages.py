"""Drawn pages of proofs, made without drawing anything."""

from docvqa_site.proofs.models import Drawing, DrawingState, page_key
from docvqa_site.uploads.stores import current_store


def add_pages(artifact, *texts, first=1):
    """Pages with these texts, and with `image <number>` in place of their images."""
    drawing, _ = Drawing.objects.get_or_create(upload=artifact.upload)
    for number, text in enumerate(texts, first):
        content = b"image %d" % number
        current_store().put(page_key(artifact.upload, number), content)
        drawing.pages.create(number=number, width=910, height=1287, text=text, size_bytes=len(content))
    drawing.state = DrawingState.READY
    drawing.save()
