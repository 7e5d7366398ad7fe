"""Authentication: the owner of a bearer token, or the person who is logged in with this browser."""

from typing import Any

from django.http import HttpRequest
from ninja.security import HttpBearer
from ninja.utils import check_csrf
from typing_extensions import override

from evaluator.errors import ErrorCode, ProblemError
from portal.accounts.models import User
from portal.accounts.services import authenticate_token
from portal.teams.models import Team
from portal.teams.selectors import team_of


class ApiRequest(HttpRequest):
    """A request that passed `TokenOrSession`. For annotations only."""

    auth: User


class TokenOrSession(HttpBearer):
    """Authenticates by the token alone where one is sent; a session counts only together with its CSRF token."""

    @override
    def __call__(self, request: HttpRequest) -> Any:
        if self.header in request.headers:
            return super().__call__(request)
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
        return authenticate_token(token)


def team_in(request: ApiRequest) -> Team:
    """Return the team that the request acts for. Raises `ProblemError` (`E_REQUEST_TEAM`) without one."""
    team = team_of(request.auth)
    if team is None:
        raise ProblemError.of(ErrorCode.REQUEST_TEAM)
    return team
