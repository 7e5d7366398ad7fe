"""The data page, the terms, and the addresses of the files."""

from itertools import groupby

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from docvqa_site.accounts.models import User
from docvqa_site.accounts.services import authenticate_token
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.kit import find_wheel, install_command
from docvqa_site.downloads.models import Acceptance, Download, DownloadKind, Terms
from docvqa_site.downloads.services import accept, has_accepted
from docvqa_site.uploads.stores import current_store

BEARER = "Bearer "


@require_safe
def data(request: HttpRequest) -> HttpResponse:
    """List what can be downloaded, by kind, with sizes, hashes and licenses."""
    offered = sorted(
        Download.objects.offered().select_related("terms"),
        # Among equal positions, the kit precedes the versions that its installation uses.
        key=lambda download: (
            DownloadKind.values.index(download.kind),
            download.position,
            not download.filename.endswith(".whl"),
        ),
    )
    groups = [
        (DownloadKind(kind).label, list(group)) for kind, group in groupby(offered, key=lambda one: one.kind)
    ]
    context = {
        "groups": groups,
        "wheel": find_wheel(offered),
        "install": install_command(offered),
        "install_verify": install_command(offered, "verify"),
        "tracks": Track.objects.all(),
        "data_url": settings.DATA_URL,
        "site_url": settings.SITE_URL,
    }
    return render(request, "downloads/data.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def show_terms(request: HttpRequest, terms_id: int) -> HttpResponse:
    """Show terms; a POST accepts them and leads on to the file that they were shown for."""
    terms = get_object_or_404(Terms, pk=terms_id)
    following = _following(request)
    if request.method == "POST":
        if not isinstance(request.user, User):
            return redirect_to_login(request.get_full_path())
        accept(terms, request.user)
        messages.success(request, f"You have accepted {terms}.")
        return redirect(following or "downloads:data")
    context = {"terms": terms, "acceptance": _acceptance(request, terms), "following": following}
    return render(request, "downloads/terms.html", context)


@never_cache
@require_safe
def send_file(request: HttpRequest, slug: str, filename: str) -> HttpResponse:
    """Lead to the file in the store, which honors ranges, or to the terms that must be accepted first."""
    download = get_object_or_404(Download.objects.offered(), slug=slug, filename=filename)
    if download.terms and not has_accepted(requester(request), download.terms):
        return redirect(f"{download.terms.get_absolute_url()}?{urlencode({'next': request.path})}")
    if request.method == "GET":
        Download.objects.filter(pk=download.pk).update(times_sent=F("times_sent") + 1)
    if download.link:
        return redirect(download.link)
    address = current_store().download_url(
        download.store_key, download.filename, settings.DOWNLOAD_URL_SECONDS
    )
    return redirect(address)


def requester(request: HttpRequest) -> User | None:
    """Return who asks: by the API token that a command line sends, or by the session."""
    authorization = request.headers.get("Authorization", "")
    if authorization.startswith(BEARER):
        token = authenticate_token(authorization.removeprefix(BEARER))
        return token.user if token else None
    return request.user if isinstance(request.user, User) else None


def _acceptance(request: HttpRequest, terms: Terms) -> Acceptance | None:
    if not isinstance(request.user, User):
        return None
    return Acceptance.objects.filter(terms=terms, user=request.user).first()


def _following(request: HttpRequest) -> str:
    """Return the address of this site that comes after the terms; empty for any other."""
    address = request.POST.get("next") or request.GET.get("next") or ""
    allowed = url_has_allowed_host_and_scheme(
        address, {request.get_host()}, require_https=request.is_secure()
    )
    return address if allowed else ""
