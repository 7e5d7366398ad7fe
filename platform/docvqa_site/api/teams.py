"""One's own team over the API: its details, members and invitations. Changes need a token with the scope `manage`."""

from django.shortcuts import get_object_or_404
from ninja import Router

from docvqa_site.api.authentication import MANAGING, ApiRequest, membership_in, team_in
from docvqa_site.api.errors import cleaned
from docvqa_site.api.responses import part_of, response_of
from docvqa_site.api.throttling import CREATION_LIMITS
from docvqa_site.paging import DEFAULT_LIMIT, ListLimit, ListOffset
from docvqa_site.teams import services
from docvqa_site.teams.forms import InvitationForm, TeamDetailsForm, TeamForm
from docvqa_site.teams.models import Invitation, Membership
from docvqa_site.teams.selectors import invitations_to, members, open_invitations
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.team_api import (
    ChangedTeam,
    NewInvitation,
    NewTeam,
    OwnTeam,
    ReceivedInvitation,
    ReceivedInvitationPage,
    SentInvitation,
    SentInvitationPage,
    TeamMember,
)

router = Router(tags=["team"], auth=MANAGING)


@router.get("/team", response=OwnTeam, summary="Get your team and its members")
def get_team(request: ApiRequest) -> OwnTeam:
    membership = membership_in(request)
    team = membership.team
    return response_of(
        OwnTeam,
        team,
        url=request.build_absolute_uri(team.get_absolute_url()),
        role=membership.role,
        members=[_member(one) for one in members(team)],
    )


@router.post("/team", response={201: OwnTeam}, summary="Create a team", throttle=CREATION_LIMITS)
def create_team(request: ApiRequest, body: NewTeam) -> OwnTeam:
    """You become the owner. You can be in only one team at a time."""
    services.create_team(request.auth, **cleaned(TeamForm(body.model_dump())))
    return get_team(request)


@router.patch("/team", response=OwnTeam, summary="Edit affiliation and website")
def change_team(request: ApiRequest, body: ChangedTeam) -> OwnTeam:
    """Owners only. The name can't be changed, because results and citations refer to it."""
    team = team_in(request)
    current = {name: getattr(team, name) for name in TeamDetailsForm.Meta.fields}
    form = TeamDetailsForm(current | body.model_dump(exclude_none=True))
    services.update_team(team, by=request.auth, **cleaned(form))
    return get_team(request)


@router.post("/team/leave", response={204: None}, summary="Leave your team")
def leave_team(request: ApiRequest) -> None:
    """Submissions stay with the team. The only owner can't leave while the team has other members."""
    membership_in(request)
    services.leave(request.auth)


@router.delete("/team/members/{membership_id}", response={204: None}, summary="Remove a member")
def remove_member(request: ApiRequest, membership_id: int) -> None:
    """Owners only. To rejoin, the person needs a new invitation."""
    services.remove_member(team_in(request), membership_id, by=request.auth)


@router.post(
    "/team/members/{membership_id}/hand-over", response=OwnTeam, summary="Transfer ownership to a member"
)
def hand_over(request: ApiRequest, membership_id: int) -> OwnTeam:
    """Owners only. The previous owner becomes a regular member."""
    services.hand_over(team_in(request), membership_id, by=request.auth)
    return get_team(request)


@router.get("/team/invitations", response=SentInvitationPage, summary="List your team's open invitations")
def list_sent(
    request: ApiRequest, limit: ListLimit = DEFAULT_LIMIT, offset: ListOffset = 0
) -> SentInvitationPage:
    """Owners only. Returns `limit` invitations, starting at `offset`."""
    found = open_invitations(_owned(request).team)
    return SentInvitationPage(**part_of(found, _sent, limit=limit, offset=offset))


@router.post(
    "/team/invitations", response={201: SentInvitation}, summary="Invite a person", throttle=CREATION_LIMITS
)
def invite(request: ApiRequest, body: NewInvitation) -> SentInvitation:
    """Owners only. Sends an email with a link and revokes earlier invitations to the same address."""
    team = team_in(request)
    email = cleaned(InvitationForm(body.model_dump()))["email"]
    return _sent(services.invite(team, email, by=request.auth))


@router.delete("/team/invitations/{invitation_id}", response={204: None}, summary="Revoke an invitation")
def revoke(request: ApiRequest, invitation_id: int) -> None:
    """Owners only. The link in the email stops working."""
    invitation = get_object_or_404(open_invitations(_owned(request).team), pk=invitation_id)
    services.revoke_invitation(invitation, by=request.auth)


@router.get("/invitations", response=ReceivedInvitationPage, summary="List your received invitations")
def list_received(
    request: ApiRequest, limit: ListLimit = DEFAULT_LIMIT, offset: ListOffset = 0
) -> ReceivedInvitationPage:
    """Invitations sent to one of your verified addresses: `limit` of them, starting at `offset`."""
    found = invitations_to(request.auth)
    return ReceivedInvitationPage(**part_of(found, _received, limit=limit, offset=offset))


@router.post("/invitations/{invitation_id}/accept", response=OwnTeam, summary="Accept an invitation")
def accept(request: ApiRequest, invitation_id: int) -> OwnTeam:
    services.accept_invitation(
        get_object_or_404(invitations_to(request.auth), pk=invitation_id), request.auth
    )
    return get_team(request)


def _owned(request: ApiRequest) -> Membership:
    membership = membership_in(request)
    if not membership.is_owner:
        raise ProblemError.of(ErrorCode.TEAM_OWNER)
    return membership


def _member(membership: Membership) -> TeamMember:
    return response_of(TeamMember, membership, name=membership.user.name, email=membership.user.email)


def _sent(invitation: Invitation) -> SentInvitation:
    return response_of(SentInvitation, invitation, invited_by=str(invitation.invited_by))


def _received(invitation: Invitation) -> ReceivedInvitation:
    return response_of(
        ReceivedInvitation, invitation, team=invitation.team.name, invited_by=str(invitation.invited_by)
    )
