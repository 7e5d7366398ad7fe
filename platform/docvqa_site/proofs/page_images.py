"""The response that has the image of one page of a proof. Who may have it, the views decide."""

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404

from docvqa_site.proofs.models import Page
from docvqa_site.submissions.models import Artifact
from docvqa_site.ui.caching import PRIVATE
from docvqa_site.uploads.stores import current_store


def page_image(artifact: Artifact, number: int) -> HttpResponse:
    """Return the image of a page. Raises `Http404` if there is none."""
    pages = Page.objects.select_related("drawing__upload").filter(drawing__upload=artifact.upload_id)
    try:
        with current_store().open(get_object_or_404(pages, number=number).store_key) as file:
            content = file.read()
    except FileNotFoundError as error:
        raise Http404 from error
    headers = {
        "Cache-Control": PRIVATE,
        # Drawn from a hostile file by a process that it may have taken over: it is an image or nothing.
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return HttpResponse(content, content_type="image/webp", headers=headers)
