"""The reviewers' queue, and the page that shows a privacy proof to reviewers and to the team that wrote it."""

import hashlib
from pathlib import PurePath
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.cache import caches
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from evaluator.contracts import evaluator_version
from evaluator.errors import ErrorCode, ProblemError
from portal.accounts.requests import UserRequest
from portal.reviews.access import for_reviewers
from portal.reviews.queue import queue_of
from portal.reviews.rendering import MAX_PROOF_BYTES, render_proof
from portal.reviews.selectors import readable_proofs
from portal.submissions.models import Artifact
from portal.uploads.models import Upload
from portal.uploads.stores import current_store

MAX_CACHED_CHARACTERS = 1_000_000
CACHED_SECONDS = 24 * 3600
# Even if markup slipped through: no script runs, nothing is loaded or sent, and only our own pages may frame it.
SANDBOX = (
    "sandbox; default-src 'none'; img-src data:; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)


@require_safe
@for_reviewers
def queue(request: UserRequest) -> HttpResponse:
    """Show a reviewer what needs their decision, what waits for others and what is accepted."""
    return render(request, "reviews/queue.html", {"sections": queue_of(request.user)})


@require_safe
@login_required
@xframe_options_sameorigin
def proof(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Show the proof of one submission to staff and its team; it is not found for everybody else.

    The newest version, unless `version` in the address names another one.
    """
    artifact = _version(
        readable_proofs(request.user).filter(submission=submission_id), request.GET.get("version")
    )
    upload = artifact.upload
    if PurePath(upload.filename).suffix.lower() == ".pdf":
        # A PDF can hold scripts too: the browser saves it instead of showing it, and the store sends it.
        url = current_store().download_url(upload.store_key, upload.filename, settings.DOWNLOAD_URL_SECONDS)
        return HttpResponseRedirect(url)
    context: dict[str, object] = {"submission": artifact.submission, "filename": upload.filename}
    try:
        context["html"] = _rendered(upload)
    except ProblemError as error:
        context["problems"] = error.problems
    response = render(request, "reviews/proof.html", context, status=422 if "problems" in context else 200)
    response["Content-Security-Policy"] = SANDBOX
    return response


def _version(proofs: QuerySet[Artifact], number: str | None) -> Artifact:
    if number is None:
        return get_object_or_404(proofs, superseded_at__isnull=True)
    if not (number.isascii() and number.isdigit() and len(number) < 5):
        raise Http404
    return get_object_or_404(proofs, version=int(number))


def _rendered(upload: Upload) -> SafeString:
    """Return the proof as HTML, which is rendered once unless images make it large."""
    # By the upload, not by its hash: that is what the uploader announced, and nobody may name another team's.
    cache, key = caches["pages"], f"proof:{evaluator_version()}:{upload.pk}"
    html: str | None = cache.get(key)
    if html is None:
        html = render_proof(_read(upload), upload.filename)
        if len(html) <= MAX_CACHED_CHARACTERS:
            cache.set(key, html, CACHED_SECONDS)
    return mark_safe(html)  # noqa: S308  (what was cached is what render_proof returned)


def _read(upload: Upload) -> bytes:
    """Return the proof's bytes. Raises `ProblemError` (`E_ARTIFACT_HASH`) unless they are the announced ones."""
    try:
        with current_store().open(upload.store_key) as file:
            content = file.read(MAX_PROOF_BYTES + 1)
    except FileNotFoundError as error:
        raise Http404 from error
    found = hashlib.sha256(content).hexdigest()
    # A larger one is rejected for its size, and never hashed to its end.
    if found != upload.sha256 and len(content) <= MAX_PROOF_BYTES:
        raise ProblemError.of(
            ErrorCode.ARTIFACT_HASH, where=upload.filename, expected=upload.sha256, found=found
        )
    return content
