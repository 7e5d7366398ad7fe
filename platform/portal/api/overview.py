"""The tracks, and the account that a token belongs to."""

from django.utils import timezone
from ninja import Router

from evaluator.api import Account, PhaseInfo, TrackInfo
from portal.api.authentication import ApiRequest
from portal.challenge.models import Anonymity, Phase, Results, Track
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
            optional_artifacts=list(track.optional_artifacts()),
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
        results=Results(phase.results).value,
        allows_private=phase.allows_private,
        anonymity=Anonymity(phase.anonymity).value,
    )


@router.get("/me", response=Account, summary="Whose token this is")
def me(request: ApiRequest) -> Account:
    team = team_of(request.auth)
    return Account(email=request.auth.email, name=request.auth.name, team=team.name if team else None)
