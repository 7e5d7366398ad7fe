"""Errors as responses: the body of each is `evaluator.messages.api.Problems`, a list of coded problems."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, Throttled, ValidationError

from docvqa_site.uploads.problems import problem_response
from evaluator.errors import ErrorCode, Problem, ProblemError


def answer_with_problems(api: NinjaAPI) -> None:
    """Install the exception handlers."""

    @api.exception_handler(ProblemError)
    def problem(_request: HttpRequest, error: ProblemError) -> HttpResponse:
        return problem_response(error)

    @api.exception_handler(AuthenticationError)
    def unauthenticated(request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
        # One that has expired has a code of its own.
        message = "The API token is unknown or was revoked." if "Authorization" in request.headers else ""
        return problem_response(ProblemError.of(ErrorCode.REQUEST_SIGN_IN, message=message))

    @api.exception_handler(ObjectDoesNotExist)
    @api.exception_handler(Http404)
    def not_found(_request: HttpRequest, _error: Exception) -> HttpResponse:
        return problem_response(ProblemError.of(ErrorCode.REQUEST_NOT_FOUND))

    @api.exception_handler(HttpError)
    def not_understood(_request: HttpRequest, error: HttpError) -> HttpResponse:
        if isinstance(error, Throttled):
            response = problem_response(ProblemError.of(ErrorCode.REQUEST_LIMIT))
            response["Retry-After"] = str(error.wait)
            return response
        return problem_response(
            ProblemError.of(ErrorCode.REQUEST_INVALID, message=str(error)), error.status_code
        )

    @api.exception_handler(ValidationError)
    def invalid(_request: HttpRequest, error: ValidationError) -> HttpResponse:
        problems = [
            Problem.of(
                ErrorCode.REQUEST_INVALID,
                where=".".join(str(part) for part in detail["loc"] if part != "body"),
                expected=_expected(detail),
                found=_printable(detail.get("input", "")),
            )
            for detail in error.errors
        ]
        return problem_response(ProblemError(*problems))


class MethodNotAllowedProblem:
    """Middleware: answers 405 of the API as any other error of it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response, match = self._get_response(request), request.resolver_match
        if response.status_code != HTTPStatus.METHOD_NOT_ALLOWED or match is None or match.namespace != "api":
            return response
        allowed = response["Allow"]
        problem = problem_response(
            ProblemError.of(
                ErrorCode.REQUEST_INVALID,
                message="This address doesn't accept the request's method.",
                where=request.path,
                expected=allowed,
                found=request.method or "",
            ),
            HTTPStatus.METHOD_NOT_ALLOWED,
        )
        problem["Allow"] = allowed
        return problem


def _expected(detail: dict[str, Any]) -> str:
    return "no such field" if detail["type"] == "extra_forbidden" else str(detail["msg"])


def _printable(value: object) -> str:
    """Return the value as text that can be sent, which a lone surrogate can't."""
    return str(value).encode(errors="backslashreplace").decode()


def cleaned(form: BaseForm) -> dict[str, Any]:
    """Return what a valid form holds. Raises `ProblemError` with the errors of an invalid one, one for each field."""
    if form.is_valid():
        return form.cleaned_data
    raise ProblemError(
        *(
            Problem.of(ErrorCode.REQUEST_INVALID, where=field, expected=" ".join(map(str, errors)))
            for field, errors in form.errors.items()
        )
    )
