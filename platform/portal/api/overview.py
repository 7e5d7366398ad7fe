"""The tracks with one's quota, and the account that a token belongs to."""

from django.utils import timezone
from ninja import Router, Status

from evaluator.messages.api import Account, PhaseInfo, QuotaStatus, TrackInfo
from evaluator.messages.team_api import ChangedAccount
from portal.accounts.forms import ProfileForm
from portal.accounts.models import Scope
from portal.accounts.services import revoke_token, update_profile
from portal.api.authentication import MANAGING, ApiRequest, TokenOrSession, require_token, team_in
from portal.api.errors import invalid_form
from portal.challenge.models import Anonymity, Phase, ResultsTiming, Track
from portal.submissions.selectors import quota_of
from portal.teams.selectors import team_of

router = Router()
TRACKS, ACCOUNT = ["tracks"], ["account"]


@router.get("/tracks", response=list[TrackInfo], summary="List tracks and their rules", tags=TRACKS)
def list_tracks(request: ApiRequest) -> list[TrackInfo]:  # noqa: ARG001  (ninja knows it by its name)
    now = timezone.now()
    return [
        TrackInfo(
            slug=track.slug,
            name=track.name,
            summary=track.summary,
            ranking=track.ranking,
            rule=track.kind.rule,
            budgets=track.run_budgets(),
            run_artifacts=list(track.kind.run_artifacts),
            optional_artifacts=list(track.kind.optional_artifacts),
            submission_artifacts=list(track.kind.submission_artifacts),
            reference=track.reference,
            trainable=track.trainable_patterns(),
            clients=track.clients,
            max_rounds=track.max_rounds,
            providers_per_client=track.providers_per_client,
            max_checkpoint_bytes=track.max_checkpoint_bytes,
            anls_threshold=track.anls_threshold,
            delta=track.delta,
            sampling_rule=track.sampling_rule,
            accountant=track.accountant,
            adjacency=track.adjacency,
            unbound_level=track.unbound_level,
            phases=[_phase(phase) for phase in track.phases.all()],
            closed_because=track.closed_because(now),
        )
        for track in Track.objects.prefetch_related("phases")
    ]


def _phase(phase: Phase) -> PhaseInfo:
    return PhaseInfo(
        name=phase.name,
        starts_at=phase.starts_at,
        ends_at=phase.ends_at,
        submissions_per_day=phase.submissions_per_day,
        results=ResultsTiming(phase.results).value,
        allows_private=phase.allows_private,
        examined_ranks=phase.examined_ranks,
        examined_level=phase.examined_level,
        anonymity=Anonymity(phase.anonymity).value,
    )


@router.get(
    "/tracks/{slug}/quota", response=QuotaStatus, summary="Get your team's quota in a track", tags=TRACKS
)
def get_quota(request: ApiRequest, slug: str) -> QuotaStatus:
    """Submissions that members made in other teams within 24 hours also count."""
    quota = quota_of(team_in(request), Track.objects.get(slug=slug), timezone.now())
    return QuotaStatus.model_validate(quota)


@router.get("/me", response=Account, summary="Get the token and its owner", tags=ACCOUNT)
def me(request: ApiRequest) -> Account:
    team = team_of(request.auth)
    user = request.auth
    return Account(
        email=user.email,
        name=user.name,
        orcid=user.orcid,
        orcid_verified=user.orcid_verified,
        shows_orcid=user.shows_orcid,
        team=team.name if team else None,
    )


@router.patch("/me", response=Account, summary="Change your name and ORCID iD", auth=MANAGING, tags=ACCOUNT)
def change_me(request: ApiRequest, body: ChangedAccount) -> Account:
    """Your password, e-mail address, second factors and tokens can only be changed on the site."""
    current = {name: getattr(request.auth, name) for name in ProfileForm.Meta.fields}
    form = ProfileForm(current | body.model_dump(exclude_none=True))
    if not form.is_valid():
        raise invalid_form(form)
    request.auth = update_profile(request.auth, **form.cleaned_data)
    return me(request)


@router.delete(
    "/me/token",
    response={204: None},
    summary="Revoke this token",
    auth=TokenOrSession(changing=Scope.READ),
    tags=ACCOUNT,
)
def revoke_me(request: ApiRequest) -> Status[None]:
    """Revokes the token used for this request, for example after a job or if it has leaked."""
    require_token(request)
    revoke_token(request.api_token, actor=request.auth)
    return Status(204, None)
