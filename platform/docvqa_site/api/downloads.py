"""The organizers' downloads over the API, and accepting their terms."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router

from docvqa_site.accounts.models import User
from docvqa_site.api.authentication import ApiRequest
from docvqa_site.api.responses import response_of
from docvqa_site.api.throttling import PUBLIC_LIMITS
from docvqa_site.challenge.models import Track
from docvqa_site.downloads.models import Download, Terms
from docvqa_site.downloads.services import accept, has_accepted
from docvqa_site.downloads.views import requester
from evaluator.messages.file_api import DownloadInfo, TermsInfo

router = Router(tags=["downloads"])


@router.get("", response=list[DownloadInfo], auth=None, throttle=PUBLIC_LIMITS, summary="List the downloads")
def list_downloads(request: HttpRequest, track: str = "") -> list[DownloadInfo]:
    """With `track`, only this track's downloads. No token is needed, except to see which terms you have accepted."""
    if track:
        get_object_or_404(Track, slug=track)
    user = requester(request)
    offered = Download.objects.offered().select_related("terms").prefetch_related("tracks")
    rows = [_info(request, download, user) for download in offered]
    return [row for row in rows if not track or not row.tracks or track in row.tracks]


@router.post("/terms/{terms_id}/accept", response=TermsInfo, summary="Accept the terms of a download")
def accept_terms(request: ApiRequest, terms_id: int) -> TermsInfo:
    """Records your account, this version of the terms and the time. Read the text before you accept it."""
    terms = get_object_or_404(Terms, pk=terms_id)
    accept(terms, request.auth)
    return _terms(request, terms, request.auth)


def _info(request: HttpRequest, download: Download, user: User | None) -> DownloadInfo:
    return response_of(
        DownloadInfo,
        download,
        url=request.build_absolute_uri(download.get_absolute_url()),
        tracks=[track.slug for track in download.tracks.all()],
        terms=_terms(request, download.terms, user) if download.terms else None,
    )


def _terms(request: HttpRequest, terms: Terms, user: User | None) -> TermsInfo:
    return response_of(
        TermsInfo,
        terms,
        url=request.build_absolute_uri(terms.get_absolute_url()),
        accepted=has_accepted(user, terms),
    )
