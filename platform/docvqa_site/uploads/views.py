"""The two addresses of the folder store: one receives a part, one sends a file. The signature is the permission."""

import os
import re
import threading
from collections.abc import Iterator
from typing import BinaryIO

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from docvqa_site.uploads.problems import problem_response
from docvqa_site.uploads.signed_urls import read_file_token, read_part_token
from docvqa_site.uploads.stores import current_folder
from docvqa_site.uploads.unfinished_file import CHUNK_BYTES
from evaluator.errors import ErrorCode, ProblemError

# Whoever sends parts slowly leaves threads for pages.
PLACES = max(1, settings.WEB_THREADS * 3 // 4)
_places = threading.BoundedSemaphore(PLACES)
ONE_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


# The permission is the signature, not a cookie.
@csrf_exempt
@require_http_methods(["PUT"])
def receive_part(request: HttpRequest, token: str) -> HttpResponse:
    """Receive one part, with no more than a chunk of it in memory."""
    try:
        upload, part = read_part_token(token)
        if not _places.acquire(blocking=False):
            raise ProblemError.of(
                ErrorCode.STORE_UNAVAILABLE,
                where=f"part {part.number}",
                expected=f"at most {PLACES} parts at a time for each process of the site",
                next_step="The same part is accepted in a moment; the kit and the upload page try again by themselves.",
            )
    except ProblemError as error:
        return problem_response(error)
    try:
        announced = request.headers.get("Content-Length", "none")
        if announced != str(part.size_bytes):
            raise ProblemError.of(
                ErrorCode.UPLOAD_PART,
                where=f"part {part.number}, header Content-Length",
                expected=f"{part.size_bytes} bytes",
                found=announced,
            )
        current_folder().receive(upload, part, _body(request))
    except ProblemError as error:
        return problem_response(error)
    finally:
        _places.release()
    return HttpResponse(status=204)


def _body(request: HttpRequest) -> Iterator[bytes]:
    try:
        while chunk := request.read(CHUNK_BYTES):
            yield chunk
    # The sender is gone; the part is too short and is rejected.
    except OSError:
        return


@require_safe
def send_file(request: HttpRequest, token: str) -> HttpResponseBase:
    """Send one file as a download that no browser opens in place; one byte range is honored.

    Where a proxy sends the folder's files, the response names the file, and the proxy handles ranges.
    """
    try:
        key, filename = read_file_token(token)
        response = _handed_over(key) if settings.ACCEL_PREFIX else _sent(request, key)
    except ProblemError as error:
        return problem_response(error)
    except FileNotFoundError as error:
        raise Http404 from error
    response["Accept-Ranges"] = "bytes"
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = "private, no-store"
    if disposition := content_disposition_header(True, filename):
        response["Content-Disposition"] = disposition
    return response


def _handed_over(key: str) -> HttpResponseBase:
    """Return the response that makes the proxy send the file. Raises `FileNotFoundError`."""
    if current_folder().size(key) is None:
        raise FileNotFoundError(key)
    path = f"{settings.ACCEL_PREFIX.rstrip('/')}/objects/{key}"
    return HttpResponse(content_type="application/octet-stream", headers={"X-Accel-Redirect": path})


def _sent(request: HttpRequest, key: str) -> HttpResponseBase:
    """Return the response that sends the file from here. Raises `FileNotFoundError`."""
    file = current_folder().open(key)
    size = os.fstat(file.fileno()).st_size
    try:
        start, stop, status = _wanted(request.headers.get("Range", ""), size)
    except ValueError:
        file.close()
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
    response = StreamingHttpResponse(
        _slice(file, start, stop), status=status, content_type="application/octet-stream"
    )
    response["Content-Length"] = str(stop - start)
    if status == 206:
        response["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    return response


def _wanted(header: str, size: int) -> tuple[int, int, int]:
    """Return first byte, byte after the last, and status. Raises `ValueError` for a range outside the file.

    Anything but one plain range is answered with the whole file, as RFC 9110 (section 14.2) allows.
    """
    match = ONE_RANGE.fullmatch(header)
    if not match or match.groups() == ("", ""):
        return 0, size, 200
    first, last = match.groups()
    # `bytes=-n` requests the last n bytes.
    if not first:
        start, stop = max(0, size - int(last)), size
    else:
        start, stop = int(first), min(int(last) + 1, size) if last else size
    if start >= stop:
        raise ValueError(header)
    return start, stop, 206


def _slice(file: BinaryIO, start: int, stop: int) -> Iterator[bytes]:
    with file:
        file.seek(start)
        left = stop - start
        while left and (chunk := file.read(min(CHUNK_BYTES, left))):
            left -= len(chunk)
            yield chunk
