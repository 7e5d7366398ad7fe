"""The pages of teams. What only a team may see answers 404 to everyone else."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.forms import BaseForm
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from docvqa_site.accounts.requests import UserRequest
from docvqa_site.accounts.selectors import owns_verified_address
from docvqa_site.teams import keys, services
from docvqa_site.teams.forms import InvitationForm, KeyForm, TeamDetailsForm, TeamForm
from docvqa_site.teams.models import Membership, Team
from docvqa_site.teams.selectors import (
    current_keys,
    invitation_by_secret,
    invitations_to,
    keys_of,
    members,
    membership_of,
    open_invitations,
    team_of,
)
from evaluator.errors import ProblemError
from evaluator.records.signing import is_public_key


@login_required
@require_safe
def mine(request: UserRequest) -> HttpResponse:
    """Show the user's own team: members, invitations and keys."""
    membership = membership_of(request.user)
    if membership is None:
        return render(request, "teams/none.html", {"invitations": invitations_to(request.user)})
    return _team_page(request, membership)


def _team_page(request: UserRequest, membership: Membership, **rejected: BaseForm) -> HttpResponse:
    """Show the team, with forms that were `rejected` in place of the empty ones; the invitations are its owners'."""
    team = membership.team
    context = {
        "team": team,
        "membership": membership,
        "members": members(team),
        "keys": keys_of(team),
        "invitations": open_invitations(team),
        "key_form": KeyForm(),
        "invitation_form": InvitationForm(),
        **rejected,
    }
    return render(request, "teams/mine.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def create(request: UserRequest) -> HttpResponse:
    """Create a team, which the user then owns."""
    if team_of(request.user):
        messages.info(request, "You are already on a team.")
        return redirect("teams:mine")
    form = TeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.create_team(request.user, **form.cleaned_data)
        except ProblemError as error:
            form.add_error(None, _advice(error))
        else:
            messages.success(
                request, "Team created. Invite its members here; the home page has your next step."
            )
            return redirect("teams:mine")
    return render(request, "teams/create.html", {"form": form})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: UserRequest) -> HttpResponse:
    membership = _own_membership(request)
    if not membership.is_owner:
        raise Http404("no owner of the team")
    form = TeamDetailsForm(request.POST or None, instance=membership.team)
    if request.method == "POST" and form.is_valid():
        services.update_team(membership.team, by=request.user, **form.cleaned_data)
        messages.success(request, "The team's details have been saved.")
        return redirect("teams:mine")
    return render(request, "teams/edit.html", {"form": form, "team": membership.team})


def change(view: Callable[..., str]) -> Callable[..., HttpResponse]:
    """Return a view that makes a change by a POST, and leads to the team with the sentence that `view` returns.

    The reason for which a change is rejected is shown in its place.
    """

    @wraps(view)
    @login_required
    @require_POST
    def answered(request: UserRequest, **named: Any) -> HttpResponse:
        try:
            messages.success(request, view(request, **named))
        except ProblemError as error:
            messages.error(request, _advice(error))
        return redirect("teams:mine")

    return answered


@login_required
@require_POST
def invite(request: UserRequest) -> HttpResponse:
    membership = _own_membership(request)
    form = InvitationForm(request.POST)
    if form.is_valid():
        return _invite(request, team=membership.team, email=form.cleaned_data["email"])
    return _team_page(request, membership, invitation_form=form)


@change
def _invite(request: UserRequest, team: Team, email: str) -> str:
    services.invite(team, email, by=request.user)
    return f"We've sent an invitation to {email}."


@change
def revoke(request: UserRequest, invitation_id: int) -> str:
    invitation = get_object_or_404(open_invitations(_own_membership(request).team), pk=invitation_id)
    services.revoke_invitation(invitation, by=request.user)
    return f"The invitation to {invitation.email} is revoked."


@login_required
@require_POST
def add_key(request: UserRequest) -> HttpResponse:
    form = KeyForm(request.POST)
    # A typing error is said at once, without a question for the password.
    is_key = form.is_valid() and is_public_key(form.cleaned_data["public_key"])
    add: Callable[[UserRequest, KeyForm], HttpResponse] = (
        reauthentication_required(_add_key) if is_key else _add_key
    )
    return add(request, form)


def _add_key(request: UserRequest, form: KeyForm) -> HttpResponse:
    membership = _own_membership(request)
    if form.is_valid():
        try:
            key = keys.register_key(membership.team, **form.cleaned_data, by=request.user)
        except ProblemError as error:
            form.add_error("public_key", _advice(error))
        else:
            messages.success(request, f"The key {key.fingerprint} can now sign your team's training records.")
            return redirect("teams:mine")
    return _team_page(request, membership, key_form=form)


@login_required
@reauthentication_required
@change
def revoke_key(request: UserRequest, key_id: int) -> str:
    key = get_object_or_404(current_keys(_own_membership(request).team), pk=key_id)
    keys.revoke_key(key, by=request.user)
    return f"The key {key.fingerprint} is revoked."


@change
def remove(request: UserRequest, membership_id: int) -> str:
    person = services.remove_member(_own_membership(request).team, membership_id, by=request.user)
    return f"{person} is no longer on the team."


@change
def hand_over(request: UserRequest, membership_id: int) -> str:
    """Make another member the owner of the team."""
    person = services.hand_over(_own_membership(request).team, membership_id, by=request.user)
    return f"{person} now owns the team."


@change
def leave(request: UserRequest) -> str:
    return f"You have left {services.leave(request.user)}."


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: UserRequest, secret: str) -> HttpResponse:
    """Show the page that an invitation's link leads to; a POST accepts the invitation."""
    found = invitation_by_secret(secret)
    if found is None:
        return render(request, "teams/invitation_gone.html", status=404)
    if not owns_verified_address(request.user, found.email):
        return render(request, "teams/invitation_elsewhere.html", status=403)
    if request.method == "POST":
        return join(request, invitation_id=found.pk)
    return render(request, "teams/invitation.html", {"invitation": found, "present": team_of(request.user)})


@change
def join(request: UserRequest, invitation_id: int) -> str:
    """Accept an invitation to a verified address of the user, for which the mail's link isn't needed."""
    found = get_object_or_404(invitations_to(request.user), pk=invitation_id)
    services.accept_invitation(found, request.user)
    return f"Welcome to {found.team}."


def _own_membership(request: UserRequest) -> Membership:
    membership = membership_of(request.user)
    if membership is None:
        raise Http404("not on a team")
    return membership


def _advice(error: ProblemError) -> str:
    return f"{error.problem.message} {error.problem.next_step}"
