"""A privacy proof, as reviewers and the team that wrote it read it. For everybody else there is no such page."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from docvqa_site.accounts.models import User
from docvqa_site.accounts.requests import UserRequest
from docvqa_site.proofs.changes import changes_between, changes_to_kit_proof
from docvqa_site.proofs.code_links import link_code
from docvqa_site.proofs.named_code import NamedCode, named_code
from docvqa_site.proofs.page_images import page_image
from docvqa_site.proofs.shown import shown_proof
from docvqa_site.reviews.access import conflict_page
from docvqa_site.reviews.conflicts import Conflicts
from docvqa_site.reviews.models import Recusal
from docvqa_site.reviews.selectors import readable_proofs, staged_proofs
from docvqa_site.reviews.ways import ways_back
from docvqa_site.submissions.models import Artifact, ArtifactState
from docvqa_site.ui.caching import PRIVATE
from docvqa_site.uploads.stores import current_store
from evaluator.errors import ProblemError

# Even if markup slipped through: no script runs, nothing of others is loaded, and only our own pages may frame it.
POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
# Links to other sites open beside the frame that the proof is in.
SANDBOX = f"sandbox allow-popups allow-popups-to-escape-sandbox allow-downloads; {POLICY}"
PAGES_SALT = "docvqa_site.reviews.proof_pages"
# As long as a reviewer may have the proof open.
PAGES_SECONDS = 12 * 3600


@require_safe
@login_required
@xframe_options_sameorigin
def proof(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Show the proof of one submission to staff and its team; it is not found for everybody else.

    Who has declared a conflict of interest reads that instead.

    The newest version, unless `version` in the address names another one. With `framed`, the text alone: a browser
    sends no cookie with what a frame without rights links to, so those links are on the page around it. With the
    key of a `question`, the way back to the review leads to it.
    """
    versions = _readable(request.user, submission=submission_id)
    if not versions and (recusal := _declared_conflict(request.user, submission_id)):
        conflicts = Conflicts(request.user)
        return conflict_page(request, recusal.submission, conflicts.about(recusal.submission))
    artifact = _version(versions, request.GET.get("version"))
    token = signing.dumps([str(artifact.pk), request.user.pk], salt=PAGES_SALT)
    try:
        shown = shown_proof(artifact, lambda number: reverse("reviews:proof_page", args=[token, number]))
    except FileNotFoundError as error:
        raise Http404 from error
    is_framed = "framed" in request.GET
    if shown.html and (named := named_code(artifact.upload)):
        address = partial(_kit_line, submission_id)
        shown = replace(shown, html=link_code(shown.html, named, address, is_framed=is_framed))
    context = {
        "submission": artifact.submission,
        "proof": shown,
        "file_url": reverse("reviews:proof_file", args=[submission_id]) + f"?version={artifact.version}",
        "versions": versions,
        "is_framed": is_framed,
        "is_sandboxed": True,
    }
    template = "reviews/proof_framed.html" if is_framed else "reviews/proof.html"
    context["ways_back"] = ways_back(request.user, artifact.submission, request.GET.get("question", ""))
    response = render(request, template, context, status=422 if shown.problems else 200)
    # Images load as one scrolls only where scripts could run, and the pages of a PDF have no markup of its author.
    response["Content-Security-Policy"] = POLICY if shown.pages else SANDBOX
    return response


@require_safe
@login_required
def file(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Send the file itself, to whoever may read it. It can hold scripts: browsers save it, and never show it."""
    artifact = _version(_readable(request.user, submission=submission_id), request.GET.get("version"))
    return saved_file(artifact)


@require_safe
@login_required
@xframe_options_sameorigin
def changes(request: UserRequest, submission_id: UUID) -> HttpResponse:
    """Show what changed between two versions, `from` and `to` in the address: of the first and the newest without.

    From `kit`, it is what a Markdown proof changes in the kit's proof of the method that it names.
    """
    proofs, first = _readable(request.user, submission=submission_id), request.GET.get("from", "1")
    after = _version(proofs, request.GET.get("to"))
    context: dict[str, object] = {"submission": after.submission, "after": after, "is_sandboxed": True}
    context["ways_back"] = ways_back(request.user, after.submission)
    name = "Kit's proof" if first == "kit" else f"Version {first}"
    context["sides"] = name, f"Version {after.version}"
    try:
        if first == "kit":
            context["kit_proof"] = named = named_code(after.upload)
            context["changes"] = changes_to_kit_proof(_kit_proof(named), after.upload)
        else:
            context["before"] = before = _version(proofs, first)
            context["changes"] = changes_between(before.upload, after.upload)
    except ProblemError as error:
        context["problems"] = error.problems
    except FileNotFoundError as error:
        raise Http404 from error
    response = render(
        request, "reviews/proof_changes.html", context, status=422 if "problems" in context else 200
    )
    response["Content-Security-Policy"] = SANDBOX
    return response


@require_safe
def page(_: HttpRequest, token: str, number: int) -> HttpResponse:
    """Send the image of one page to the person for whom the address was made, while they may read the proof.

    In a frame without rights, as the review page has it, a browser sends no cookie with requests for images: the
    address says who asks, for some hours.
    """
    try:
        key, person = signing.loads(token, salt=PAGES_SALT, max_age=PAGES_SECONDS)
    except signing.BadSignature as error:
        raise Http404 from error
    reader = get_object_or_404(User, pk=person, is_active=True)
    return page_image(_version(_readable(reader, pk=key), None), number)


def saved_file(artifact: Artifact, filename: str = "") -> HttpResponse:
    """Return the way to a file, from where it is saved under this name, or under that with which it came."""
    upload = artifact.upload
    name = filename or upload.filename
    url = current_store().download_url(upload.store_key, name, settings.DOWNLOAD_URL_SECONDS)
    return HttpResponseRedirect(url, headers={"Cache-Control": PRIVATE})


def _readable(user: User, **which: object) -> list[Artifact]:
    """Return the versions of a proof that the user may read, oldest first; one that isn't sent yet is the last."""
    sent = readable_proofs(user).filter(**which).order_by("version")
    return [*sent, *staged_proofs(user).filter(**which)]


def _declared_conflict(user: User, submission: UUID) -> Recusal | None:
    return user.recusals.filter(submission=submission, why=Recusal.Why.CONFLICT).first()


def _kit_line(submission: UUID, path: str, line: int) -> str:
    """Return the address of a line of the kit's code, or of a whole file, with the way back to the proof's review."""
    page = f"{reverse('reviews:kit_file', args=[path])}?submission={submission}"
    return f"{page}#L{line}" if line else page


def _kit_proof(named: NamedCode | None) -> str:
    """Return the document that is the kit's proof of the method that a proof names. Raises `Http404` without one."""
    if named is None or named.kit_proof is None:
        raise Http404
    return named.kit_proof


def _version(proofs: Sequence[Artifact], number: str | None) -> Artifact:
    """Return the version of this number; without one, the newest that was sent, if any was. Raises `Http404`."""
    sent = [one for one in proofs if one.state != ArtifactState.STAGED]
    found = (sent or proofs)[-1:] if number is None else [one for one in proofs if str(one.version) == number]
    if not found:
        raise Http404
    return found[0]
