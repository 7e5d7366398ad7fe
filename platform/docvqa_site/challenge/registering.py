"""Teams register for a track that asks for it: what they answer, and who admits them.

The states of registrations and their allowed transitions are here; one function makes them.
"""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from docvqa_site.accounts.models import User
from docvqa_site.audit.models import record
from docvqa_site.audit.transitions import Transitions, move
from docvqa_site.challenge.models import Registration, RegistrationState, TeamRegistration, Track
from docvqa_site.challenge.selectors import organizers_of
from docvqa_site.notifications.kinds import Kind
from docvqa_site.notifications.sending import notify
from docvqa_site.teams.models import Team
from docvqa_site.teams.selectors import active_members
from evaluator.errors import ErrorCode, Problem

TRANSITIONS: Transitions = {
    RegistrationState.WAITING: frozenset({RegistrationState.ADMITTED, RegistrationState.DECLINED}),
    # An organizer who changes their mind; what was submitted meanwhile stays.
    RegistrationState.ADMITTED: frozenset({RegistrationState.DECLINED}),
    RegistrationState.DECLINED: frozenset({RegistrationState.ADMITTED}),
}
# What an organizer needs to admit or decline a team.
ADMITTING = ("challenge.organize", "challenge.change_track")
DECISIONS = {
    RegistrationState.ADMITTED: "The organizers have admitted {team} to {track}.",
    RegistrationState.DECLINED: "The organizers have declined {team} for {track}: your team can't submit to it.",
}


@transaction.atomic
def register(team: Team, track: Track, answers: Sequence[str], user: User) -> TeamRegistration:
    """Register the team with its answers to the track's questions, in their order; once, whoever asks again.

    Where the track doesn't ask for an approval, the team is admitted at once.
    """
    needs_approval = track.registration == Registration.APPROVAL
    registration, is_new = TeamRegistration.objects.get_or_create(
        team=team,
        track=track,
        defaults={
            "answers": [list(pair) for pair in zip(track.questions, answers, strict=True)],
            "created_by": user,
            "state": RegistrationState.WAITING if needs_approval else RegistrationState.ADMITTED,
        },
    )
    if is_new:
        record(user, "registration.created", registration, team=team.pk, track=track.slug)
    if is_new and needs_approval:
        _notify_organizers(registration)
    return registration


def _notify_organizers(registration: TeamRegistration) -> None:
    team, track = registration.team, registration.track
    able = [one for one in organizers_of(track) if one.has_perms(ADMITTING)]
    page = f"{settings.SITE_URL}{reverse('organizers:registrations')}?track={track.slug}"
    subject = f"{team} asks to be admitted to {track}"
    notify(able, Kind.ANNOUNCEMENTS, subject, ["Read its answers, and admit or decline the team.", page])


@transaction.atomic
def decide(registration: TeamRegistration, state: RegistrationState, reason: str, *, actor: User) -> bool:
    """Admit or decline a team, and notify it; return whether that was a change."""
    current = TeamRegistration.objects.select_for_update().get(pk=registration.pk)
    if state not in TRANSITIONS[RegistrationState(current.state)]:
        return False
    move(current, state, TRANSITIONS, actor, {"reason": reason}, reason=reason)
    team, track = registration.team, registration.track
    texts = [
        DECISIONS[state].format(team=team, track=track),
        *([reason] if reason else []),
        settings.SITE_URL + page_of(track),
    ]
    notify(active_members(team), Kind.TEAM, f"Registration for {track}: {state}", texts)
    return True


@transaction.atomic
def exclude(team: Team, track: Track, reason: str, *, actor: User) -> bool:
    """Decline the team for the track, whether it has registered or not, and notify it; return whether that is new."""
    registration, _ = TeamRegistration.objects.get_or_create(
        team=team, track=track, defaults={"state": RegistrationState.ADMITTED, "created_by": actor}
    )
    return decide(registration, RegistrationState.DECLINED, reason, actor=actor)


def page_of(track: Track) -> str:
    """Return the address of the page on which a team registers."""
    return reverse("challenge:register", args=[track.slug])


def registration_problems(team: Team, track: Track) -> list[Problem]:
    """Return why the team may not submit to the track yet; nothing where it may.

    One that was declined may not, even where teams submit without registering.
    """
    registration = TeamRegistration.objects.filter(team=team, track=track).first()
    state = registration.state if registration else None
    is_open = track.registration == Registration.NONE
    if state == RegistrationState.ADMITTED or (is_open and state != RegistrationState.DECLINED):
        return []
    return [
        Problem.of(
            ErrorCode.TEAM_REGISTRATION,
            where=track.slug,
            expected="a team that is registered and admitted",
            found=registration.state_label if registration else "no registration",
            next_step=f"Register at {settings.SITE_URL}{page_of(track)}."
            if registration is None
            else f"See {settings.SITE_URL}{page_of(track)}.",
        )
    ]
