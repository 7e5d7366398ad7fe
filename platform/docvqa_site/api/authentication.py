"""Authentication of API requests, by the bearer token of a user or by the session of a browser."""

from typing import Any

from django.http import HttpRequest
from ninja.security import HttpBearer
from ninja.utils import check_csrf
from typing_extensions import override

from docvqa_site.accounts.models import ApiToken, Scope, User
from docvqa_site.accounts.services import authenticate_token
from docvqa_site.api.throttling import count_unknown
from docvqa_site.teams.models import Membership, Team
from docvqa_site.teams.selectors import membership_of
from evaluator.errors import ErrorCode, ProblemError

READING = frozenset({"GET", "HEAD", "OPTIONS"})


class ApiRequest(HttpRequest):
    """A request that `TokenOrSession` authenticated. Used in annotations only."""

    auth: User
    api_token: ApiToken


class TokenOrSession(HttpBearer):
    """Authenticate by the token if the request has one, else by the session together with its CSRF token.

    A token needs the scope `changing` for any request that isn't one to read.
    """

    def __init__(self, changing: Scope = Scope.SUBMIT) -> None:
        super().__init__()
        self._changing = changing

    @override
    def __call__(self, request: HttpRequest) -> Any:
        user = super().__call__(request) if self.header in request.headers else self._from_session(request)
        if user is None:
            count_unknown(request)
        return user

    def _from_session(self, request: HttpRequest) -> Any:
        if not request.user.is_authenticated:
            return None
        if check_csrf(request):
            raise ProblemError.of(
                ErrorCode.REQUEST_SIGN_IN,
                message="The session has no valid CSRF token.",
                where="header X-CSRFToken",
                next_step="Reload the page, or use an API token outside a browser.",
            )
        return request.user

    @override
    def authenticate(self, request: HttpRequest, token: str) -> User | None:
        found = authenticate_token(token)
        if found is None:
            return None
        needed = Scope.READ if request.method in READING else self._changing
        if needed not in Scope(found.scope).covers:
            raise ProblemError.of(
                ErrorCode.REQUEST_SCOPE, where=found.label, expected=needed.value, found=found.scope
            )
        request.api_token = found  # type: ignore[attr-defined]
        return found.user


MANAGING = TokenOrSession(Scope.MANAGE)


def require_token(request: HttpRequest) -> None:
    """Raise `ProblemError` (`E_REQUEST_REAUTHENTICATE`) if the session alone authenticated the request.

    For what outlasts a session. The site's pages do it after the password was entered again.
    """
    if TokenOrSession.header not in request.headers:
        raise ProblemError.of(ErrorCode.REQUEST_REAUTHENTICATE)


def membership_in(request: ApiRequest) -> Membership:
    """Return the user's membership in their team. Raises `ProblemError` (`E_REQUEST_TEAM`) if they have none."""
    membership = membership_of(request.auth)
    if membership is None:
        raise ProblemError.of(ErrorCode.REQUEST_TEAM)
    return membership


def team_in(request: ApiRequest) -> Team:
    """Return the team of the user. Raises `ProblemError` (`E_REQUEST_TEAM`) if the user has none."""
    return membership_in(request).team
