"""Code with numbered lines: the attached files of a method, for those who may read them, and the files of the kit."""

import re
from collections.abc import Sequence
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.proofs.installed_kit import installed_file
from docvqa_site.reviews.selectors import readable_artifacts
from docvqa_site.reviews.ways import WayBack, ways_back
from docvqa_site.submissions.code import CODE_KINDS
from docvqa_site.ui.caching import PRIVATE
from docvqa_site.uploads.stores import current_store

LINE_END = re.compile(r"\r\n|\r|\n")
# A hostile file may have nothing but ends of lines.
MAX_LINES = 20_000


@require_safe
@login_required
def code_file(request: UserRequest, submission_id: UUID, artifact_id: UUID) -> HttpResponse:
    """Show a settings or method file. For everybody else, and once it is removed, there is no such page."""
    files = readable_artifacts(request.user).filter(kind__in=CODE_KINDS, submission=submission_id)
    artifact = get_object_or_404(files.select_related("upload", "submission"), pk=artifact_id)
    try:
        with current_store().open(artifact.upload.store_key) as file:
            content = file.read()
    except FileNotFoundError as error:
        raise Http404 from error
    return _shown(request, artifact.upload.filename, content, ways_back(request.user, artifact.submission))


@require_safe
@login_required
def kit_file(request: UserRequest, path: str) -> HttpResponse:
    """Show a source file of the starter kit that is installed with this site.

    A `submission` in the address is the one whose proof cites it, to whose review the page leads back.
    """
    found = installed_file(path)
    if found is None:
        raise Http404
    return _shown(request, path, found.read_bytes(), _ways_to(request))


def _ways_to(request: UserRequest) -> Sequence[WayBack]:
    """Return the ways back to the submission that the address names, if the visitor reads its files."""
    try:
        submission = UUID(request.GET.get("submission", ""))
    except ValueError:
        return []
    files = readable_artifacts(request.user).filter(submission=submission)
    artifact = files.select_related("submission").first()
    return ways_back(request.user, artifact.submission) if artifact else []


def _shown(request: UserRequest, name: str, content: bytes, ways: Sequence[WayBack]) -> HttpResponse:
    """Return the file on a page with numbered lines; with `plain` in the address, as text."""
    if "plain" in request.GET:
        # As text, whatever it is: a browser neither runs nor guesses it.
        headers = {"Cache-Control": PRIVATE, "X-Content-Type-Options": "nosniff"}
        return HttpResponse(content, content_type="text/plain; charset=utf-8", headers=headers)
    lines = LINE_END.split(content.decode("utf-8", "replace").removeprefix("\ufeff"))
    # What ends the last line begins no other one.
    lines = lines[:-1] if not lines[-1] else lines
    context = {"name": name, "lines": lines[:MAX_LINES], "total": len(lines), "ways_back": ways}
    return render(request, "reviews/code.html", context)
