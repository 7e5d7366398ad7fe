"""The tracks, and the account that a token belongs to."""

from django.utils import timezone
from ninja import Router

from evaluator.api import Account, TrackInfo
from portal.api.authentication import ApiRequest
from portal.challenge.models import Track
from portal.submissions.required import submission_artifacts
from portal.teams.selectors import team_of

router = Router(tags=["overview"])


@router.get("/tracks", response=list[TrackInfo], summary="The tracks and their rules")
def list_tracks(request: ApiRequest) -> list[TrackInfo]:  # noqa: ARG001  (ninja knows it by its name)
    now = timezone.now()
    return [
        TrackInfo(
            slug=track.slug,
            name=track.name,
            summary=track.summary,
            ranking=track.ranking,
            budgets=track.run_budgets(),
            run_artifacts=list(track.run_artifacts()),
            submission_artifacts=list(submission_artifacts(track)),
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
            submissions_per_day=track.submissions_per_day,
            opens_at=track.opens_at,
            closes_at=track.closes_at,
            closed_because=track.closed_because(now),
        )
        for track in Track.objects.all()
    ]


@router.get("/me", response=Account, summary="Whose token this is")
def me(request: ApiRequest) -> Account:
    team = team_of(request.auth)
    return Account(email=request.auth.email, name=request.auth.name, team=team.name if team else None)
