"""Run tokens and signing keys, which a training record needs from the site."""

from ninja import Router, Status

from evaluator.api import IssuedRunToken, NewRunToken, NewSigningKey, SigningKey
from portal.api.authentication import ApiRequest, team_in
from portal.api.errors import invalid_form
from portal.challenge.models import Track
from portal.submissions.models import RunToken
from portal.submissions.selectors import tokens_of
from portal.submissions.tokens import issue_token
from portal.teams.forms import KeyForm
from portal.teams.keys import register_key
from portal.teams.models import TeamKey
from portal.teams.selectors import current_keys

MAX_LISTED_TOKENS = 1000

router = Router(tags=["training records"])


@router.get("/run-tokens", response=list[IssuedRunToken], summary="Your team's run tokens, newest first")
def list_tokens(request: ApiRequest) -> list[IssuedRunToken]:
    """Lists the newest thousand."""
    return [_token(token) for token in tokens_of(team_in(request))[:MAX_LISTED_TOKENS]]


@router.post("/run-tokens", response={201: IssuedRunToken}, summary="Get a token for one training")
def new_token(request: ApiRequest, body: NewRunToken) -> Status[IssuedRunToken]:
    """Issues the token that the record of the next training carries. Only tracks with privacy budgets issue them."""
    team = team_in(request)
    return Status(201, _token(issue_token(team, Track.objects.get(slug=body.track), request.auth)))


@router.get("/keys", response=list[SigningKey], summary="The keys that may sign your team's records")
def list_keys(request: ApiRequest) -> list[SigningKey]:
    """Lists the keys that are not revoked."""
    return [_key(key) for key in current_keys(team_in(request))]


@router.post("/keys", response=SigningKey, summary="Register a key")
def new_key(request: ApiRequest, body: NewSigningKey) -> SigningKey:
    """Returns the registered key if your team has registered it before."""
    team = team_in(request)
    form = KeyForm(body.model_dump())
    if not form.is_valid():
        raise invalid_form(form)
    return _key(register_key(team, **form.cleaned_data, by=request.auth))


def _token(token: RunToken) -> IssuedRunToken:
    return IssuedRunToken(
        token=token.token, track=token.track.slug, issued_at=token.issued_at, run=token.run_id
    )


def _key(key: TeamKey) -> SigningKey:
    return SigningKey(public_key=key.public_key, name=key.name, created_at=key.created_at)
