"""Rejects requests with a null character in the address or in a cookie, which PostgreSQL can't store or compare."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from docvqa_site.uploads.problems import problem_response
from evaluator.errors import ErrorCode, ProblemError

NULL = "\0"


def reject_null_characters(
    respond: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware: it answers with status 400, to a call of the API with a coded problem."""

    def middleware(request: HttpRequest) -> HttpResponse:
        where = _place_of_null(request)
        if not where:
            return respond(request)
        if request.path_info.startswith(reverse("api:api-root")):
            problem = ProblemError.of(
                ErrorCode.REQUEST_INVALID, where=where, expected="text without null characters"
            )
            return problem_response(problem, 400)
        raise BadRequest(f"a null character in the {where}")

    return middleware


def _place_of_null(request: HttpRequest) -> str:
    if NULL in request.path_info:
        return "path"
    if "%00" in request.META["QUERY_STRING"]:
        return "query"
    return "cookie" if any(NULL in value for value in request.COOKIES.values()) else ""
