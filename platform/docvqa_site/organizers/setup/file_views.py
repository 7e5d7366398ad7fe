"""Uploading a file of the organizers in parts: what the script of the data step calls, as the API has it for teams."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404
from pydantic import Field, ValidationError

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.organizers.access import POST, SAFE, for_organizers
from docvqa_site.uploads import services
from docvqa_site.uploads.models import Upload, UploadState
from docvqa_site.uploads.parts import Part
from docvqa_site.uploads.problems import problem_response
from evaluator.errors import ProblemError
from evaluator.messages.base import Message
from evaluator.messages.file_api import PartUrl, PartUrls, StoredParts, UploadPart, UploadStatus, WantedParts

View = Callable[..., HttpResponseBase]


class OfferedFile(Message):
    """A file that is to be offered for download."""

    filename: str = Field(min_length=1, max_length=1000)
    size_bytes: int
    sha256: str


def _for_script(*methods: str) -> Callable[[View], View]:
    """Return a decorator: a view for organizers who set up tracks, whose problems are JSON."""

    def decorate(view: View) -> View:
        @wraps(view)
        @for_organizers("challenge.change_track", methods=methods)
        def checked(request: UserRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
            try:
                return view(request, *arguments, **named)
            except ProblemError as error:
                return problem_response(error)
            except ValidationError:
                return HttpResponse(status=400)

        return checked

    return decorate


@_for_script(*POST)
def check(_request: UserRequest) -> HttpResponseBase:
    """Any file may be offered."""
    return HttpResponse(status=204)


@_for_script(*POST)
def start(request: UserRequest) -> HttpResponseBase:
    """Start an upload, or return that of the same file by the same person."""
    file = OfferedFile.model_validate_json(request.body)
    known = _own(request).filter(
        filename=services.clean_filename(file.filename), size_bytes=file.size_bytes, sha256=file.sha256
    )
    upload = known.first() or services.create_upload(
        None, request.user, filename=file.filename, size_bytes=file.size_bytes, sha256=file.sha256
    )
    return JsonResponse(UploadStatus.model_validate(upload).model_dump(mode="json"))


@_for_script(*SAFE)
def parts(request: UserRequest, upload_id: UUID) -> HttpResponseBase:
    stored = services.stored_parts(_found(request, upload_id))
    found = StoredParts(parts=[UploadPart.model_validate(part) for part in stored])
    return JsonResponse(found.model_dump(mode="json"))


@_for_script(*POST)
def part_urls(request: UserRequest, upload_id: UUID) -> HttpResponseBase:
    wanted = [
        Part(part.number, part.size_bytes, part.sha256)
        for part in WantedParts.model_validate_json(request.body).parts
    ]
    urls = [
        PartUrl(number=url.number, url=request.build_absolute_uri(url.url), headers=url.headers)
        for url in services.part_urls(_found(request, upload_id), wanted)
    ]
    return JsonResponse(PartUrls(urls=urls).model_dump(mode="json"))


@_for_script(*POST)
def complete(request: UserRequest, upload_id: UUID) -> HttpResponseBase:
    upload = _found(request, upload_id)
    services.complete(upload, actor=request.user)
    return JsonResponse({"upload": str(upload.pk)})


def _own(request: UserRequest) -> Any:
    lasting = [UploadState.OPEN, UploadState.COMPLETED]
    return Upload.objects.filter(team=None, created_by=request.user, state__in=lasting)


def _found(request: UserRequest, upload_id: UUID) -> Upload:
    found: Upload = get_object_or_404(_own(request), pk=upload_id)
    return found
