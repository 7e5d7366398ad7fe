"""Coded problems as HTTP responses, for the signed addresses and for the API above them."""

from http import HTTPStatus

from django.http import JsonResponse

from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.api import Problems

UNPROCESSABLE = 422
STATUS = {
    ErrorCode.REQUEST_SIGN_IN: 401,
    ErrorCode.REQUEST_TOKEN_EXPIRED: 401,
    ErrorCode.REQUEST_SCOPE: 403,
    ErrorCode.REQUEST_REAUTHENTICATE: 403,
    ErrorCode.TEAM_OWNER: 403,
    ErrorCode.TEAM_REGISTRATION: 403,
    ErrorCode.REQUEST_TEAM: 403,
    ErrorCode.UPLOAD_URL: 403,
    ErrorCode.REQUEST_NOT_FOUND: 404,
    ErrorCode.SUBMISSION_STATE: 409,
    ErrorCode.SUBMISSION_QUOTA: 409,
    ErrorCode.SUBMISSION_DUPLICATE: 409,
    ErrorCode.SUBMISSION_VISIBILITY: 409,
    ErrorCode.TRACK_CLOSED: 409,
    ErrorCode.TEAM_KEY: 409,
    ErrorCode.TEAM_MEMBER: 409,
    ErrorCode.TEAM_INVITATION: 409,
    ErrorCode.TEAM_FOUNDING: 409,
    ErrorCode.RUN_TOKEN: 409,
    ErrorCode.CHALLENGE_LIMIT: 409,
    ErrorCode.UPLOAD_STATE: 409,
    ErrorCode.UPLOAD_INCOMPLETE: 409,
    ErrorCode.UPLOAD_LIMIT: 409,
    ErrorCode.STORAGE_QUOTA: 409,
    ErrorCode.ARTIFACT_SIZE: 413,
    ErrorCode.REQUEST_LIMIT: 429,
    ErrorCode.STORE_UNAVAILABLE: 503,
    # Unlike 503, clients don't try again by themselves.
    ErrorCode.STORE_FULL: 507,
}


def problem_response(error: ProblemError, status: int | None = None) -> JsonResponse:
    """Return all problems as JSON; the status is that of the first one's code unless it is given."""
    status = status or STATUS.get(error.problem.code, UNPROCESSABLE)
    body = Problems(
        title=HTTPStatus(status).phrase, status=status, detail=error.problem.message, problems=error.problems
    )
    return JsonResponse(body.model_dump(mode="json"), status=status, content_type="application/problem+json")
