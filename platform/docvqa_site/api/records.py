"""Run tokens and signing keys, which a training record needs."""

from django.shortcuts import get_object_or_404
from ninja import Router

from docvqa_site.api.authentication import MANAGING, ApiRequest, require_token, team_in
from docvqa_site.api.errors import cleaned
from docvqa_site.api.responses import part_of, response_of
from docvqa_site.api.throttling import CREATION_LIMITS
from docvqa_site.challenge.models import Track
from docvqa_site.paging import DEFAULT_LIMIT, ListLimit, ListOffset
from docvqa_site.submissions.forms import ExplanationForm
from docvqa_site.submissions.models import RunToken
from docvqa_site.submissions.selectors import tokens_of
from docvqa_site.submissions.tokens import issue_token, take_token
from docvqa_site.submissions.unresolved_challenges import explain
from docvqa_site.teams.forms import KeyForm
from docvqa_site.teams.keys import register_key, revoke_key
from docvqa_site.teams.selectors import current_keys
from evaluator.messages.api import (
    ExplainedChallenge,
    IssuedRunToken,
    NewRunToken,
    NewSigningKey,
    RunTokenPage,
    SigningKey,
)

router = Router(tags=["training records"])


@router.get("/run-tokens", response=RunTokenPage, summary="List your team's run tokens, newest first")
def list_tokens(
    request: ApiRequest, limit: ListLimit = DEFAULT_LIMIT, offset: ListOffset = 0
) -> RunTokenPage:
    """Returns `limit` tokens, starting at `offset`."""
    return RunTokenPage(**part_of(tokens_of(team_in(request)), _token, limit=limit, offset=offset))


@router.post(
    "/run-tokens",
    response={201: IssuedRunToken},
    summary="Get a run token for one training run",
    throttle=CREATION_LIMITS,
)
def new_token(request: ApiRequest, body: NewRunToken) -> IssuedRunToken:
    """Get the token before training: the training record contains it. Only tracks with privacy budgets issue tokens.

    With `training`, the response may be an unused token that was issued before.
    """
    team, track = team_in(request), Track.objects.get(slug=body.track)
    if body.training:
        return _token(take_token(team, track, request.auth, body.training))
    return _token(issue_token(team, track, request.auth))


@router.patch(
    "/run-tokens/{token}", response=IssuedRunToken, summary="Explain an unresolved challenge to the reviewers"
)
def explain_challenge(request: ApiRequest, token: str, body: ExplainedChallenge) -> IssuedRunToken:
    """A token has an unresolved challenge if the challenge was drawn (`challenged_at`) and the token has no `run`."""
    found = get_object_or_404(tokens_of(team_in(request)), token=token)
    text = cleaned(ExplanationForm(body.model_dump()))["explanation"]
    return _token(explain(found, text, request.auth))


@router.get("/keys", response=list[SigningKey], summary="List the keys that can sign your team's records")
def list_keys(request: ApiRequest) -> list[SigningKey]:
    return [SigningKey.model_validate(key) for key in current_keys(team_in(request))]


@router.post("/keys", response=SigningKey, summary="Register a key")
def new_key(request: ApiRequest, body: NewSigningKey) -> SigningKey:
    """Returns the existing key if it is already registered. Requires an API token, not a session."""
    require_token(request)
    team = team_in(request)
    key = register_key(team, **cleaned(KeyForm(body.model_dump())), by=request.auth)
    return SigningKey.model_validate(key)


@router.delete("/keys/{public_key}", response={204: None}, summary="Revoke a key", auth=MANAGING)
def end_key(request: ApiRequest, public_key: str) -> None:
    """Owners only. New records signed with the key will be rejected. Requires an API token, not a session."""
    require_token(request)
    revoke_key(get_object_or_404(current_keys(team_in(request)), public_key=public_key), by=request.auth)


def _token(token: RunToken) -> IssuedRunToken:
    return response_of(IssuedRunToken, token, track=token.track.slug, run=token.run_id)
