"""The tracks with one's quota, and the account that a token belongs to."""

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router

from docvqa_site.accounts.forms import ProfileForm
from docvqa_site.accounts.models import Scope
from docvqa_site.accounts.services import revoke_token, update_profile
from docvqa_site.api.authentication import MANAGING, ApiRequest, TokenOrSession, require_token, team_in
from docvqa_site.api.errors import cleaned
from docvqa_site.api.responses import response_of
from docvqa_site.challenge.models import Track
from docvqa_site.challenge.references import reference_sha256
from docvqa_site.submissions.duplicates import duplicate
from docvqa_site.submissions.selectors import quota_of
from docvqa_site.teams.selectors import team_of
from evaluator.messages.api import Account, CheckpointStatus, QuotaStatus, TrackInfo
from evaluator.messages.team_api import ChangedAccount

router = Router()
public = Router(tags=["leaderboards"])
TRACKS, ACCOUNT = ["tracks"], ["account"]


@router.get("/tracks", response=list[TrackInfo], summary="List tracks and their rules", tags=TRACKS)
def list_tracks(request: ApiRequest) -> list[TrackInfo]:  # noqa: ARG001  (ninja knows it by its name)
    return track_infos(with_data=True)


@public.get(
    "", response=list[TrackInfo], auth=None, summary="List tracks and their rules, without an account"
)
def list_public_tracks(request: HttpRequest) -> list[TrackInfo]:  # noqa: ARG001  (ninja knows it by its name)
    return track_infos()


def track_infos(*, with_data: bool = False) -> list[TrackInfo]:
    """Return all tracks with their rules; the hash of the data only for participants, who have the data."""
    now = timezone.now()
    return [
        response_of(
            TrackInfo,
            track,
            rule=track.kind.rule,
            budgets=track.run_budgets(),
            run_artifacts=track.kind.run_artifacts,
            optional_artifacts=track.kind.optional_artifacts,
            submission_artifacts=track.kind.submission_artifacts,
            reference_sha256=reference_sha256(track.reference),
            trainable=track.trainable_patterns(),
            data_sha256=track.data_sha256 if with_data else "",
            ranks_counted_alone=track.ranks_counted_alone(now),
            phases=list(track.phases.all()),
            closed_because=track.closed_because(now),
        )
        for track in Track.objects.prefetch_related("phases")
    ]


@router.get(
    "/tracks/{slug}/quota", response=QuotaStatus, summary="Get your team's quota in a track", tags=TRACKS
)
def get_quota(request: ApiRequest, slug: str, practice: bool = False) -> QuotaStatus:
    """Submissions that members made in other teams within 24 hours also count. Practice has a quota of its own."""
    track = Track.objects.get(slug=slug)
    quota = quota_of(team_in(request), track, timezone.now(), practice=practice)
    return QuotaStatus.model_validate(quota)


@router.get(
    "/tracks/{slug}/checkpoints/{sha256}",
    response=CheckpointStatus,
    summary="Check whether your team can submit a checkpoint",
    tags=TRACKS,
)
def get_checkpoint(request: ApiRequest, slug: str, sha256: str) -> CheckpointStatus:
    """`sha256` is the file's hash. Each checkpoint can be submitted only once, except for practice."""
    problem = duplicate(team_in(request), Track.objects.get(slug=slug), sha256)
    return CheckpointStatus(problems=[problem] if problem else [])


@router.get("/me", response=Account, summary="Get the token and its owner", tags=ACCOUNT)
def me(request: ApiRequest) -> Account:
    team = team_of(request.auth)
    return response_of(Account, request.auth, team=team.name if team else None)


@router.patch("/me", response=Account, summary="Change your name and ORCID iD", auth=MANAGING, tags=ACCOUNT)
def change_me(request: ApiRequest, body: ChangedAccount) -> Account:
    """Your password, email address, second factors and tokens can only be changed on the site."""
    current = {name: getattr(request.auth, name) for name in ProfileForm.Meta.fields}
    form = ProfileForm(current | body.model_dump(exclude_none=True))
    request.auth = update_profile(request.auth, **cleaned(form))
    return me(request)


@router.delete(
    "/me/token",
    response={204: None},
    summary="Revoke this token",
    auth=TokenOrSession(changing=Scope.READ),
    tags=ACCOUNT,
)
def revoke_me(request: ApiRequest) -> None:
    """Revokes the token used for this request, for example after a job or if it has leaked."""
    require_token(request)
    revoke_token(request.api_token, actor=request.auth)
