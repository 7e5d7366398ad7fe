"""Code as plain text: the attached files of a method, for those who may read them, and the files of the kit."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.proofs.installed_kit import installed_file
from docvqa_site.reviews.selectors import readable_artifacts
from docvqa_site.submissions.code import CODE_KINDS
from docvqa_site.ui.caching import PRIVATE
from docvqa_site.uploads.stores import current_store


@require_safe
@login_required
def code_file(request: UserRequest, submission_id: UUID, artifact_id: UUID) -> HttpResponse:
    """Show a settings or method file as text. For everybody else, and once it is removed, there is no such page."""
    files = readable_artifacts(request.user).filter(kind__in=CODE_KINDS, submission=submission_id)
    artifact = get_object_or_404(files.select_related("upload"), pk=artifact_id)
    try:
        with current_store().open(artifact.upload.store_key) as file:
            content = file.read()
    except FileNotFoundError as error:
        raise Http404 from error
    return _as_text(content)


@require_safe
@login_required
def kit_file(_: UserRequest, path: str) -> HttpResponse:
    """Show a source file of the starter kit that is installed with this site, as text."""
    found = installed_file(path)
    if found is None:
        raise Http404
    return _as_text(found.read_bytes())


def _as_text(content: bytes) -> HttpResponse:
    # As text, whatever it is: a browser neither runs nor guesses it.
    headers = {"Cache-Control": PRIVATE, "X-Content-Type-Options": "nosniff"}
    return HttpResponse(content, content_type="text/plain; charset=utf-8", headers=headers)
